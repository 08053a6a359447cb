"""The driver is killed at every named point, and anywhere, and what Kafka holds is counted once."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests import forks
from tests.kafka import killed
from tests.kafka.broker import Broker
from trident.batch.watchpoints import POINTS
from trident.drpc.errors import DRPCExecutionError
from trident.drpc.service import LocalDRPC
from trident.errors import NoStateError

_EVERY_POINT = [(point, number % 2 * 3) for number, point in enumerate(POINTS)]
_ANYWHERE = [("clock", 0.3 + 0.1 * number) for number in range(5)]


@pytest.mark.slow
def test_every_record_counts_once_whenever_the_driver_is_killed(
    broker: Broker, tmp_path: Path
) -> None:
    choose = random.Random(11)
    topic = broker.topic(3)
    truth: Counter[str] = Counter()
    rounds = _EVERY_POINT + _ANYWHERE
    choose.shuffle(rounds)
    killed_rounds = 0
    for how, number in rounds:
        produce(broker, topic, truth, choose)
        ended = run(tmp_path, broker, topic, how, number)
        assert ended in (0, -signal.SIGKILL, -signal.SIGALRM)
        killed_rounds += ended != 0
        # What readers see are whole batches, none of them twice.
        for kind in killed.KINDS:
            assert committed(tmp_path, broker, topic, kind) <= truth
    assert killed_rounds >= len(rounds) / 2
    assert run(tmp_path, broker, topic, "nowhere", 0) == 0
    assert committed(tmp_path, broker, topic, "opaque") == truth
    assert committed(tmp_path, broker, topic, "transactional") == truth


def produce(broker: Broker, topic: str, truth: Counter[str], choose: random.Random) -> None:
    """Append sentences: some plainly, some in a transaction, some in one that is aborted."""
    for partition in range(3):
        sentences = [" ".join(choose.choices("abcdefghij", k=5)) for _ in range(12)]
        ending = choose.choice(("plain", "commit", "abort"))
        broker.append(topic, sentences, ending, partition=partition)
        if ending != "abort":
            truth.update(" ".join(sentences).split())


def run(folder: Path, broker: Broker, topic: str, how: str, number: float) -> int:
    """Run the program to its end, or until it is killed; its return code."""
    ended = forks.run(killed, folder, broker.servers, topic, how, number)
    assert "Traceback" not in ended.printed, ended.printed
    return ended.code


def committed(folder: Path, broker: Broker, topic: str, kind: str) -> Counter[str]:
    """What a query finds; nothing where a kill came before the state began."""
    with LocalDRPC(killed.topology(folder, broker.servers, topic).plan()) as drpc:
        try:
            return Counter(dict(json.loads(drpc.execute(kind, ""))))
        except DRPCExecutionError as error:
            if not isinstance(error.__cause__, NoStateError):
                raise
            return Counter()
