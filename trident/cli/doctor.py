"""``python -m trident doctor``: look at Java, Python, drivers and stores, and say what to do."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version

from trident.backends.checkpoints import CHECKPOINTS, checkpoint_from_url
from trident.backends.rows import Rows
from trident.backends.rows.urls import DATABASES, database_from_url
from trident.backends.state_url import StateURL
from trident.backends.urls import STATES
from trident.cli.backends import PACKAGE, Extra, extras
from trident.cli.named import NamedState, find_state, is_url, load_topology, state_of
from trident.states.errors import StateURLError, TridentError
from trident.states.finding import Finding
from trident.states.maps.factory import MapStateFactory
from trident.states.printable import one_line

_SEND = "Or send an environment that has it: docs/deploy.md, with a packed environment."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "looked_at",
        nargs="*",
        metavar="module:topology or URL",
        help="whose stores to look at: those of a topology's states, or the URL of a store for "
        "states or checkpoints, or of a database of rows; without any only this machine",
    )
    parser.add_argument(
        "--session",
        nargs="?",
        const="",
        metavar="master",
        help="ask the workers of a Spark session too, made as `run --spark` makes it",
    )
    parser.add_argument("--json", action="store_true", help="an object on a line for each finding")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each finding; 1 where one is a problem."""
    status = 0
    for found in _examine(arguments.looked_at, arguments.session):
        line = json.dumps(asdict(found), ensure_ascii=False) if arguments.json else str(found)
        print(one_line(line))
        sys.stdout.flush()
        status = max(status, int(found.level == "problem"))
    return status


def _examine(words: Iterable[str], session: str | None) -> Iterator[Finding]:
    found = extras()
    yield Finding("ok", f"Python {platform.python_version()}, {sys.executable}")
    yield from map(_driver, found)
    if any(extra.name == "spark" and extra.installed for extra in found):
        from trident.spark.java import find_java  # pyspark is optional

        yield find_java()
        yield workers_here()
    states: list[NamedState] = []
    kept, logs, tables = STATES.names, CHECKPOINTS.names, DATABASES.names
    for word in words:
        scheme = word.partition(":")[0].lower()
        if scheme in logs and scheme not in kept:
            yield _checkpoint(word)
            continue
        if is_url(word) and scheme in tables and scheme not in kept:
            yield from _look(database_from_url(word).examine)
            continue
        if is_url(word) and scheme not in kept:
            raise StateURLError("no store's scheme is", scheme, sorted({*kept, *logs, *tables}))
        for named in _states(word):
            yield from _state(named)
            states.append(named)
    if session is not None:
        yield from _session(session, states, found)


def _driver(extra: Extra) -> Finding:
    if extra.installed:
        return Finding("ok", f"{extra.name}: {extra}")
    missing = ", ".join(name for name, number in extra.versions.items() if number is None)
    if str(extra):
        what = f"{extra.name}: {missing} is missing"
        return Finding("warning", what, f"Install it: {extra.pip}.")
    return Finding("ok", f"{extra.name}: not installed", f"Where it is needed: {extra.pip}.")


def _session(master: str, states: list[NamedState], found: list[Extra]) -> Iterator[Finding]:
    stores = [type(named.store).__module__.split(".") for named in states]
    drivers = [each for each in found if any(each.name in store for store in stores)]
    try:
        yield from workers_of_session(master, drivers)
    except TridentError as error:
        yield _problem(error)


def _states(word: str) -> Iterator[NamedState]:
    """The state of a URL, or those of a topology."""
    if is_url(word):
        yield find_state(word, prefix="state")
        return
    name, _, only = word.partition("/")
    plan = load_topology(name).plan()
    for state in [only] if only else [node.state.name for node in plan.states]:
        yield state_of(plan, state, name)


def _state(named: NamedState) -> Iterator[Finding]:
    if named.guarantee is not None and not named.guarantee.exact:
        what = f"{named.shown} is {named.guarantee.level}: {named.guarantee.why}"
        yield Finding("warning", what, named.guarantee.advice or "")
    yield from _store(named)


def _checkpoint(word: str) -> Finding:
    """Whether a store that keeps checkpoints only can be reached, and is fit for them."""
    store = checkpoint_from_url(StateURL.parse(word))
    try:
        problem, names = store.probe(), store.names()
    except (TridentError, ImportError) as error:
        return _problem(error)
    finally:
        store.release()
    if problem is not None:
        return Finding("problem", f"{store.where}: {problem}", "Take another store.")
    return Finding("ok", f"{store.where} answers, with {len(names)} logs")


def _problem(error: Exception) -> Finding:
    what, _, advice = str(error).rstrip(".").partition(". ")
    return Finding("problem", what, f"{advice}." if advice else "")


def _store(named: NamedState) -> Iterator[Finding]:
    if isinstance(named.factory, Rows):
        yield from _look(named.factory.database.examine)
    elif isinstance(named.factory, MapStateFactory):
        yield from _look(named.factory.store.examine)
    else:
        yield Finding("ok", f"{named.shown} is no map of this library, and was not looked at")


def _look(examine: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Return what a store says of itself; that it is away is a problem like any other."""
    try:
        yield from examine()
    except StateURLError:
        raise
    except (TridentError, ImportError) as error:
        yield _problem(error)


def workers_here() -> Finding:
    """Which Python Spark's workers run, as far as this machine tells."""
    from trident.spark.workers import is_own, version_of

    program = os.environ.get("PYSPARK_PYTHON")
    if program is None or is_own(program):
        which = "this one" if program else "this one in a local session"
        return Finding("ok", f"the Python of Spark's workers is {which}")
    advice = "Set PYSPARK_PYTHON to the same version, with the same packages."
    try:
        found = version_of(program)
    except TridentError as error:
        return Finding("problem", str(error).rstrip("."), advice)
    own = ".".join(map(str, sys.version_info[:2]))
    if found != own:
        what = f"the Python of Spark's workers, {program}, is {found}, and this one {own}"
        return Finding("problem", what, advice)
    return Finding("ok", f"the Python of Spark's workers, {program}, is {found}")


def workers_of_session(master: str, drivers: Sequence[Extra]) -> Iterator[Finding]:
    """Ask the workers of the session at `master`, which need the drivers of the states used."""
    from trident.spark.access import describe_session
    from trident.spark.session import session_at
    from trident.spark.workers import OF_SPARK, VERSION, ask_workers

    spark = session_at(master)
    yield Finding("ok", describe_session(spark))
    answers = ask_workers(spark, *(name for each in drivers for name in each.versions))
    names = ",".join(each.name for each in drivers)
    ours = f"{PACKAGE}[{names}]" if names else PACKAGE
    packages = [f'"{ours}=={VERSION}"', *(f"{name}=={version(name)}" for name in OF_SPARK)]
    for answer in [each for place, each in enumerate(answers) if each not in answers[:place]]:
        what = f"Spark's workers ({answer['place']}), Python {answer['python']},"
        lacking = [*answer["problems"], *answer["lacking"]]
        if not lacking and answer["trident"] != VERSION:
            lacking = [f"trident {VERSION}, as they have {answer['trident']}"]
        if not lacking:
            yield Finding("ok", f"{what} have trident {VERSION} and what it needs")
            continue
        program = shlex.quote(answer["place"].partition(", ")[2])  # behind the name of its machine
        advice = f"Run there: {program} -m pip install {' '.join(packages)}. {_SEND}"
        yield Finding("problem", f"{what} lack {', '.join(lacking)}", advice)
