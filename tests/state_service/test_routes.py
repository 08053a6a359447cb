"""What is asked of states, and what is told, without a connection."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate

from tests.drpc.asking import PATIENCE
from tests.server.asking_app import Answer
from tests.state_service.asking import (
    AlertFactory,
    HeldMap,
    asked,
    entries,
    header,
    over,
    response_to,
    sales,
    serving,
    static,
    told,
)
from trident import (
    Count,
    FeederBatchSpout,
    FixedBatchSpout,
    MemoryMapState,
    TridentTopology,
    TumblingCountWindow,
)
from trident.backends import sqlite
from trident.backends.memory import MemoryMap
from trident.drpc.errors import DRPCUsageError
from trident.drpc.gathering import MOST_TICKS
from trident.server.access import Access
from trident.server.application import methods_and_paths
from trident.server.asgi import DRPCApp
from trident.server.limits import DRPCLimits
from trident.server.serving import Serving
from trident.state_service import reads
from trident.states import OpaqueMap, OpaqueValue, TransactionalMap
from trident.states.control import ControlRecord
from trident.states.errors import StateUnavailableError
from trident.states.values import Token

TAGS = ["$date", "$timestamp", "$decimal", "$binary", "$uuid", "$double", "$tuple", "$map", "$dict"]


@pytest.fixture(scope="module")
def sold() -> Iterator[Serving]:
    """What is served of a run that has counted three sales."""
    with sales().start() as run:
        run.processAllAvailable()
        with closing(serving(run)) as found:
            yield found


def test_states_are_listed_with_what_is_known_of_them(sold: Serving) -> None:
    status, body = told(asked(sold, "GET", "/api/v1/state"))
    assert status == 200
    assert body["functions"] == ["times"]
    counts, total = body["states"]
    assert counts == {
        "name": "counts",
        "key": [{"name": "animal", "type": "string"}],
        "value": [{"name": "times", "type": "long"}],
        "kind": "opaque",
        "reads": "committed batches",
        "guarantee": "exactly once",
        "why": "transactional stream, opaque map",
        "group": "sold",
        "txid": 3,
        "problem": None,
    }
    assert (total["name"], total["key"], total["txid"]) == ("total", [], 3)


def test_a_value_is_told_with_its_key_and_batch(sold: Serving) -> None:
    status, body = told(asked(sold, "GET", "/api/v1/state/counts/cat"))
    assert (status, body) == (
        200,
        {"state": "counts", "read": "committed", "key": ["cat"], "txid": 3, "value": 2},
    )


def test_the_value_of_a_state_without_keys_is_told_without_one(sold: Serving) -> None:
    status, body = told(asked(sold, "GET", "/api/v1/state/total"))
    assert (status, body) == (200, {"state": "total", "read": "committed", "txid": 3, "value": 8})


def test_a_key_that_isnt_there_is_404_with_the_batch(sold: Serving) -> None:
    status, body = told(asked(sold, "GET", "/api/v1/state/counts/cow"))
    assert (status, body["error"]) == (404, "NO_SUCH_KEY")
    assert (body["state"], body["key"], body["txid"]) == ("counts", ["cow"], 3)


def test_an_unknown_state_is_404_with_those_that_there_are(sold: Serving) -> None:
    status, body = told(asked(sold, "GET", "/api/v1/state/cuonts/cat"))
    assert (status, body["error"]) == (404, "UNKNOWN_STATE")
    assert body["states"] == ["counts", "total"]
    assert "Did you mean 'counts'?" in body["errorMessage"]


def test_keys_are_answered_in_their_order_and_those_that_arent_there_as_null(
    sold: Serving,
) -> None:
    body = {"keys": ["dog", ["cat"], "cow", "dog"]}
    assert told(asked(sold, "POST", "/api/v1/state/counts:batchGet", body)) == (
        200,
        {"state": "counts", "read": "committed", "txid": 3, "values": [1, 2, None, 1]},
    )
    nothing = told(asked(sold, "POST", "/api/v1/state/counts:batchGet", {"keys": []}))
    assert nothing[1]["values"] == []


def test_several_states_are_asked_at_once(sold: Serving) -> None:
    body = {"states": {"total": None, "counts": ["cat", "cow"]}}
    assert told(asked(sold, "POST", "/api/v1/state:batchGet", body)) == (
        200,
        {
            "read": "committed",
            "states": {
                "total": {"txid": 3, "value": 8},
                "counts": {"txid": 3, "values": [2, None]},
            },
        },
    )


def test_who_has_the_answer_already_is_told_so(sold: Serving) -> None:
    for target in ("/api/v1/state/counts/cat", "/api/v1/state", "/openapi.json"):
        tag = header(asked(sold, "GET", target), "ETag")
        assert tag is not None
        for known in (tag, f'"other", W/{tag}', "*"):
            again = asked(sold, "GET", target, if_none_match=known)
            assert (again.status, again.body, header(again, "ETag")) == (304, b"", tag)
        assert asked(sold, "GET", target, if_none_match='"other"').status == 200


def test_the_tag_is_another_one_after_a_batch_though_the_value_is_the_same() -> None:
    feeder = FeederBatchSpout("word string")
    topology = TridentTopology()
    topology.newStream("words", feeder).groupBy("word").persistentAggregate(
        MemoryMapState.Factory(), Count(), "n", name="counts"
    )
    with topology.start() as run, closing(serving(run)) as served:
        tags = []
        for word in ("cat", "dog", "cat"):
            feeder.feed([[word]])
            tags.append(header(asked(served, "GET", "/api/v1/state/counts/cat"), "ETag"))
    assert len({*tags}) == 3


def test_latest_shows_what_a_batch_under_way_has_written_and_committed_does_not() -> None:
    factory = entries({"cat": 1})
    state: Any = factory.makeState()
    record = state.control.read()
    begun = ControlRecord(record.log_id, Token(2, 0), 1, {})
    state.control.begin(begun)
    state.beginCommit(begun)
    state.multiPut([("cat",), ("dog",)], [2, 2])
    state.commit(begun)
    with closing(serving(static(counts=factory))) as served:
        found = {
            read: told(
                asked(
                    served,
                    "POST",
                    f"/api/v1/state/counts:batchGet?read={read}",
                    {"keys": ["cat", "dog"]},
                )
            )[1]
            for read in ("committed", "latest")
        }
    assert (found["committed"]["txid"], found["committed"]["values"]) == (1, [1, None])
    assert (found["latest"]["txid"], found["latest"]["values"]) == (2, [2, 2])


@pytest.mark.parametrize("query", ["read=newest", "raed=latest", "read", "&".join(["a"] * 20)])
def test_another_query_is_400(sold: Serving, query: str) -> None:
    response = asked(sold, "GET", f"/api/v1/state/counts/cat?{query}")
    assert told(response)[1]["error"] == "MALFORMED_REQUEST"
    assert response.status == 400


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/state/counts",  # it has keys
        "/api/v1/state/counts/[5]",
        '/api/v1/state/counts/["cat","dog"]',
        "/api/v1/state/counts/[cat]",
        "/api/v1/state/counts/[[]]",
        '/api/v1/state/counts/[{"$date":"tomorrow"}]',
        '/api/v1/state/counts/[{"$no":"tag"}]',
        "/api/v1/state/counts/" + "[" * 2000,
        "/api/v1/state/counts/[]",
        "/api/v1/state/total/cat",  # it has none
        "/api/v1/state/total/[]",
        "/api/v1/state/counts/%ff",
        "/api/v1/state/%C3/cat",
    ],
)
def test_a_key_that_the_state_cant_have_is_400(sold: Serving, target: str) -> None:
    status, body = told(asked(sold, "GET", target))
    assert (status, body["error"]) == (400, "MALFORMED_REQUEST")


@pytest.mark.parametrize("form", ["/counts:batchGet", ":batchGet"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"keys": 5}',
        b'{"keys": ["cat"], "more": 1}',
        b'{"keys": [5]}',
        b'{"keys": [{"word": "cat"}]}',
        b'{"states": {}}',
        b'{"states": {"counts": 5}}',
        b'{"states": {"counts": null}}',
        b'{"states": {"counts": [5]}}',
        b'{"states": {"total": ["cat"]}}',
        b'{"keys": [' + b"[" * 2000 + b"]" * 2000 + b"]}",
        b'{"keys": [[{"$until": [1, "2026-01-02T03:04:05.000006Z"]}]]}',
    ],
)
def test_a_body_that_is_none_is_400(sold: Serving, form: str, body: bytes) -> None:
    status, said = told(asked(sold, "POST", f"/api/v1/state{form}", body))
    assert (status, said["error"]) == (400, "MALFORMED_REQUEST")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(TAGS), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=2 * settings.default.max_examples)
@given(
    target=st.sampled_from(["/counts:batchGet", "/total:batchGet", ":batchGet"]),
    body=st.binary()
    | JSON.map(lambda tree: json.dumps(tree).encode())
    | st.lists(JSON).map(lambda keys: json.dumps({"keys": keys}).encode())
    | st.dictionaries(st.sampled_from(["counts", "total", "no"]), st.none() | st.lists(JSON)).map(
        lambda states: json.dumps({"states": states}).encode()
    ),
)
def test_whatever_is_sent_is_answered_or_refused_as_malformed(
    sold: Serving, target: str, body: bytes
) -> None:
    response = asked(sold, "POST", f"/api/v1/state{target}", body)
    assert response.status in (200, 400, 404), (body, response)


@settings(max_examples=2 * settings.default.max_examples)
@given(name=st.sampled_from(["counts", "total", "no"]), key=st.binary() | st.text().map(str.encode))
def test_whatever_is_in_a_url_is_answered_or_refused_as_malformed(
    sold: Serving, name: str, key: bytes
) -> None:
    response = asked(sold, "GET", f"/api/v1/state/{name}/{quote(key)}")
    assert response.status in (200, 400, 404), (key, response)


@pytest.mark.parametrize("depth", [300, 900, 960, 990, 1000, 1020, 1100])
def test_what_is_nested_deeply_is_refused_as_malformed(sold: Serving, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for body in (f'{{"keys":[{nested}]}}', f'{{"states":{{"counts":{nested}}}}}', nested):
        for target in ("/counts:batchGet", ":batchGet"):
            response = asked(sold, "POST", f"/api/v1/state{target}", body.encode())
            assert response.status == 400, response.status
    assert asked(sold, "GET", f"/api/v1/state/counts/{nested}").status == 400


def test_other_paths_and_methods_are_refused(sold: Serving) -> None:
    assert asked(sold, "POST", "/api/v1/state/counts").status == 405
    assert asked(sold, "DELETE", "/api/v1/state/counts/cat").status == 405
    assert asked(sold, "GET", "/api/v1/state:batchGet").status == 405
    assert asked(sold, "GET", "/api/v2/state").status == 404


def test_more_keys_than_are_taken_are_413(sold: Serving) -> None:
    with closing(serving(static(counts=entries({})), limits=DRPCLimits(keys=3))) as served:
        for target, body in (
            ("/api/v1/state/counts:batchGet", {"keys": ["a"] * 4}),
            ("/api/v1/state:batchGet", {"states": {"counts": ["a"] * 4}}),
        ):
            status, said = told(asked(served, "POST", target, body))
            assert (status, said["error"], said["limit"]) == (413, "TOO_MANY_KEYS", 3)
        assert asked(served, "POST", target, {"states": {"counts": ["a"] * 3}}).status == 200


def test_an_answer_that_would_be_too_large_is_413(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MOST_BYTES", 1000)
    with closing(serving(static(large=entries({"a": "x" * 100})))) as served:
        for many, expected in ((9, 200), (10, 413)):
            for target, body in (
                ("/api/v1/state/large:batchGet", {"keys": ["a"] * many}),
                ("/api/v1/state:batchGet", {"states": {"large": ["a"] * many}}),
            ):
                assert asked(served, "POST", target, body).status == expected


def test_a_value_without_a_form_in_json_is_406_and_hurts_no_other() -> None:
    with closing(serving(static(odd=entries({"a": {1, 2}, "b": 5})))) as served:
        status, said = told(asked(served, "GET", "/api/v1/state/odd/a"))
        assert (status, said["error"], said["key"]) == (406, "NO_JSON", ["a"])
        assert "a set" in said["errorMessage"]
        assert asked(served, "GET", "/api/v1/state/odd/b").status == 200


class PretendedMapFactory(AlertFactory):
    opens = MemoryMap


def test_states_that_cant_be_shown_are_listed_with_the_reason_and_refused() -> None:
    topology = static(alerts=AlertFactory(), pretended=PretendedMapFactory())
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ("cat",)))
    words.window(
        TumblingCountWindow.of(2), MemoryMapState.Factory(), "word", Count(), "n", name="windows"
    )
    words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "n", name="here")
    topology.newDRPCStream("echo").map(str.upper, "text")
    with closing(serving(topology)) as served:
        states = told(asked(served, "GET", "/api/v1/state"))[1]["states"]
        problems = {state["name"]: state["problem"] for state in states}
        for name, problem in problems.items():
            status, said = told(asked(served, "GET", f"/api/v1/state/{name}/cat"))
            assert (status, said["error"]) == (400, "STATE_LEFT_OUT"), said
            assert problem.partition(": ")[2] in said["errorMessage"]
    assert "AlertFactory keeps it" in problems["alerts"]
    assert "Alerts is no map state" in problems["pretended"]
    assert "what windows have gathered" in problems["windows"]
    assert "in the memory of the run's process" in problems["here"]


def test_a_topology_without_queries_is_served_for_its_states_and_refused_without_any() -> None:
    with closing(serving(static(counts=entries({"a": 1})))) as served:
        assert asked(served, "GET", "/api/v1/state/counts/a").status == 200
    with pytest.raises(DRPCUsageError, match="no queries and no state to show"):
        serving(TridentTopology())
    with pytest.raises(DRPCUsageError, match="alerts can't be read: AlertFactory keeps it"):
        serving(static(alerts=AlertFactory()))


def test_of_two_topologies_the_first_with_the_state_answers_and_no_cut_is_of_both() -> None:
    one = static(counts=entries({"a": 1}), one=entries({}))
    other = static(counts=entries({"a": 2}), other=entries({}))
    with closing(serving(one, other)) as served:
        assert told(asked(served, "GET", "/api/v1/state/counts/a"))[1]["value"] == 1
        listed = told(asked(served, "GET", "/api/v1/state"))[1]["states"]
        assert {state["name"] for state in listed} == {"counts", "one", "other"}
        body = {"states": {"one": [], "other": []}}
        status, said = told(asked(served, "POST", "/api/v1/state:batchGet", body))
        assert (status, "several topologies" in said["errorMessage"]) == (400, True)


def test_a_state_is_shown_to_the_users_of_its_list() -> None:
    access = Access({"ann": "a", "bob": "b"}, {"state/counts": ["ann"], "times": ["bob"]})
    ann, bob = "Bearer a", "Bearer b"
    topology = sales()
    with topology.start() as run:
        run.processAllAvailable()
        with closing(serving(run, access=access)) as served:

            def status(target: str, authorization: str, body: Any = None) -> int:
                method = "GET" if body is None else "POST"
                return asked(
                    served, method, target, body or b"", authorization=authorization
                ).status

            for target, anns, bobs in (
                ("/api/v1/state/counts/cat", 200, 403),
                ("/api/v1/state/total", 403, 403),
                ("/api/v1/state/unknown", 403, 403),
                ("/api/v1/state", 200, 200),
                ("/openapi.json", 200, 200),
            ):
                assert status(target, ann) == anns
                assert status(target, bob) == bobs
                assert status(target, "Bearer c") == 401
            for states, anns in ((["counts"], 200), (["counts", "total"], 403), (["no"], 403)):
                body = {"states": {name: None if name == "total" else [] for name in states}}
                assert status("/api/v1/state:batchGet", ann, body) == anns
            listed = told(asked(served, "GET", "/api/v1/state", authorization=ann))[1]
            assert [state["name"] for state in listed["states"]] == ["counts"]
            assert listed["functions"] == []
            listed = told(asked(served, "GET", "/api/v1/state", authorization=bob))[1]
            assert (listed["states"], listed["functions"]) == ([], ["times"])


class AwayMap(MemoryMap):
    def getControl(self) -> bytes | None:
        raise StateUnavailableError("redis://secret.example:6379", "refused")


def test_a_store_that_is_away_is_503_isnt_named_and_hurts_no_other_state() -> None:
    with closing(serving(static(away=over(AwayMap("away")), counts=entries({"a": 1})))) as served:
        response = asked(served, "GET", "/api/v1/state/away/a")
        assert told(response)[1]["error"] == "STORE_UNAVAILABLE"
        assert (response.status, header(response, "Retry-After")) == (503, "1")
        assert b"secret" not in response.body
        listing = asked(served, "GET", "/api/v1/state")
        assert b"secret" not in listing.body
        away, counts = told(listing)[1]["states"]
        assert (away["txid"], "store" in away["problem"]) == (None, True)
        assert (counts["txid"], counts["problem"]) == (1, None)


def test_a_state_that_has_not_begun_is_503_until_it_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    factory = sqlite.opaque(tmp_path / "counts.db", prefix="counts")
    with closing(serving(static(counts=factory))) as served:
        response = asked(served, "GET", "/api/v1/state/counts/a")
        assert told(response)[1]["error"] == "STATE_NOT_THERE"
        assert (response.status, header(response, "Retry-After")) == (503, "1")
        assert str(tmp_path).encode() not in response.body
        assert str(tmp_path) in caplog.text
        entries({"a": 1}, factory)
        assert told(asked(served, "GET", "/api/v1/state/counts/a"))[1]["value"] == 1


class LeavingMap(MemoryMap):
    """A map of a store that outlives the process, and can be emptied."""

    lasts = True
    gone = False

    def getControl(self) -> bytes | None:
        return None if self.gone else super().getControl()


def test_a_state_that_disappears_is_503_until_it_is_back() -> None:
    leaving = LeavingMap("leaving")
    with closing(serving(static(counts=entries({"a": 1}, over(leaving))))) as served:
        statuses = []
        for leaving.gone in (False, True, False):
            statuses.append(asked(served, "GET", "/api/v1/state/counts/a").status)
    assert statuses == [200, 503, 200]


def test_what_storm_wrote_shows_without_a_batch() -> None:
    store = MemoryMap("of storm")
    store.multiPut([b"dog"], [OpaqueValue(17, 0, 5, 4)])
    of_storm = OpaqueMap.factory(lambda: store, hosted="driver", written_by="storm")
    with closing(serving(static(counts=of_storm))) as served:
        [listed] = told(asked(served, "GET", "/api/v1/state"))[1]["states"]
        assert (listed["reads"], listed["txid"]) == ("perhaps a part of a batch", None)
        body = told(asked(served, "GET", "/api/v1/state/counts/dog"))[1]
        assert (body["value"], body["txid"]) == (5, None)


def test_before_the_first_batch_the_batch_is_null() -> None:
    with closing(serving(static(counts=MemoryMapState.Factory()))) as served:
        status, body = told(asked(served, "GET", "/api/v1/state/counts/a"))
        assert (status, body["txid"]) == (404, None)


def test_of_a_map_that_isnt_opaque_the_batch_is_the_last_that_was_committed() -> None:
    factory = entries({"a": 1}, TransactionalMap.factory(lambda: plain, hosted="driver"))
    state: Any = factory.makeState()
    begun = ControlRecord(state.control.read().log_id, Token(2, 0), 1, {})
    state.control.begin(begun)
    state.beginCommit(begun)
    state.multiPut([("a",)], [2])
    state.commit(begun)
    with closing(serving(static(counts=factory))) as served:
        [listed] = told(asked(served, "GET", "/api/v1/state"))[1]["states"]
        assert listed["reads"] == "perhaps a part of a batch"
        for read, txid in (("committed", 1), ("latest", 2)):
            found = told(asked(served, "GET", f"/api/v1/state/counts/a?read={read}"))[1]
            assert (found["txid"], found["value"]) == (txid, 2)


plain = MemoryMap("a map that isn't opaque")


def test_a_state_that_hangs_ends_in_504_and_holds_up_no_other_one() -> None:
    held = HeldMap()
    topology = static(slow=entries({"a": 1}, over(held)), counts=entries({"a": 1}))

    async def ask(served: Serving) -> list[Answer]:
        hanging = asyncio.create_task(response_to(served, "GET", "/api/v1/state/slow/held"))
        await asyncio.to_thread(held.begun.wait)
        meanwhile = await response_to(served, "GET", "/api/v1/state/counts/a")
        late = await response_to(served, "GET", "/api/v1/state/slow/held", x_drpc_timeout="0.05")
        assert not hanging.done()
        held.go_on.set()
        return [await hanging, meanwhile, late]

    with closing(serving(topology, limits=DRPCLimits(timeout=PATIENCE))) as served:
        hanging, meanwhile, late = asyncio.run(ask(served))
    assert (hanging.status, meanwhile.status) == (404, 200)
    assert told(late)[1]["error"] == "SERVER_TIMEOUT"
    assert (late.status, told(late)[1]["function"]) == (504, "state/slow")


def test_states_that_hang_hold_up_no_requests_for_several_others() -> None:
    held = HeldMap()
    others = {name: entries({"a": 1}) for name in ("counts", "total")}
    topology = static(slow=entries({"a": 1}, over(held)), **others)
    hangs = json.dumps({"states": {"slow": ["held"], "counts": ["a"]}}).encode()
    fine = json.dumps({"states": {name: ["a"] for name in others}}).encode()

    async def ask(served: Serving) -> tuple[Answer, list[Answer]]:
        hanging = []
        for number in range(1, MOST_TICKS + 1):
            each = response_to(served, "POST", "/api/v1/state:batchGet", hangs)
            hanging.append(asyncio.create_task(each))
            while len(held.asked) < number:  # each in a tick of its own
                await asyncio.sleep(0.001)
        meanwhile = await response_to(served, "POST", "/api/v1/state:batchGet", fine)
        assert not any(each.done() for each in hanging)
        held.go_on.set()
        return meanwhile, await asyncio.gather(*hanging)

    with closing(serving(topology, limits=DRPCLimits(timeout=PATIENCE))) as served:
        meanwhile, hanging = asyncio.run(ask(served))
    assert [each.status for each in (meanwhile, *hanging)] == [200] * (MOST_TICKS + 1)


def test_an_application_keeps_the_query_and_tells_no_length_of_what_isnt_sent() -> None:
    async def ask(app: DRPCApp, **scope: Any) -> tuple[int, dict[bytes, bytes], bytes]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(message)

        given = {"type": "http", "method": "GET", "path": "/api/v1/state/counts/a", "headers": []}
        await app({**given, **scope}, receive, send)
        start, body = sent
        return start["status"], dict(start["headers"]), body["body"]

    with closing(DRPCApp(static(counts=entries({"a": 1})))) as app:
        status, headers, body = asyncio.run(ask(app, query_string=b"read=latest"))
        assert (status, json.loads(body)["read"]) == (200, "latest")
        status, headers, body = asyncio.run(ask(app))
        assert headers[b"content-length"] == str(len(body)).encode()
        known = [(b"if-none-match", headers[b"etag"])]
        status, headers, body = asyncio.run(ask(app, headers=known))
        assert (status, body, b"content-length" in headers) == (304, b"", False)


def test_after_its_end_states_are_503(sold: Serving) -> None:
    served = serving(static(counts=entries({"a": 1})))
    served.close()
    assert asked(served, "GET", "/api/v1/state/counts/a").status == 503
    served = serving(static(counts=entries({"a": 1})))
    served.functions.close()  # it drains: nothing new is taken
    for target in ("/api/v1/state/counts/a", "/api/v1/state", "/openapi.json"):
        assert asked(served, "GET", target).status == 503
    served.close()


def test_the_description_has_every_url_and_no_other(sold: Serving) -> None:
    described = told(asked(sold, "GET", "/openapi.json"))[1]
    operations = {
        (method.upper(), path) for path, of in described["paths"].items() for method in of
    }
    assert operations == {*methods_and_paths(sold.routes)}


def test_the_description_is_valid_and_each_operation_has_a_name_and_says_what_it_does(
    sold: Serving,
) -> None:
    described = told(asked(sold, "GET", "/openapi.json"))[1]
    validate(described)
    operations = [each for path in described["paths"].values() for each in path.values()]
    assert all(each["summary"] for each in operations)
    assert all(re.fullmatch("[a-z][a-zA-Z]+", each["operationId"]) for each in operations)
