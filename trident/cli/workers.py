"""What ``doctor`` finds of Spark's workers, and the line that mends it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from trident.cli.installed import PACKAGE, Extra
from trident.states.errors import TridentError
from trident.states.finding import Finding

_SEND = "Or send an environment that has it: docs/deploy.md, with a packed environment."


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
    from trident.spark.access import described
    from trident.spark.session import session_at
    from trident.spark.workers import OF_SPARK, VERSION, ask_workers

    spark = session_at(master)
    yield Finding("ok", described(spark))
    answers = ask_workers(spark, *(name for each in drivers for name in each.versions))
    names = ",".join(each.name for each in drivers)
    ours = f"{PACKAGE}[{names}]" if names else PACKAGE
    packages = [f'"{ours}=={VERSION}"', *(f"{name}=={version(name)}" for name in OF_SPARK)]
    for told in [each for place, each in enumerate(answers) if each not in answers[:place]]:
        what = f"Spark's workers ({told['place']}), Python {told['python']},"
        lacking = [*told["problems"], *told["lacking"]]
        if not lacking and told["trident"] != VERSION:
            lacking = [f"trident {VERSION}, as they have {told['trident']}"]
        if not lacking:
            yield Finding("ok", f"{what} have trident {VERSION} and what it needs")
            continue
        program = shlex.quote(told["place"].partition(", ")[2])  # behind the name of its machine
        advice = f"Run there: {program} -m pip install {' '.join(packages)}. {_SEND}"
        yield Finding("problem", f"{what} lack {', '.join(lacking)}", advice)
