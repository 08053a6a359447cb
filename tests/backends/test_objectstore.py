"""Checkpoints in object stores: who wins, which stores are refused, and what is never shown."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.servers.object_stores import StandIn
from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.objectstore.checkpoint import explain
from trident.backends.state_url import StateURL
from trident.cli.main import main
from trident.log.checkpoint import hold_checkpoint
from trident.log.errors import CheckpointError
from trident.states.checkpoint_store import CheckpointStore
from trident.states.errors import MissingDriverError, StateUnavailableError, StateURLError
from trident.testing.servers.promised import Served

SECRET = "s3cr3t"
IGNORED = {
    "s3": ("If-None-Match", "If-Match"),
    "gs": ("x-goog-if-generation-match",),
}


def below(url: str, path: str | None = None) -> str:
    return url.replace("?", f"/{path or uuid4().hex}?", 1)


def opened(url: str) -> CheckpointStore:
    return checkpoint_from_url(StateURL.parse(url))


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as server:
        yield server


@pytest.mark.parametrize("server", ["seaweedfs_server", "azurite_server", "google_store"])
def test_of_racing_creates_exactly_one_wins(server: str, request: pytest.FixtureRequest) -> None:
    url = below(request.getfixturevalue(server).url)
    stores = [opened(url) for _ in range(2)]
    barrier = threading.Barrier(2)
    won: list[tuple[int, int]] = []

    def race(racer: int) -> None:
        for number in range(50):
            barrier.wait()
            if stores[racer].replace(str(number), b"by %d" % racer, None):
                won.append((number, racer))

    racing = [threading.Thread(target=race, args=(racer,)) for racer in range(2)]
    for each in racing:
        each.start()
    for each in racing:
        each.join()
    assert stores[0].probe() is None
    assert [number for number, _ in sorted(won)] == [*range(50)]
    assert all(stores[0].read(str(number)) == b"by %d" % racer for number, racer in won)


@pytest.mark.parametrize(
    ("scheme", "ignored", "told"),
    [
        ("s3", IGNORED["s3"], "that must not be there"),
        ("s3", ("If-Match",), "that has another tag"),
        ("gs", IGNORED["gs"], "that must not be there"),
    ],
)
def test_a_store_that_ignores_conditions_is_refused_at_the_start_and_by_doctor(
    scheme: str, ignored: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandIn(*ignored) as server:
        url = below(server.url(scheme), "words")
        with pytest.raises(CheckpointError, match=f"on condition {told}: it ignores conditions"):
            hold_checkpoint(url)
        assert main(["doctor", url]) == 1
    assert f"problem  {opened(url).where}: it has replaced an object" in capsys.readouterr().out


def test_doctor_tells_of_a_store_that_is_fit(
    seaweedfs_server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    url = below(seaweedfs_server.url, "doctor")
    assert main(["doctor", url]) == 0
    assert "ok       s3://trident/doctor at http" in (told := capsys.readouterr().out)
    assert "trident-secret" not in told


def test_what_is_refused_while_nothing_has_changed_is_uncertain_and_no_take_over(
    stand_in: StandIn,
) -> None:
    """As a request may be that meets one which was given up, and still is under way."""
    store = opened(below(stand_in.url("s3")))
    for new, expected in ((b"1", None), (b"2", b"1")):
        stand_in.conflicts = 1
        with pytest.raises(StateUnavailableError, match="that is still there.*is tried again"):
            store.replace("words", new, expected)
        assert store.replace("words", new, expected)
    assert store.read("words") == b"2"


def test_what_is_there_already_counts_as_put(stand_in: StandIn) -> None:
    url = below(stand_in.url("s3"))
    first, again = opened(url), opened(url)
    assert first.replace("words", b"1", None)
    assert again.replace("words", b"1", None)
    assert not again.replace("words", b"2", None)


def test_a_bucket_that_is_not_there_is_told(moto_server: Served) -> None:
    url = below(moto_server.url.replace("//trident", "//nowhere"))
    with pytest.raises(StateUnavailableError, match="the bucket is missing .404.*Make it"):
        opened(url).probe()


def test_a_wrong_login_is_told_without_it(seaweedfs_server: Served) -> None:
    url = below(seaweedfs_server.url.replace("trident-secret", SECRET))
    with pytest.raises(StateUnavailableError, match="it refuses the login .403") as raised:
        opened(url).probe()
    assert SECRET not in str(raised.value)
    assert SECRET not in repr(StateURL.parse(url))


def test_a_store_that_is_away_is_told() -> None:
    url = "s3://b/words?endpoint=http://127.0.0.1:1&skip_signature=true"
    away = r"s3://b/words at http://127.0.0.1:1: no connection .Connection refused"
    with pytest.raises(StateUnavailableError, match=away):
        opened(url).names()


def test_settings_that_the_driver_refuses_are_told_without_secrets() -> None:
    key = f"{SECRET} is no key"
    url = f"az://box/words?account_name=me&account_key={key.replace(' ', '%20')}"
    with pytest.raises(StateURLError, match="obstore says: .*Invalid Access Key") as raised:
        opened(url).names()
    assert SECRET not in str(raised.value)
    assert "this" not in str(explain("b: this, that's it", "s3://b", ["this"])).partition(". ")[0]


@pytest.mark.parametrize("endpoint", ["minio:9000", "http://", "ftp://minio", "http://minio?a"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(StateURLError, match="endpoint takes the address.*Write it http://host"):
        opened(f"s3://b/words?endpoint={endpoint}")


def test_a_key_with_a_line_break_is_refused_unseen() -> None:
    with pytest.raises(StateURLError, match="secret_access_key holds a line break") as raised:
        opened(f"s3://b/words?access_key_id=A&secret_access_key={SECRET}%0A")
    assert SECRET not in str(raised.value)


def test_a_panic_of_the_driver_is_an_error_that_no_later_start_mends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "minio:9000")
    url = f"s3://b/words?access_key_id=A&secret_access_key={SECRET}"
    with pytest.raises(StateURLError, match="obstore says: request valid: InvalidUri"):
        hold_checkpoint(url)
    assert main(["doctor", url]) == 1
    assert "Look at the options of the URL" in capsys.readouterr().out


def test_a_machine_without_a_login_is_told_where_to_give_one() -> None:
    said = "Error performing PUT http://169.254.169.254/latest/api/token in 2 s - HTTP error"
    assert "no login was found" in str(explain(said, "s3://b/words"))


def test_a_forked_process_is_told_that_it_has_to_be_a_new_one(stand_in: StandIn) -> None:
    store = opened(below(stand_in.url("s3")))
    assert store.names() == []
    other = os.getpid() + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: other)
        with pytest.raises(StateUnavailableError, match="forked process.* Start the process anew"):
            store.names()


def test_the_driver_that_is_missing_comes_with_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDriverError, match=r'pip install "trident-spark\[objectstore\]"'):
        opened("s3://b/words").names()


@pytest.mark.parametrize(
    ("scheme", "logins"),
    [
        ("s3", ["access_key_id", "secret_access_key", "session_token"]),
        ("az", ["account_key", "sas_token", "client_secret"]),
        ("gs", ["bearer_token"]),
    ],
)
def test_no_login_is_shown(scheme: str, logins: list[str]) -> None:
    options = "&".join(f"{name}={SECRET}{name}" for name in logins)
    url = StateURL.parse(f"{scheme}://b/words?{options}")
    store = checkpoint_from_url(url)
    assert SECRET not in f"{url} {url!r} {store!r} {store.where} {store.place_of('words')}"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3:words", "names one bucket"),
        ("s3://key:s3cr3t@b/words", "names one bucket, without a login"),
        ("s3://b:80/words", "without a login and a port"),
        ("s3://a,b/words", "names one bucket"),
        ("gs://b", "a path names the checkpoint, and can't be '/'"),
        ("az://b/a/../c", "a path names the checkpoint"),
        ("s3://b/words?acces_key_id=s3cr3t", "Did you mean 'access_key_id'"),
        ("az://b/words?region=here", "unknown option 'region'"),
        ("s3://b/words?endpoint=http://me:s3cr3t%40h", "option endpoint can't have a login"),
        ("s3://b/words?timeout=0", "timeout is above 0 seconds"),
    ],
)
def test_a_url_that_is_wrong_is_told_without_secrets(url: str, told: str) -> None:
    with pytest.raises(StateURLError, match=told) as raised:
        opened(url)
    assert SECRET not in str(raised.value)
