"""On its whole way a state's URL shows no secret: plans, warnings, errors and logs."""

from __future__ import annotations

import logging
import pickle
import socket
import traceback
from collections.abc import Iterator

import pytest

from tests.api.topologies import sentences, word_count
from trident.api.start_checks import warn_inexact
from trident.api.topology import TridentTopology
from trident.backends.state_spec import StateSpec
from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.errors import (
    DuplicateNameError,
    GuaranteeWarning,
    PlanError,
    StateUnavailableError,
    TridentError,
)
from trident.operations.builtin import Count
from trident.spouts.fixed import FixedBatchSpout
from trident.states import MapStateFactory
from trident.testing.servers.promised import Served

SECRET = "s3cr3t"
PLACES = {
    "redis": "/0",
    "rediss": "/0",
    "redis+cluster": "",
    "rediss+cluster": "",
    "redis+sentinel": "/main/0",
    "rediss+sentinel": "/main/0",
}


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine that refuses connections, and is nobody else's meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, port: int) -> str:
    scheme: str = request.param
    return f"{scheme}://me:{SECRET}@127.0.0.1:{port}{PLACES[scheme]}"


def counted(url: str) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout("word", 1, ["cat"]))
    stream.groupBy("word").persistentAggregate(url, Count(), "count")
    return topology


def told(error: BaseException) -> str:
    """All that an error says: its text, its arguments, its traceback, its pickle, its causes."""
    said = traceback.TracebackException.from_exception(error)
    text = "".join(said.format_exception_only()) + repr(error) + repr(pickle.dumps(error))
    for cause in (error.__cause__, error.__context__):
        text += told(cause) if cause is not None else ""
    return text


def test_a_factory_and_its_store(url: str) -> None:
    factory = state_from_url(url)
    assert isinstance(factory, MapStateFactory)
    named = factory.named("count")
    shown = f"{named!r} {named} {named.store!r} {named.store} {named.identity} {StateSpec(named)}"
    assert SECRET not in shown
    assert "127.0.0.1" in shown
    assert pickle.loads(pickle.dumps(named)) == named


def test_the_plan_of_a_topology(url: str) -> None:
    topology = counted(url)
    shown = topology.explain() + topology.to_mermaid() + repr(topology._builder.plan())
    shown += "".join(map(repr, topology._builder.nodes))
    assert 'state "count"' in shown
    assert SECRET not in shown


def test_two_states_in_one_place(url: str) -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    word_count(stream, f"{url}?prefix=same", name="one")
    with pytest.raises(DuplicateNameError, match="would be kept where 'one' already is") as caught:
        word_count(stream, f"{url}?prefix=same", name="other")
    assert SECRET not in told(caught.value)


def test_a_wrong_option_of_the_backend(url: str) -> None:
    with pytest.raises(PlanError, match="unknown option 'prefx'.*Did you mean 'prefix'") as caught:
        counted(f"{url}?prefx=same")
    assert SECRET not in told(caught.value)


def test_a_state_that_cannot_be_exact(url: str) -> None:
    plan = counted(f"{url}?kind=nontransactional")._builder.plan()
    with pytest.warns(GuaranteeWarning) as caught:
        warn_inexact(plan)
    assert SECRET not in str(caught[0].message)


def test_a_refused_connection(url: str, port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    state = state_from_url(url).makeState()
    with pytest.raises(StateUnavailableError, match=f"127.0.0.1:{port}") as caught:
        state.beginCommit(1)
    state.close()
    assert SECRET not in told(caught.value) + caplog.text


def test_a_login_that_is_refused(redis_server: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    [(host, port)] = StateURL.parse(redis_server.url).hosts
    state = state_from_url(f"redis://me:{SECRET}@{host}:{port}/0").makeState()
    with pytest.raises(TridentError, match=f"{host}:{port}") as caught:
        state.beginCommit(1)
    state.close()
    assert SECRET not in told(caught.value) + caplog.text


def test_a_run_that_does_not_reach_its_store(
    url: str, port: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        pytest.raises(StateUnavailableError, match=f"127.0.0.1:{port}") as caught,
        counted(url).start(retries=0) as run,
    ):
        run.processAllAvailable()
    printed = capfd.readouterr()
    assert SECRET not in told(caught.value) + caplog.text + printed.out + printed.err
