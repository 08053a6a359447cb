"""The client of states: what comes back, and what becomes of servers that can't answer."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.drpc.asking import PATIENCE
from tests.servers.certificates import make_certificates
from tests.state_service.asking import AlertFactory, HeldMap, entries, over, sales, static
from trident import DRPCClient, StateClient
from trident.backends import sqlite
from trident.client.state_client import StateValue, StateValues
from trident.drpc.errors import (
    DRPCAccessError,
    DRPCTimeoutError,
    DRPCUsageError,
    MalformedRequestError,
    NoServerError,
    StateNotThereError,
)
from trident.server.limits import DRPCLimits
from trident.server.server import DRPCServer
from trident.state_service.errors import (
    AnswerTooLargeError,
    NoJSONError,
    NoSuchKeyError,
    StateLeftOutError,
    TooManyKeysError,
    UnknownStateError,
)
from trident.wire.errors import error_json, public_error, read_error

VALUES: list[Any] = [
    5,
    5.0,
    float("inf"),
    True,
    "text",
    [1, None],
    {"a": {"$b": 1}},
    {"$date": "tomorrow"},
    date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    datetime(2026, 1, 2),
    Decimal("1.50"),
    b"cat\xff",
    UUID(int=5),
    (1, "a"),
    {1: "a", date(2026, 1, 2): None},
]


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    topology = static(
        values=entries({(n,): value for n, value in enumerate(VALUES)}),
        texts=entries({"a": 1, "[b]": 2, "c/d?e=f": 3, "ü": 4}),
        odd=entries({"a": {1, 2}}),
        alerts=AlertFactory(),
        **{"a/b:batchGet": entries({"a": 7})},
    )
    with DRPCServer(topology, port=0, limits=DRPCLimits(keys=50)) as server:
        yield server


@pytest.fixture
def client(server: DRPCServer) -> Iterator[StateClient]:
    with StateClient(server.url) as client:
        yield client


def test_values_come_back_equal_and_of_their_types(client: StateClient) -> None:
    for number, value in enumerate(VALUES):
        found = client.get("values", number)
        assert found == StateValue(value, 1)
        assert type(found.value) is type(value)
    together = client.multiGet("values", range(len(VALUES)))
    assert together == StateValues(VALUES, 1)
    assert list(map(type, together.values)) == list(map(type, VALUES))


def test_texts_are_keys_whatever_they_are_made_of(client: StateClient) -> None:
    for number, key in enumerate(["a", "[b]", "c/d?e=f", ("ü",)], 1):
        assert client.get("texts", key).value == number
    assert client.multiGet("texts", ["a", "b", ["[b]"]]).values == [1, None, 2]
    assert client.get("a/b:batchGet", "a").value == 7
    assert client.multiGet("a/b:batchGet", ["a"]).values == [7]


def test_what_isnt_there_is_none_with_its_batch(client: StateClient) -> None:
    assert client.get("texts", "x") == StateValue(None, 1)
    assert client.get("values", (None,)) == StateValue(None, 1)


def test_states_are_described_and_several_are_read_at_once() -> None:
    with sales().start() as run:
        run.processAllAvailable()
        with StateClient(run.serve(port=0).url) as client:
            states = client.states()
            assert {name: state.txid for name, state in states.items()} == {"counts": 3, "total": 3}
            assert states["counts"].key == {"animal": "string"}
            assert (states["total"].key, states["total"].group) == ({}, "sold")
            assert client.get("total") == StateValue(8, 3)
            assert client.get("total", read="latest") == StateValue(8, 3)
            asked = {"total": None, "counts": ["cat", "cow"]}
            found = {"total": StateValue(8, 3), "counts": StateValues([2, None], 3)}
            assert client.batchGet(asked) == found
            assert client.batchGet(asked, read="latest") == found


def test_what_a_server_refuses_is_raised_here_as_itself(client: StateClient) -> None:
    with pytest.raises(UnknownStateError, match="Did you mean 'texts'") as unknown:
        client.get("texst", "a")
    assert "texts" in unknown.value.states
    with pytest.raises(StateLeftOutError, match="AlertFactory keeps it"):
        client.multiGet("alerts", ["a"])
    with pytest.raises(NoJSONError, match="'odd' holds of the key .* a set"):
        client.get("odd", "a")
    with pytest.raises(TooManyKeysError, match="51 keys .* 50 are the most"):
        client.multiGet("texts", ["a"] * 51)
    with pytest.raises(DRPCUsageError, match="no key has a field that is a set"):
        client.get("texts", {1})
    with pytest.raises(DRPCUsageError, match="read is one of these"):
        client.get("texts", "a", read="newest")  # type: ignore[arg-type]
    with pytest.raises(DRPCUsageError, match="keys are a list of them, not 'abc'"):
        client.multiGet("texts", "abc")
    with pytest.raises(DRPCUsageError, match="takes the keys of each state, found "):
        client.batchGet(["texts"])  # type: ignore[arg-type]


def test_a_key_that_the_state_cant_have_is_raised_with_its_fields() -> None:
    with sales().start() as run, StateClient(run.serve(port=0).url) as client:
        with pytest.raises(MalformedRequestError) as wrong:
            client.get("counts", 5)
        assert str(wrong.value).count("the request can't be read") == 1
        assert "animal string; found int 5" in str(wrong.value)


def unused_port() -> int:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def test_another_server_is_asked_where_one_is_away_or_has_no_such_state_yet(
    server: DRPCServer, tmp_path: Path
) -> None:
    begins_later = sqlite.opaque(tmp_path / "texts.db", prefix="texts")
    with DRPCServer(static(texts=begins_later), port=0) as empty:
        with StateClient(f"127.0.0.1:{unused_port()}", empty.url, server.url) as client:
            assert client.get("texts", "a").value == 1
        with StateClient(empty.url) as client, pytest.raises(StateNotThereError):
            client.get("texts", "a")
    with StateClient(empty.url) as client, pytest.raises(NoServerError):
        client.get("texts", "a")


def test_a_state_that_hangs_ends_in_time() -> None:
    held = HeldMap()
    with (
        DRPCServer(static(slow=entries({"a": 1}, over(held))), port=0) as server,
        StateClient(server.url, timeout=0.3) as client,
    ):
        with pytest.raises(DRPCTimeoutError, match="'state/slow'|'slow'"):
            client.get("slow", "held")
        held.go_on.set()
        assert client.get("slow", "a", timeout=PATIENCE).value == 1


def test_tokens_and_tls_are_those_of_the_other_client(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    access = {"tokens": {"ann": "s3cret"}, "allow": {"state/counts": ["ann"]}}
    with DRPCServer(
        static(counts=entries({"a": 1}), total=entries({})),
        port=0,
        certfile=files.certificate,
        keyfile=files.key,
        **access,  # type: ignore[arg-type]
    ) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        with StateClient(url, token="s3cret", ca=files.authority) as client:
            assert client.get("counts", "a").value == 1
            assert [*client.states()] == ["counts"]
            with pytest.raises(DRPCAccessError):
                client.get("total", "a")
        with StateClient(url, ca=files.authority) as client, pytest.raises(DRPCAccessError):
            client.states()


def test_an_address_that_isnt_of_http_is_refused() -> None:
    with pytest.raises(DRPCUsageError, match=r"StateClient: .* http://host:port\.$"):
        StateClient("thrift://localhost")
    with pytest.raises(DRPCUsageError, match="StateClient: give a server"):
        StateClient()


def test_what_is_told_to_be_known_has_no_body_and_the_connection_goes_on(
    server: DRPCServer,
) -> None:
    assert server.port is not None
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as connection:
        tags = []
        for _ in range(3):
            connection.request(
                "GET", "/api/v1/state/texts/a", headers={"If-None-Match": (tags or [""])[0]}
            )
            response = connection.getresponse()
            tags.append(response.headers["ETag"])
            assert (response.status, response.read() == b"") in ((200, False), (304, True))
            assert (response.headers["Content-Length"] is None) == (response.status == 304)
    assert len({*tags}) == 1


def test_queries_are_still_answered_beside_states(server: DRPCServer) -> None:
    with sales().start() as run:
        run.processAllAvailable()
        with DRPCClient(run.serve(port=0).url) as client:
            assert client.execute("times", "cat") == "[[2]]"


@pytest.mark.parametrize(
    "error",
    [
        UnknownStateError("a", ["b"]),
        StateLeftOutError("a", "why"),
        NoSuchKeyError("a", '["b"]', 3),
        NoJSONError("a", None, "a set"),
        TooManyKeysError(5, 3),
        AnswerTooLargeError(3),
    ],
)
def test_errors_pickle_and_are_known_by_their_names(error: Any) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    told = public_error(error)
    read = read_error("a", "", told.status, error_json(told.error, told.message, **told.details))
    assert (type(read), str(read)) == (type(error), str(error))
