"""What befalls PostgreSQL and those who write to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.backends.held_postgres_writer import CALLS, MOMENTS, words_of
from tests.faults.proxy import Proxy
from tests.faults.word_count import WordCount, assert_told, at, when_waiting
from tests.packaging.conftest import ROOT
from tests.servers.certificates import make_certificates
from tests.servers.postgres import PgBouncer, PostgresStandby
from trident.backends import postgres
from trident.backends.postgres import connections
from trident.backends.urls import state_from_url
from trident.errors import StateUnavailableError
from trident.operations.builtin import Sum
from trident.states import ControlRecord, Token
from trident.states.errors import LostWritesError, RewoundStateError
from trident.states.maps.factory import MapStateFactory
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import stands_still, wait_until
from trident.testing.servers.promised import Served


def factory(server: PostgresServer | Proxy | PgBouncer, **options: Any) -> MapStateFactory:
    """Return the factory of a state on a server."""
    given = {"port": server.port, "user": PostgresServer.user, **options}
    return postgres.opaque(server.host, "postgres", **given)


@contextmanager
def client(server: PostgresServer) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def sql(server: PostgresServer, statement: str) -> None:
    with client(server) as connection:
        connection.execute(statement)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that is only copied: to make another takes longer."""
    with PostgresServer(tmp_path_factory.mktemp("template")) as server:
        yield server


class Copied(PostgresServer):
    """A server whose data are those of another at first."""

    def __init__(self, folder: Path, template: PostgresServer, *options: str) -> None:
        super().__init__(folder, *options)
        self.template = template

    def make_data(self) -> None:
        self.template.copy_data(self.data)


@pytest.fixture
def server(template: PostgresServer, tmp_path: Path) -> Iterator[PostgresServer]:
    with Copied(tmp_path / "postgres", template) as server:
        yield server


def put_back(server: PostgresServer, kept: Path) -> None:
    """Start a server from a copy of its data."""
    server.stop()
    server.data.rename(server.folder / f"left-{uuid4().hex}")
    kept.rename(server.data)
    server.start()


def committed(state: Any, own: ControlRecord, words: list[bytes]) -> None:
    state.control.begin(own)
    state.beginCommit(own)
    state.multiFold(words, [1] * len(words), Sum())
    state.commit(own)
    assert state.control.announce(state.control.ready(own))


@pytest.fixture
def cases(postgres_server: Served) -> list[tuple[str, str, str]]:
    """Writers that stop in all ways, each in a state of its own: by URL, call and moment."""
    return [
        (f"{postgres_server.url}?prefix=t{uuid4().hex}&values={values}&timeout=3", call, moment)
        for call in CALLS
        for moment in MOMENTS
        for values in (("json", "bigint") if call == "write" else ("json",))
    ]


def test_a_writer_that_stops_anywhere_holds_up_nobody_and_counts_nothing(
    cases: list[tuple[str, str, str]],
) -> None:
    command = [sys.executable, "-m", "tests.backends.held_postgres_writer", json.dumps(cases)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writers:
        assert writers.stdout is not None
        processes = json.loads(writers.stdout.readline())
        try:
            for process in processes:
                wait_until(partial(stands_still, process), 60)
            for url, call, _ in cases:
                with closing(state_from_url(url).makeState()) as state:
                    committed(state, ControlRecord("log", Token(1, 1)), words_of(call)[::10])
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)
        ended = dict(line.split() for line in writers.communicate(timeout=60)[0].splitlines())
    for number, (url, call, moment) in enumerate(cases):
        # What was sent before the next attempt began may have been done.
        assert ended[str(number)] in ("StaleBatchError", "StateUnavailableError") or (
            ended[str(number)] == "done" and call == "ready" and moment != MOMENTS[0]
        ), (call, moment)
        words = words_of(call)
        with closing(state_from_url(url).makeState()) as state:
            counted = state.multiGet([(word.decode(),) for word in words])
        expected = [None if place % 10 else 1 for place in range(len(words))]
        assert counted == expected, (call, moment)


def test_a_postgresql_killed_in_the_middle_of_a_write_and_restarted_counts_every_word_once(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Proxy(server.host, server.port) as proxy:
        words = WordCount(factory(proxy, max_put=4000), tmp_path, batches=3, size=16_000)
        written = []

        def restart() -> None:
            wait_until(lambda: server.process is None)
            server.start()
            written.append(words.written(2))

        with (
            at(
                "before write",
                2,
                0,
                lambda: proxy.when_asked(b"INSERT INTO", server.kill, times=2),
            ),
            when_waiting(restart),
        ):
            assert words.run() == {2: 2}
        assert 0 < written[0] < 1, "the server wasn't killed in the middle of the write"
        assert_told(caplog, f"postgresql at {proxy.host}:{proxy.port}", "did it restart")
    words.factory = factory(server, prefix="count")
    assert words.counted_all()


def test_a_recovery_after_a_crash_of_one_backend_fails_the_attempt(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = WordCount(factory(server), tmp_path)

    def crash() -> None:
        with closing(words.factory.store.open()) as backing, client(server) as connection:
            before = backing.incarnation()
            os.kill(connection.info.backend_pid, signal.SIGKILL)

            def recovered() -> bool:
                try:
                    return backing.incarnation() != before
                except StateUnavailableError:
                    return False

            wait_until(recovered)

    with at("after write", 2, 0, crash):
        assert words.run() == {2: 2}
    assert_told(caplog, f"postgresql at {server.host}:{server.port}", "")
    assert words.counted_all()


def test_a_server_restored_from_an_older_backup_stops_the_run_and_the_next_start(
    server: PostgresServer, tmp_path: Path
) -> None:
    words = WordCount(factory(server), tmp_path)
    old, whole = tmp_path / "old", tmp_path / "whole"
    with (
        at("before begin", 2, 0, lambda: server.copy_data(old)),
        at("before begin", 3, 0, lambda: server.copy_data(whole)),
        at("after begin", 3, 0, lambda: put_back(server, old)),
        pytest.raises(RewoundStateError, match="count in postgresql at .*batch 2 .*newer backup"),
    ):
        words.run()
    assert words.counted() == words.size
    with pytest.raises(RewoundStateError, match="Restore the store from a newer backup"):
        words.start()
    put_back(server, whole)
    words.run()
    assert words.counted_all()


def test_a_server_restored_from_a_backup_of_a_batch_under_way_has_lost_its_writes(
    server: PostgresServer, tmp_path: Path
) -> None:
    words = WordCount(factory(server), tmp_path)
    begun = tmp_path / "begun"
    with (
        at("after begin", 2, 0, lambda: server.copy_data(begun)),
        at("before announce", 2, 0, lambda: put_back(server, begun)),
        pytest.raises(LostWritesError, match="count in postgresql at .* lost writes of batch 2"),
    ):
        words.run()


@pytest.fixture
def replicated(
    server: PostgresServer, tmp_path: Path
) -> Iterator[tuple[PostgresServer, PostgresStandby]]:
    with PostgresStandby(tmp_path / "standby", server) as standby:
        yield server, standby


def on_either(primary: PostgresServer, standby: PostgresStandby) -> MapStateFactory:
    """Return the factory of a state on whichever of two servers takes writes."""
    return postgres.opaque(
        f"{primary.host},{standby.host}",
        "postgres",
        port=f"{primary.port},{standby.port}",
        user=PostgresServer.user,
        target_session_attrs="read-write",
    )


def follows(standby: PostgresStandby, primary: PostgresServer) -> bool:
    with client(primary) as one, client(standby) as other:
        # What is only inserted may be committed too, with `synchronous_commit` off.
        [[written]] = one.execute("SELECT pg_current_wal_insert_lsn()")
        [[replayed]] = other.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [written])
        return bool(replayed)


def test_a_standby_is_read_and_refuses_to_be_written_with_what_to_do(
    replicated: tuple[PostgresServer, PostgresStandby], tmp_path: Path
) -> None:
    primary, standby = replicated
    words = WordCount(factory(primary), tmp_path)
    words.run()
    wait_until(lambda: follows(standby, primary))
    there = WordCount(factory(standby), tmp_path)
    assert there.counted_all()
    with pytest.raises(StateUnavailableError, match="read-only.*target_session_attrs=read-write"):
        committed(factory(standby, prefix="count").makeState(), ControlRecord("a", Token(9, 9)), [])


def test_a_standby_that_takes_over_with_every_batch_goes_on(
    replicated: tuple[PostgresServer, PostgresStandby], tmp_path: Path
) -> None:
    primary, standby = replicated
    sql(primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    sql(primary, "SELECT pg_reload_conf()")
    words = WordCount(on_either(primary, standby), tmp_path)

    def fail_over() -> None:
        primary.kill()
        standby.promote()

    with at("after write", 2, 0, fail_over):
        attempts = words.run()
    assert attempts.keys() == {2}
    assert words.counted_all()


def test_a_standby_that_takes_over_without_a_committed_batch_stops_the_run(
    replicated: tuple[PostgresServer, PostgresStandby], tmp_path: Path
) -> None:
    """With `synchronous_commit` off nobody waits for it."""
    primary, standby = replicated
    sql(primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    sql(primary, "ALTER SYSTEM SET synchronous_commit = off")
    sql(primary, "SELECT pg_reload_conf()")
    words = WordCount(on_either(primary, standby), tmp_path)

    def cut_off() -> None:
        wait_until(lambda: follows(standby, primary))
        sql(standby, "ALTER SYSTEM SET primary_conninfo = ''")
        sql(standby, "SELECT pg_reload_conf()")
        wait_until(lambda: not _is_followed(primary))

    def fail_over() -> None:
        primary.kill()
        standby.promote()

    with (
        at("before begin", 2, 0, cut_off),
        at("after announce", 2, 0, fail_over),
        pytest.raises(RewoundStateError, match="count in postgresql at .*batch 2 "),
    ):
        words.run()
    assert words.counted() == words.size


def _is_followed(primary: PostgresServer) -> bool:
    with client(primary) as connection:
        return bool(connection.execute("SELECT FROM pg_stat_replication").rowcount)


def test_a_server_without_a_connection_to_spare_is_waited_for(
    template: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    few = ("max_connections=6", "superuser_reserved_connections=0")
    with Copied(tmp_path / "few", template, *few) as server, ExitStack() as taken:
        words = WordCount(factory(server), tmp_path)

        def take_all() -> None:
            import psycopg

            connections.pool.close_idle()
            with pytest.raises(psycopg.OperationalError):  # noqa: PT012
                while True:
                    taken.enter_context(client(server))

        with at("before write", 2, 0, take_all), when_waiting(taken.close):
            assert words.run() == {2: 2}
        assert_told(caplog, f"postgresql at {server.host}:{server.port}", "max_connections")
        assert words.counted_all()


def test_a_full_disk_fails_the_batch_until_there_is_room(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = tmp_path / "small"
    server.own(small)
    mounted = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "none", str(small)]
    if subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here")
    try:
        place = small / "space"
        server.own(place)
        sql(server, f"CREATE TABLESPACE small LOCATION '{place}'")
        words = WordCount(factory(server), tmp_path, batches=3, size=2_000)

        def fill() -> None:
            sql(server, "ALTER TABLE count SET TABLESPACE small")
            with (small / "filler").open("wb", buffering=0) as filler, suppress(OSError):
                while filler.write(bytes(4096)):
                    pass

        with (
            at("before write", 2, 0, fill),
            when_waiting(lambda: (small / "filler").unlink()),
        ):
            assert words.run() == {2: 2}
        assert_told(caplog, f"postgresql at {server.host}:{server.port}", "Make room on its disk")
        assert words.counted_all()
    finally:
        server.stop()
        subprocess.run(["umount", str(small)], check=True)


def test_a_serialization_failure_is_an_attempt_that_is_retried(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sql(server, "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    words = WordCount(factory(server), tmp_path)
    with client(server) as other:
        threads = []

        def meddle() -> None:
            other.execute("BEGIN")
            other.execute("UPDATE count SET txid = txid")
            threads.append(threading.Thread(target=_commit_when_awaited, args=[other, server]))
            threads[0].start()

        with at("before write", 2, 0, meddle):
            assert words.run() == {2: 2}
        threads[0].join()
    assert_told(caplog, f"postgresql at {server.host}:{server.port}", "wrote the same rows")
    assert words.counted_all()


def _commit_when_awaited(connection: Any, server: PostgresServer) -> None:
    wait_until(lambda: _waits(server))
    connection.execute("COMMIT")


def _waits(server: PostgresServer) -> bool:
    with client(server) as looking:
        return bool(looking.execute("SELECT FROM pg_locks WHERE NOT granted").rowcount)


def test_a_deadlock_is_an_attempt_that_is_retried(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = WordCount(factory(server), tmp_path)
    with client(server) as other:
        threads = []
        # Of two who wait for each other the one that looks first gives up.
        other.execute("SET deadlock_timeout = '1min'")

        def cross() -> None:
            wait_until(lambda: _waits(server))
            other.execute("UPDATE trident_states SET kept = kept")
            other.execute("COMMIT")

        def meddle() -> None:
            other.execute("BEGIN")
            other.execute("UPDATE count SET txid = txid")
            threads.append(threading.Thread(target=cross))
            threads[0].start()

        with at("before write", 2, 0, meddle):
            assert words.run() == {2: 2}
        threads[0].join()
    assert_told(caplog, f"postgresql at {server.host}:{server.port}", "wrote the same rows")
    assert words.counted_all()


def test_a_lock_that_somebody_holds_is_told_with_where_to_look(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = WordCount(factory(server, timeout=2.0), tmp_path)
    with client(server) as other:
        other.execute("BEGIN")

        with (
            at("before write", 2, 0, lambda: other.execute("LOCK TABLE count")),
            when_waiting(lambda: other.execute("COMMIT")),
        ):
            assert words.run() == {2: 2}
    assert_told(caplog, f"postgresql at {server.host}:{server.port}", "look at pg_stat_activity")
    assert words.counted_all()


def test_a_batch_is_counted_once_through_a_pooler_that_is_restarted(
    server: PostgresServer, tmp_path: Path
) -> None:
    with PgBouncer(tmp_path / "pooler", server) as pooler:
        words = WordCount(factory(pooler), tmp_path)
        with at("before write", 2, 0, pooler.restart), at("after write", 3, 0, pooler.restart):
            words.run()
        assert words.counted_all()


SECRET = "swordfish-77"


@pytest.fixture
def guarded(template: PostgresServer, tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that takes TLS and a password only."""
    with _Guarded(tmp_path / "guarded", template) as server:
        yield server


class _Guarded(Copied):
    def make_data(self) -> None:
        super().make_data()
        certificates = make_certificates(self.folder / "certificates")
        for name, file in (("cert", certificates.certificate), ("key", certificates.key)):
            target = self.own_file(self.data / f"server.{name}", file.read_bytes())
            self.options = (*self.options, f"ssl_{name}_file={target}")
        self.options = (*self.options, "ssl=on")
        self.authority = certificates.authority
        (self.data / "pg_hba.conf").write_text("local all all trust\nhostnossl all all all trust\n")

    def own_file(self, path: Path, content: bytes) -> Path:
        path.write_bytes(content)
        path.chmod(0o600)
        os.chown(path, self.data.stat().st_uid, self.data.stat().st_gid)
        return path

    def guard(self) -> None:
        sql(self, f"ALTER USER {self.user} PASSWORD '{SECRET}'")
        (self.data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256\n")
        self.run("pg_ctl", "reload")


def test_a_password_and_certificates_are_taken_as_libpq_has_them_and_never_shown(
    guarded: _Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.guard()
    tls = {"sslmode": "verify-ca", "sslrootcert": str(guarded.authority)}
    words = WordCount(factory(guarded, password=SECRET, **tls), tmp_path)
    words.run()
    assert words.counted_all()
    refused: list[tuple[dict[str, str], str]] = [
        ({"password": f"{SECRET}!"}, "password authentication failed.*PGPASSWORD"),
        ({}, "no password supplied.*PGPASSWORD"),
        ({"sslmode": "disable", "password": SECRET}, "no encryption|no pg_hba"),
    ]
    for options, text in refused:
        made = factory(guarded, **{**tls, **options})
        with pytest.raises(StateUnavailableError, match=text) as failed:
            made.makeState().multiGet([("w1",)])
        assert SECRET not in str(failed.value) + repr(failed.value) + repr(made)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    words.factory = factory(guarded, prefix="count", **tls)
    assert words.counted_all()
