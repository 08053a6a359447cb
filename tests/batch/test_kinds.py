"""A state keeps its kind for as long as its log: entries of another are none of its own."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from trident import Adopt, Count, FixedBatchSpout, TridentTopology
from trident.log.errors import LogMismatchError

KINDS = {
    "opaque": "opaque",
    "transactional": "transactional",
    "nontransactional": "non-transactional",
}


def count(folder: Path, kind: str, *words: str, checkpoint: str = "run", **options: Any) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1, *((word,) for word in words))
    counted = topology.newStream("words", spout).groupBy("word")
    counted.persistentAggregate(f"sqlite:{folder}/counts.db?kind={kind}", Count(), "count")
    with topology.start(None, folder / checkpoint, trigger="available", **options) as run:
        assert run.awaitTermination(60)


@pytest.mark.parametrize(("before", "after"), list(permutations(KINDS, 2)))
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_state_that_became_another_kind_is_refused_by_both_kinds(
    tmp_path: Path, before: str, after: str
) -> None:
    count(tmp_path, before, "a")
    with pytest.raises(LogMismatchError) as caught:
        count(tmp_path, after, "a", "a")
    assert (
        f"was written with another kind of the state 'count': it has {KINDS[before]}, "
        f"found {KINDS[after]}. Keep that kind"
    ) in str(caught.value)
    count(tmp_path, before, "a", "a")


@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_checkpoint_that_takes_a_state_over_knows_its_kind(tmp_path: Path) -> None:
    count(tmp_path, "opaque", "a")
    with pytest.raises(LogMismatchError, match="another kind of the state 'count'"):
        count(
            tmp_path,
            "nontransactional",
            "a",
            checkpoint="new",
            adopt=Adopt.from_checkpoint(tmp_path / "run"),
        )
    count(tmp_path, "opaque", "a", checkpoint="new", adopt=Adopt.from_checkpoint(tmp_path / "run"))
