"""A client that asks servers what states hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import orjson

from trident.client.client import Client
from trident.client.server import Within
from trident.drpc.errors import DRPCInternalError, DRPCUsageError
from trident.state_service.errors import NoSuchKeyError
from trident.state_service.requests import READS, Read, json_of_key, text_of_key
from trident.states.typed_json import needs_tags, untagged
from trident.wire.errors import read_error

if TYPE_CHECKING:
    from trident.client.http_server import HTTPServer

_STATES = "/api/v1/state"


class StateValue(NamedTuple):
    """A value, and what it is of."""

    value: Any
    """The value; None without one."""
    txid: int | None
    """The batch that it is of; None before the first."""


class StateValues(NamedTuple):
    """Values of one moment, and what they are of."""

    values: list[Any]
    """The values in the order of the keys; None for each that is absent."""
    txid: int | None
    """The batch that they are of; None before the first."""


class StateInfo(NamedTuple):
    """A state, as a server describes it."""

    name: str
    """Its name."""
    key: Mapping[str, str | None] | None
    value: Mapping[str, str | None] | None
    """The types of the fields of its keys, none for a single value, and of its values; None where
    the topology doesn't know."""
    kind: str | None
    """How its values are kept: ``"opaque"``, ``"transactional"`` or ``"non-transactional"``."""
    reads: str
    """``"committed batches"``, or what else readers may see."""
    guarantee: str
    why: str
    """What is guaranteed of its content, and why."""
    group: str | None
    """The batch group that updates it, whose states can be read as of one batch; None for a state
    that the topology only reads."""
    txid: int | None
    """Its last committed batch."""
    problem: str | None
    """Why it can't be read at all, or now."""


class StateClient(Client):
    """Asks servers what the states of a topology hold; where one can't answer, the next is asked.

    A key is a text, or a tuple or list of the fields of a key; anything else is a key of that one
    field. Values come back as they are in the state, dates and decimals too. May be used by any
    number of threads.

    Parameters
    ----------
    *servers : str
        ``"host:port"``, ``"http://host:port"`` or ``"https://…"``; the port is 3774 by default.
    timeout : float
        Seconds that a call takes at most, with all servers that it asks.
    token : str, optional
        The caller's.
    ca : path, optional
        PEM file of who signs the servers' certificates; by default those of the system.
    certfile, keyfile : path, optional
        PEM files of the client's own certificate and its key.

    Raises
    ------
    DRPCUsageError
        For an invalid address.

    Examples
    --------
    >>> from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
    >>> topology = TridentTopology()
    >>> spout = FixedBatchSpout("word string", 1, ("cat",), ("dog",), ("cat",))
    >>> words = topology.newStream("words", spout).groupBy("word")
    >>> _ = words.persistentAggregate(MemoryMapState.Factory(), Count(), "n", name="counts")
    >>> with topology.start() as run:
    ...     run.processAllAvailable()
    ...     with StateClient(run.serve(port=0).url) as states:
    ...         states.get("counts", "cat"), states.multiGet("counts", ["dog", "cow"])
    (StateValue(value=2, txid=3), StateValues(values=[1, None], txid=3))
    """

    _schemes = ("http", "https")
    _repeatable = True

    def states(self, timeout: float | None = None) -> Mapping[str, StateInfo]:
        """Return the states that there are, by name, as far as the caller may read them.

        Parameters
        ----------
        timeout : float, optional
            Seconds, by default those of the client.

        Raises
        ------
        DRPCError
            The error of the last server that was asked.
        """
        answer = self._ask_json("the states", "", timeout=timeout)
        return {
            each["name"]: StateInfo(
                **{**each, "key": _types(each["key"]), "value": _types(each["value"])}
            )
            for each in answer["states"]
        }

    def get(
        self, name: str, key: Any = None, *, read: Read = "committed", timeout: float | None = None
    ) -> StateValue:
        """Return the value of a key, or the single value of a state without keys.

        Parameters
        ----------
        name : str
            The state's.
        key : object, optional
            The key; None for a state without keys, and ``(None,)`` for a key of one null.
        read : str
            ``"latest"`` for what was written last, of batches that may never be committed.
        timeout : float, optional
            Seconds, by default those of the client.

        Raises
        ------
        StateServiceError
            For a state that there isn't, or that can't be read.
        MalformedRequestError
            For a key that the state can't have.
        DRPCError
            The error of the last server that was asked.
        """
        below = f"/{quote(name, safe='')}"
        if key is not None:
            below += f"/{quote(text_of_key(_key(key)), safe='')}"
        try:
            answer = self._ask_json(name, below, read, timeout)
        except NoSuchKeyError as error:
            return StateValue(None, error.txid)
        return StateValue(untagged(answer["value"]), answer["txid"])

    def multiGet(
        self,
        name: str,
        keys: Sequence[Any],
        *,
        read: Read = "committed",
        timeout: float | None = None,
    ) -> StateValues:
        """Return the values of several keys of one state, of one moment.

        The parameters and errors are those of :meth:`get`.
        """
        below, asked = f"/{quote(name, safe='')}:batchGet", {"keys": _keys(keys)}
        answer = self._ask_json(name, below, read, timeout, asked)
        return StateValues(untagged(answer["values"]), answer["txid"])

    def batchGet(
        self,
        states: Mapping[str, Sequence[Any] | None],
        *,
        read: Read = "committed",
        timeout: float | None = None,
    ) -> Mapping[str, StateValue | StateValues]:
        """Return values of several states of one topology, those of a group as of one batch.

        Parameters
        ----------
        states : mapping of str to sequence, or to None
            The keys of each; None for the single value of a state without keys.
        read, timeout
            Those of :meth:`get`.

        Returns
        -------
        mapping
            Of each state its values; of one without keys its value.

        Raises
        ------
        DRPCError
            As :meth:`get`.
        """
        given: object = states
        if not isinstance(given, Mapping):
            what = f"StateClient: batchGet takes the keys of each state, found {given!r:.200}"
            raise DRPCUsageError(what, "", (), 'As in {"counts": ["cat"], "total": None}.')
        asked = {name: None if keys is None else _keys(keys) for name, keys in states.items()}
        answer = self._ask_json(", ".join(states), ":batchGet", read, timeout, {"states": asked})
        return {
            name: StateValue(untagged(found["value"]), found["txid"])
            if "value" in found
            else StateValues(untagged(found["values"]), found["txid"])
            for name, found in answer["states"].items()
        }

    def _ask_json(
        self,
        name: str,
        below: str,
        read: Read = "committed",
        timeout: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON of an answer: to a GET, or to a POST with a body."""
        if read not in READS:
            raise DRPCUsageError("StateClient: read is one of these, not", str(read), READS)
        path = f"{_STATES}{below}{'?read=latest' if read == 'latest' else ''}"
        method, data = ("GET", None) if body is None else ("POST", orjson.dumps(body))

        def ask(server: HTTPServer, within: Within) -> Any:
            answer = server.request(method, path, data, within)
            if answer.status != 200:
                raise read_error(name, "", answer.status, answer.data)
            try:
                return json.loads(answer.data)
            except ValueError as error:
                raise DRPCInternalError(name, "", "status 200, and no JSON") from error

        return self._ask(name, ask, timeout)


def _key(key: Any) -> Sequence[Any]:
    """Return a key as a sequence of fields; DRPCUsageError for a field that no key can have."""
    sequence = key if isinstance(key, tuple | list) else (key,)
    try:
        needs_tags(list(sequence))
    except TypeError as error:
        raise DRPCUsageError(f"StateClient: no key has a field that is {error}") from error
    return sequence


def _keys(keys: Sequence[Any]) -> list[Any]:
    if isinstance(keys, str | bytes):  # its letters would be taken for keys
        raise DRPCUsageError("StateClient: keys are a list of them, not", str(keys))
    return [json_of_key(_key(key)) for key in keys]


def _types(fields: Sequence[Mapping[str, Any]] | None) -> Mapping[str, str | None] | None:
    return None if fields is None else {each["name"]: each["type"] for each in fields}
