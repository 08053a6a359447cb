"""Finds the partitions of a stream, where each begins, and how far it can be read now."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from trident.backends.kafka.driver import START, Admin, admin_module, driver, is_away
from trident.errors import SourceUnavailableError
from trident.shared_call import SharedCall
from trident.spouts.kafka.reader import Place
from trident.spouts.kafka.settings import KafkaSettings
from trident.spouts.partitioned import PartitionCoordinator
from trident.states.values import Token

_logger = logging.getLogger("trident")
_FRESH = 5.0
"""Seconds for which the known ends of partitions give the lag."""


class KafkaCoordinator(PartitionCoordinator):
    """Asks the cluster, on the driver: before each batch once, all partitions together."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin = Admin(settings.admin())
        self._topics: dict[str, str | None] = {}
        self._places: list[Place] = []
        self._refreshed: float | None = None
        self._listed = False
        self._missing: set[str] = set()
        self._ends: dict[Place, int | str] = {}
        self._asked_anew = False
        self._known: Mapping[str, Any] | None = None
        self._strategies: dict[Place, str] = {}
        self._begins: dict[Place, int] = {}
        self._logged: set[str] = set()
        self._ends_of_lag: tuple[float, Mapping[Place, int | str]] = 0.0, {}
        self._asks_for_lag = SharedCall(self._ask_for_lag, _FRESH)
        self._held_back: int | None = None
        self._asks_for_held_back = SharedCall(self._ask_for_held_back, _FRESH)

    def follow(self, metadata: Mapping[str, Any]) -> None:
        if self._known is None:
            self._logged = set(_losses(metadata))
        self._known = metadata

    def isReady(self, txid: int) -> bool:
        if self._known is None or self._has_more():
            return True
        try:
            self._ask()
        except SourceUnavailableError:
            return True  # the batch will say so, and wait
        return self._has_more()

    def _has_more(self) -> bool:
        known = self._known or {}
        for place, end in self._ends.items():
            said = known.get(_name(place))
            # Also if it ends before that, or has another topic's id: the reader finds out why.
            if isinstance(end, int) and (
                said is None or said["next"] != end or said["topic"] != self._topics[place[0]]
            ):
                return True
        return False

    def lag(self, txid: int) -> int | None:
        """Return how many records follow those that are emitted, as is known now.

        A batch asks for the ends of its partitions. While a batch takes long, or waits for a store,
        another thread asks, for the next call. Offsets are counted, including compacted ones and
        markers of transactions.
        """
        asked, ends = self._ends_of_lag
        if not asked:
            return None  # no batch has asked yet
        if monotonic() - asked > _FRESH:
            self._asks_for_lag.ask()
        known = self._known or {}
        behind = [
            end - (begin if said is None else said["next"])
            for place, end in ends.items()
            if isinstance(end, int)
            for said in [known.get(_name(place))]
            for begin in [self._begins.get(place, end)]
        ]
        return sum(max(0, each) for each in behind)

    def _ask_for_lag(self) -> None:
        ends = self._offsets(dict.fromkeys(self._places, "LATEST"))
        self._ends_of_lag = monotonic(), ends

    def held_back(self) -> int | None:
        """Return how many offsets follow the last stable one: those of open transactions, and all
        after them.

        A call has another thread ask, every 5 seconds at most, and returns what is known so far.
        """
        if not self._places:
            return None  # no batch has asked yet
        if self._settings.reads_committed:
            self._asks_for_held_back.ask()
            return self._held_back
        return 0

    def _ask_for_held_back(self) -> None:
        asked = dict.fromkeys(self._places, "LATEST")
        ends = self._offsets(asked, committed=False)
        # Asked last, so that records committed meanwhile don't count as held back.
        stable = self._offsets(asked)
        pairs = [(end, stable.get(place)) for place, end in ends.items()]
        known = [
            max(0, end - least)
            for end, least in pairs
            if isinstance(end, int) and isinstance(least, int)
        ]
        self._held_back = sum(known) if known else None

    def getPartitionsForBatch(self) -> list[KafkaPartition]:
        if not self._asked_anew:
            self._ask()
        self._asked_anew = False
        self._find_begins()
        made = []
        for place in self._places:
            topic, partition = place
            end, begin = self._ends[place], self._begins.get(place)
            away = end if isinstance(end, str) else ""
            if not away and begin is None and _name(place) not in (self._known or {}):
                away = "its leader could not be asked where to begin"
            made.append(
                KafkaPartition(
                    topic,
                    partition,
                    self._topics[topic],
                    begin,
                    None if away or isinstance(end, str) else end,
                    away,
                )
            )
        return made

    def success(self, token: Token) -> None:
        for loss in _losses(self._known or {}):
            if loss not in self._logged:
                self._logged.add(loss)
                _logger.warning("%s; the stream goes on without", loss)

    def _ask(self) -> None:
        """Learn how far each partition can be read."""
        since = self._refreshed
        if since is None or monotonic() - since >= self._settings.partition_refresh:
            self._refresh()
        self._ends = self._offsets(dict.fromkeys(self._places, "LATEST"))
        self._ends_of_lag = monotonic(), self._ends
        failed = [end for end in self._ends.values() if isinstance(end, str)]
        if failed:
            self._refreshed = None  # perhaps they were removed
            if len(failed) == len(self._ends):
                raise SourceUnavailableError(self._settings.place, failed[0])
        self._asked_anew = True

    def _refresh(self) -> None:
        found: dict[str, str | None] = {}
        places: list[Place] = []
        names = self._names()
        for topic, described in self._described(names).items():
            found[topic] = _topic_id(described)
            places += [(topic, partition.id) for partition in described.partitions]
        removed = set(self._places) - set(places)
        if removed:
            _logger.warning(
                "%s: removed, and read no more: %s",
                *(self._settings.place, ", ".join(sorted(map(_name, removed)))),
            )
        # The strategy is for partitions that exist when a stream begins. Later ones are read from
        # their first record.
        known = self._known or {}
        for place in places:
            if _name(place) not in known:
                late = self._listed or known or place[0] in self._missing
                strategy = "EARLIEST" if late else self._settings.first_poll.otherwise
                self._strategies.setdefault(place, strategy)
        self._topics, self._places, self._listed = found, sorted(places), True
        # A missing topic may appear soon, as after a broker's start: look again at once.
        self._refreshed = None if removed or len(found) < len(names) else monotonic()

    def _unavailable(self, error: Exception) -> SourceUnavailableError:
        advice = START if is_away(error.args[0]) else ""
        return SourceUnavailableError(self._settings.place, _problem(error), advice)

    def _names(self) -> list[str]:
        topics = self._settings.topics
        if not isinstance(topics, re.Pattern):
            return list(topics)
        try:
            listed = self._admin.client().list_topics(timeout=self._settings.poll_timeout).topics
        except driver().KafkaException as error:
            raise self._unavailable(error) from error
        return [name for name in listed if not name.startswith("__") and topics.fullmatch(name)]

    def _described(self, names: list[str]) -> dict[str, Any]:
        kafka = driver()
        if not names:
            return {}
        asked = self._admin.client().describe_topics(
            kafka.TopicCollection(names), request_timeout=self._settings.poll_timeout
        )
        described = {}
        for name, future in asked.items():
            try:
                described[name] = future.result()
            except kafka.KafkaException as error:
                missing = error.args[0].code() == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
                if not missing:
                    raise self._unavailable(error) from error
                if name not in self._topics and not self._is_known(name):
                    self._missing.add(name)
                    raise SourceUnavailableError(
                        self._settings.place,
                        f"there is no topic {name!r}",
                        "Create it, or correct its name: the stream waits for it.",
                    ) from error
        return described

    def _is_known(self, topic: str) -> bool:
        return any(name.rpartition("-")[0] == topic for name in self._known or {})

    def _find_begins(self) -> None:
        """Find where to begin in partitions that the log doesn't know, once each."""
        due = {
            place: strategy
            for place, strategy in self._strategies.items()
            if place not in self._begins and place in self._ends
        }
        if not due:
            return
        offsets = self._settings.offsets
        self._begins.update({each: offsets[_name(each)] for each in due if _name(each) in offsets})
        self._begins.update(self._committed(due))
        others = {place: strategy for place, strategy in due.items() if place not in self._begins}
        for place, offset in self._offsets(others).items():
            if isinstance(offset, int):
                self._begins[place] = offset

    def _committed(self, due: Mapping[Place, str]) -> dict[Place, int]:
        """The offsets that the consumer group has committed."""
        group = self._settings.group
        strategy = self._settings.first_poll.otherwise
        if group is None or strategy not in due.values():
            return {}
        kafka = driver()
        at = [kafka.TopicPartition(topic, partition) for topic, partition in due]
        asked = self._admin.client().list_consumer_group_offsets(
            [kafka.ConsumerGroupTopicPartitions(group, at)],
            request_timeout=self._settings.poll_timeout,
        )
        try:
            found = asked[group].result().topic_partitions
        except kafka.KafkaException as error:
            raise self._unavailable(error) from error
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _offsets(
        self, asked: Mapping[Place, str], *, committed: bool = True
    ) -> dict[Place, int | str]:
        """The offset asked for of each place, or its error; the latest one of committed
        transactions, or if not `committed` of all."""
        if not asked:
            return {}
        kafka, settings = driver(), self._settings
        spec = admin_module().OffsetSpec
        specs = {"EARLIEST": spec.earliest(), "LATEST": spec.latest()}
        if settings.timestamp is not None:
            specs["TIMESTAMP"] = spec.for_timestamp(settings.timestamp)
        level = kafka.IsolationLevel
        futures = self._admin.client().list_offsets(
            {kafka.TopicPartition(*place): specs[which] for place, which in asked.items()},
            isolation_level=(
                level.READ_COMMITTED
                if committed and settings.reads_committed
                else level.READ_UNCOMMITTED
            ),
            request_timeout=settings.poll_timeout,
        )
        found: dict[Place, int | str] = {}
        late = []
        for at, future in futures.items():
            place = at.topic, at.partition
            try:
                found[place] = future.result().offset
            except kafka.KafkaException as error:
                found[place] = _problem(error)
            else:
                if found[place] == -1:  # no record is that new
                    late.append(place)
        return {**found, **self._offsets(dict.fromkeys(late, "LATEST"))}


def _name(place: Place) -> str:
    return KafkaPartition(*place, None, None, None).getId()


def _topic_id(described: Any) -> str | None:
    found = str(described.topic_id) if described.topic_id is not None else ""
    return found if found.strip("A") else None  # no id is all zeros, as base64


def _problem(error: Exception) -> str:
    [cause] = error.args
    return f"{cause.name()}: {cause.str()}"


def _losses(metadata: Mapping[str, Any]) -> Iterable[str]:
    for name, said in metadata.items():
        span = f"partition {name}, offsets {said['first']} to {said['next'] - 1}"
        if "lost" in said:
            yield f"partition {name}: {said['lost']}"
        if "skipped" in said:
            yield f"{span}: {said['skipped']} records did not decode"


@dataclass(frozen=True, order=True)
class KafkaPartition:
    """One partition when a batch began; pickles. Its `end` is None if it is `away`."""

    topic: str
    partition: int
    topic_id: str | None
    begin: int | None
    end: int | None
    away: str = ""

    def getId(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def place(self) -> Place:
        return self.topic, self.partition
