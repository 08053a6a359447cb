"""How far the sources of a streaming query are behind, by what Spark says of its last batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trident.batch.lag import Lag


def lag_of(progress: Any) -> Lag | None:
    """Return how far the sources are behind; None where none of them says so.

    Kafka's says up to which offsets there are records that it may read, per partition: what open
    transactions hold back is not known here. A folder's says how many files wait, but not how many
    tuples these hold.

    `progress` is as Spark reports it.

    Examples
    --------
    >>> kafka = {"description": "KafkaV2[Subscribe[lines]]",
    ...          "endOffset": {"lines": {"0": 10, "1": 5}},
    ...          "latestOffset": {"lines": {"0": 12, "1": 5}}}
    >>> lag_of({"sources": [kafka]})
    Lag(tuples=2, detail='KafkaV2[Subscribe[lines]]: 2', held_back=None)
    >>> files = {"description": "FileStreamSource[file:/lines]",
    ...          "metrics": {"numFilesOutstanding": "3"}}
    >>> lag_of({"sources": [files]})
    Lag(tuples=None, detail='FileStreamSource[file:/lines]: 3 files', held_back=None)
    """
    shown: dict[str, str] = {}
    tuples: int | None = None
    for source in progress["sources"]:
        name = source["description"]
        records = _count_records(source)
        files = (source.get("metrics") or {}).get("numFilesOutstanding")
        if records is not None:
            tuples = (tuples or 0) + records
            shown[name] = str(records)
        elif files is not None:
            shown[name] = f"{files} files"
        else:
            shown[name] = "not known"
    if all(each == "not known" for each in shown.values()):
        return None
    return Lag(tuples, ", ".join(f"{name}: {each}" for name, each in shown.items()))


def _count_records(source: Any) -> int | None:
    """How many records are behind the last batch, where offsets are numbers by partition."""
    end, latest = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
    if end is None or latest is None:
        return None
    return sum(max(0, offset - end.get(place, 0)) for place, offset in latest.items())


def _offsets(reported: Any) -> Mapping[tuple[str, str], int] | None:
    """Offsets by topic and partition; None where a source counts in another way."""
    try:
        return {
            (topic, partition): int(offset)
            for topic, partitions in reported.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        return None
