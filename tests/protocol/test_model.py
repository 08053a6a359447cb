"""The model of the protocol: right with every rule, wrong without any one of them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal

import pytest

from tests.protocol.counterexamples import COUNTEREXAMPLES
from tests.protocol.model import (
    Ability,
    Found,
    Harm,
    Rules,
    Setup,
    Trace,
    Wrong,
    replay,
    search,
    shrink,
)
from tests.protocol.model.world import World
from trident.testing.servers.process import QUICK

RUNS = 5 if QUICK in os.environ else 15
"""Random runs of each setting, always the same ones: who changes the model plays more of them by
``python -m tests.protocol.model``. The search for a fault of one rule may take BUDGET."""
BUDGET = 300
EARLIER = 20

MODEL = Path(__file__).parent / "model"
RULES = [field.name for field in fields(Rules)]
ABILITIES: tuple[Ability, ...] = ("fenced", "entry", "versioned", "none")
# What only the fence guards against is asked only of stores that have one.
HARMS: tuple[Harm, ...] = ("failover", "rewind")
FENCED_HARMS: tuple[Harm, ...] = (*HARMS, "restore", "lose", "wipe", "forget")


def _setups() -> Iterator[Setup]:
    for ability in ABILITIES:
        for plain in (Setup(ability), Setup(ability, "transactional")):
            for hosted in (
                plain,
                replace(plain, cached=True),
                replace(plain, hosted="driver", cached=True),
            ):
                yield hosted
                for harm in FENCED_HARMS if ability == "fenced" else HARMS:
                    yield replace(hosted, harm=harm)
            early = replace(plain, hosted="driver", early=True)
            yield early
            for harm in (*(FENCED_HARMS if ability == "fenced" else HARMS), "copy"):
                yield replace(early, harm=harm)
            staged = replace(plain, hosted="driver", cached=True, staged=True)
            yield staged
            yield replace(staged, replaces=True)
            for harm in FENCED_HARMS if ability == "fenced" else HARMS:
                yield replace(staged, harm=harm)
        if ability == "fenced":
            for harm in ("", *HARMS, "restore", "copy", "cut"):
                yield Setup(ability, harm=harm, sweeps=True)
            for harm in ("", *HARMS, "restore", "cut", "anew"):
                yield Setup(ability, harm=harm, expires=True, sweeps=True)
            yield Setup(ability, hosted="driver", cached=True, expires=True)
            yield Setup(ability, hosted="driver", staged=True, expires=True)
        else:
            yield Setup(ability, expires=True)
        yield Setup(ability, harm="copy", hosted="driver", staged=True)
        for kind in ("opaque", "transactional"):
            yield Setup(ability, kind, harm="copy")
            yield Setup(ability, kind, harm="cut")
            yield Setup(ability, kind, harm="anew")
    beside: Literal["", "database", "map"]
    for beside in ("", "database", "map"):
        table = Setup("rows", beside=beside)
        for harm in ("", *FENCED_HARMS, "copy", "cut", "anew"):
            yield replace(table, harm=harm)
        for harm in ("", "failover"):
            yield replace(table, kind="transactional", hosted="driver", harm=harm)
            yield replace(table, hosted="driver", staged=True, harm=harm)
            yield replace(table, hosted="driver", early=True, harm=harm)
            yield replace(table, sweeps=True, harm=harm)
    for kind in ("opaque", "transactional"):
        both = Setup("rows", kind, beside="database", together=True)
        yield from (both, replace(both, harm="wipe"), replace(both, sweeps=True))
        yield replace(both, hosted="driver", early=True)
        yield replace(both, hosted="driver", staged=True)


def _report(found: Found | None) -> str:
    return f"{found.what}\n{shrink(found, Rules()).trace}" if found else ""


@pytest.mark.parametrize("setup", list(_setups()), ids=str)
def test_no_random_run_goes_wrong(setup: Setup) -> None:
    found = search(setup, Rules(), RUNS)
    assert found is None, _report(found)


@pytest.mark.parametrize("rule", RULES)
def test_random_runs_go_wrong_without(rule: str) -> None:
    trace = COUNTEREXAMPLES[rule]
    # The search starts a little before the seed that is known to find something.
    found = search(trace.setup, Rules().without(rule), BUDGET, max(0, trace.seed - EARLIER))
    assert found is not None, f"nothing went wrong without the rule {rule}"


@pytest.mark.parametrize("rule", RULES)
def test_counterexample_goes_wrong_without(rule: str) -> None:
    with pytest.raises(Wrong):
        replay(COUNTEREXAMPLES[rule], Rules().without(rule))


@pytest.mark.parametrize("rule", RULES)
def test_counterexample_is_right_with(rule: str) -> None:
    replay(COUNTEREXAMPLES[rule], Rules())


def test_every_rule_has_a_counterexample() -> None:
    assert set(COUNTEREXAMPLES) == set(RULES)


def test_a_store_without_abilities_leaves_a_gap() -> None:
    """What the guarantee of such a store has to say is not an idle warning."""
    assert search(Setup("none", gap=True), Rules(), BUDGET) is not None


def test_a_table_restored_without_its_record_leaves_a_gap() -> None:
    """Nothing in a table tells of which batch it is: protocol.md says that nothing notices that."""
    assert search(Setup("rows", harm="restore", gap=True), Rules(), BUDGET) is not None


def test_a_replaced_log_of_a_source_leaves_a_gap() -> None:
    """It was replaced before a driver has looked: checkpoints.md says that nothing notices that."""
    setup = Setup("fenced", staged=True, replaces=True, gap=True)
    assert search(setup, Rules(), BUDGET, 2400) is not None


def test_copies_that_have_committed_the_same_attempts_are_not_told_apart() -> None:
    """Batch 1 was empty in the one that goes on: protocol.md says that nothing notices that."""
    trace = Trace(
        Setup("fenced", hosted="driver", harm="copy"),
        8136,
        "start D1*11 copy start D2*19 start*2 D8*12 read turn start*2 D11*6 start D12*19 T15*3 "
        "T13*5 T15*2 T14*5 D12*14 turn",
    )
    world = World(trace.setup, Rules(), trace.seed)
    for action in trace.words():
        world.act(action)
    world.end()
    assert world.twins
    world.twins = False
    with pytest.raises(Wrong):
        world.check_final()


def test_a_run_replays_as_it_was_found() -> None:
    rules = Rules().without("attempts")
    found = search(Setup("fenced"), rules, BUDGET)
    assert found is not None
    with pytest.raises(Wrong) as replayed:
        replay(found.trace, rules)
    assert str(replayed.value) == found.what


def test_shrinking_keeps_the_fault() -> None:
    rules = Rules().without("attempts")
    found = search(Setup("fenced"), rules, BUDGET)
    assert found is not None
    small = shrink(found, rules)
    assert len(small.trace.words()) < len(found.trace.words())
    with pytest.raises(Wrong):
        replay(small.trace, rules)


def test_a_trace_is_written_in_words() -> None:
    trace = Trace.of(Setup("none"), 1, ["start", "D1", "D1", "kill:D1"])
    assert trace.actions == "start D1*2 kill:D1"
    assert trace.words() == ["start", "D1", "D1", "kill:D1"]


@pytest.mark.parametrize("path", sorted(MODEL.glob("*.py")), ids=lambda path: path.stem)
def test_the_model_shares_no_code_with_the_library(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names or [each.name for each in node.names]:
                own = name.startswith("tests.protocol.model")
                assert own or name.partition(".")[0] in sys.stdlib_module_names, name
