"""From requests to responses, without a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drpc.asking import asking, counts, held, until
from tests.server.asking_app import Answer, answer_of
from trident import MapGet, Sum, TridentTopology
from trident.backends import sqlite
from trident.drpc.errors import DRPCUsageError
from trident.drpc.service import LocalDRPC
from trident.errors import FailedException
from trident.server.access import Access
from trident.server.application import Application
from trident.server.functions import Functions
from trident.server.limits import DRPCLimits
from trident.server.routes.drpc import drpc_routes
from trident.states.errors import StateUnavailableError


def failing(args: str) -> list[str]:
    match args:
        case "failed":
            raise FailedException("not today")
        case "away":
            raise StateUnavailableError("redis://secret.example:6379", "refused")
        case "odd":
            raise ValueError("odd \ud800")
    return [args]


@pytest.fixture
def drpc() -> Iterator[LocalDRPC]:
    topology = asking(MapGet(), counts({"the cat": 1, "cat": 2, "ü/🐄": 3}))
    topology.newDRPCStream("echo").each("args", failing, "out").project("out")
    with LocalDRPC(topology.plan()) as drpc:
        yield drpc


def app(
    drpc: LocalDRPC, access: Access | None = None, limits: DRPCLimits | None = None
) -> Application:
    limits = limits or DRPCLimits()
    return Application(drpc_routes(Functions([drpc], access or Access(), limits)), limits.args)


def asked(
    drpc: LocalDRPC,
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    access: Access | None = None,
    limits: DRPCLimits | None = None,
) -> Answer:
    return asyncio.run(answer_of(app(drpc, access, limits), method, target, body, headers))


def told(response: Answer) -> tuple[int, Any]:
    return response.status, json.loads(response.body)


@pytest.mark.parametrize(
    ("method", "target", "body", "args"),
    [
        ("GET", "/drpc/echo/cat", b"", "cat"),
        ("GET", "/drpc/echo/the%20cat", b"", "the cat"),
        ("GET", "/drpc/echo/a+b%2Bc", b"", "a+b+c"),
        ("GET", "/drpc/echo/a/b%2Fc", b"", "a/b/c"),
        ("GET", "/drpc/echo/%C3%BC?ignored=1", b"", "ü"),
        ("GET", "/drpc/echo", b"", ""),
        ("GET", "/drpc/echo/", b"", ""),
        ("GET", "/drpc/%65cho/cat", b"", "cat"),
        ("POST", "/drpc/echo", b"the \xf0\x9f\x90\x84", "the 🐄"),
        ("POST", "/drpc/echo", b"", ""),
    ],
)
def test_storms_urls_are_answered(
    drpc: LocalDRPC, method: str, target: str, body: bytes, args: str
) -> None:
    response = asked(drpc, method, target, body)
    assert told(response) == (200, [[args]])
    assert response.header("Content-Type") == "application/json"


def test_an_unknown_function_is_404_with_those_that_the_caller_may_call(drpc: LocalDRPC) -> None:
    access = Access({"ann": "t"}, {"words": ["ann"], "wodrs": ["ann"]})
    bearer = {"authorization": "Bearer t"}
    status, body = told(asked(drpc, "GET", "/drpc/wodrs", headers=bearer, access=access))
    assert (status, body["error"]) == (404, "UNKNOWN_FUNCTION")
    assert body["functions"] == ["words"]
    assert "Did you mean 'words'?" in body["errorMessage"]


def test_a_users_exception_is_400_with_message_and_step_and_no_frame(drpc: LocalDRPC) -> None:
    status, body = told(asked(drpc, "GET", "/drpc/echo/odd"))
    assert (status, body["error"]) == (400, "FAILED_REQUEST")
    assert body["errorMessage"].startswith("ValueError: odd ? in the step each(args, failing")
    assert "File" not in body["errorMessage"]
    assert ".py" not in body["errorMessage"]
    assert told(asked(drpc, "GET", "/drpc/echo/failed"))[0] == 400


def test_a_store_that_is_away_is_503_and_isnt_named(drpc: LocalDRPC) -> None:
    response = asked(drpc, "GET", "/drpc/echo/away")
    assert told(response)[0] == 503
    assert response.header("Retry-After") == "1"
    assert b"secret" not in response.body


def test_a_state_that_has_not_begun_is_503_and_logged_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topology = asking(MapGet(), sqlite.opaque(tmp_path / "empty.db"))
    with LocalDRPC(topology.plan()) as drpc:
        response = asked(drpc, "GET", "/drpc/words/cat")
    status, body = told(response)
    assert (status, body["error"]) == (503, "STATE_NOT_THERE")
    assert response.header("Retry-After") == "1"
    assert "has not begun. Start its topology" in body["errorMessage"]
    assert b"empty.db" not in response.body
    [logged] = caplog.records
    assert (logged.levelname, logged.exc_info) == ("WARNING", None)
    assert "empty.db" in logged.getMessage()


def test_what_the_library_fails_with_is_500_and_logged_only(
    drpc: LocalDRPC, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*given: Any, **named: Any) -> str:
        raise ZeroDivisionError("internals")

    monkeypatch.setattr(drpc, "execute_async", broken)
    status, body = told(asked(drpc, "GET", "/drpc/echo/a"))
    assert (status, body["error"]) == (500, "INTERNAL_ERROR")
    assert "internals" not in str(body)
    assert "internals" in caplog.text


def test_time_over_is_504_with_function_time_and_queue() -> None:
    with held() as (drpc, _):
        headers = {"x-drpc-timeout": "0.01"}
        status, body = told(asked(drpc, "GET", "/drpc/words/held", headers=headers))
    assert (status, body["error"], body["function"]) == (504, "SERVER_TIMEOUT", "words")
    assert body["elapsed"] >= 0.01
    assert body["queueLength"] == 0


def test_a_client_can_ask_for_less_time_than_the_servers_and_not_for_more() -> None:
    with held() as (drpc, _):
        headers = {"x-drpc-timeout": "1000"}
        limits = DRPCLimits(timeout=0.01)
        response = asked(drpc, "GET", "/drpc/words/held", headers=headers, limits=limits)
    assert response.status == 504


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf"])
def test_a_time_that_is_no_number_of_seconds_is_400(drpc: LocalDRPC, seconds: str) -> None:
    response = asked(drpc, "GET", "/drpc/echo/a", headers={"x-drpc-timeout": seconds})
    assert (response.status, b"X-DRPC-Timeout" in response.body) == (400, True)


def test_a_full_queue_is_503_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(app: Application) -> list[Answer]:
        return await asyncio.gather(*[answer_of(app, "GET", "/drpc/words/held") for _ in range(40)])

    with held() as (drpc, _):
        responses = asyncio.run(ask(app(drpc, limits=DRPCLimits(timeout=0.2))))
    full = [each for each in responses if each.status == 503]
    assert full
    assert full[0].header("Retry-After") == "1"
    assert json.loads(full[0].body)["queueLength"] == 10
    assert {each.status for each in responses} == {503, 504}


def test_shutting_down_is_503_with_storms_name(drpc: LocalDRPC) -> None:
    functions = Functions([drpc], Access(), DRPCLimits())
    functions.close()
    response = asyncio.run(answer_of(drpc_routes(functions), "GET", "/drpc/echo/a"))
    assert (response.status, json.loads(response.body)["error"]) == (503, "SERVER_SHUTDOWN")
    assert response.header("Retry-After") == "1"


@pytest.mark.parametrize(("size", "status"), [(2**20, 200), (2**20 + 1, 413)])
def test_arguments_have_a_megabyte_at_most(drpc: LocalDRPC, size: int, status: int) -> None:
    assert asked(drpc, "POST", "/drpc/echo", b"a" * size).status == status


def test_the_megabyte_is_of_utf8(drpc: LocalDRPC) -> None:
    limits = DRPCLimits(args=10)
    assert asked(drpc, "POST", "/drpc/echo", "ü".encode() * 5, limits=limits).status == 200
    assert asked(drpc, "POST", "/drpc/echo", "ü".encode() * 6, limits=limits).status == 413


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/drpc/echo", b"a\xff"),
        ("GET", "/drpc/echo/%ff", b""),
        ("GET", "/drpc/%C3", b""),
        ("GET", "/drpc/echo/%ed%a0%80", b""),
    ],
)
def test_malformed_utf8_is_400(drpc: LocalDRPC, method: str, target: str, body: bytes) -> None:
    status, said = told(asked(drpc, method, target, body))
    assert (status, said["error"]) == (400, "MALFORMED_REQUEST")


def test_a_function_that_updates_is_called_by_post_only() -> None:
    topology = TridentTopology()
    (
        topology.newDRPCStream("deposit", answers="memory:answers")
        .each("args", lambda args: [(args, 5)], "name, amount")
        .groupBy("name")
        .persistentAggregate("memory:accounts", "amount", Sum(), "balance")
    )
    with topology.start() as run:
        for target in ("/drpc/deposit", "/drpc/deposit/ann"):
            refused = asked(run.drpc, "GET", target)
            assert told(refused)[:1] == (405,)
            assert refused.header("Allow") == "POST"
            assert "'deposit' updates a state: call it by POST" in refused.body.decode()
        assert asked(run.drpc, "HEAD", "/drpc/deposit/ann").status == 405
        assert asked(run.drpc, "GET", "/drpc/deposit", access=Access({"a": "b"})).status == 401
        assert told(asked(run.drpc, "POST", "/drpc/deposit", b"ann")) == (200, [["ann", 5]])


def test_other_paths_are_404_and_other_methods_405(drpc: LocalDRPC) -> None:
    assert told(asked(drpc, "GET", "/"))[0] == 404
    response = asked(drpc, "DELETE", "/drpc/echo/a")
    assert response.status == 405
    assert response.header("Allow") == "GET, HEAD"


@pytest.mark.parametrize(
    ("authorization", "words", "echo", "free"),
    [
        (None, 401, 401, 200),
        ("Bearer wrong", 401, 401, 200),
        ("Basic a-token", 401, 401, 200),
        ("Bearer a-token", 200, 403, 200),
        ("bearer b-token", 403, 200, 200),
    ],
)
def test_a_function_is_answered_to_the_users_of_its_list(
    authorization: str | None, words: int, echo: int, free: int
) -> None:
    access = Access(
        {"ann": "a-token", "bob": "b-token"}, {"words": ["ann"], "echo": ["bob"], "free": ["*"]}
    )
    topology = TridentTopology()
    for function in ("words", "echo", "free"):
        topology.newDRPCStream(function).map(str.upper, "text")
    headers = {"authorization": authorization} if authorization else {}
    with LocalDRPC(topology.plan()) as drpc:
        responses = [
            asked(drpc, "GET", f"/drpc/{function}/a", headers=headers, access=access)
            for function in ("words", "echo", "free")
        ]
    assert [each.status for each in responses] == [words, echo, free]
    for each in responses:
        assert (each.status == 401) == (each.header("WWW-Authenticate") == "Bearer")


def test_with_tokens_and_no_list_every_user_may_call_every_function(drpc: LocalDRPC) -> None:
    access = Access({"ann": "a"})
    assert asked(drpc, "GET", "/drpc/echo/a", access=access).status == 401
    bearer = {"authorization": "Bearer a"}
    assert asked(drpc, "GET", "/drpc/echo/a", headers=bearer, access=access).status == 200


def test_wrong_access_and_limits_are_refused() -> None:
    with pytest.raises(DRPCUsageError, match="no token for the user 'bob'"):
        Access({"ann": "a"}, {"words": ["bob"]})
    with pytest.raises(DRPCUsageError, match="isn't empty"):
        Access({"ann": ""})
    with pytest.raises(DRPCUsageError, match="args is a number above 0, found '-1'"):
        DRPCLimits(args=-1)


def test_a_call_that_ends_leaves_nothing_in_the_queue(drpc: LocalDRPC) -> None:
    asked(drpc, "GET", "/drpc/words/cat")
    until(lambda: drpc.waiting("words") == 0)
