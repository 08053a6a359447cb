"""The spouts that come with the library."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spouts.counting import count
from trident import GeneratorSpout, SocketLinesSpout, TextFileSpout, TridentTopology
from trident.batch.errors import BatchFailedError, OutageError
from trident.errors import OperationError, SourceUnavailableError
from trident.spouts.socket_lines import SocketLinesError
from trident.states import Token
from trident.storm import SpoutCollector
from trident.testing import fail_at
from trident.testing.servers.process import wait_until


def test_a_generator_makes_a_tuple_of_each_number(tmp_path: Path) -> None:
    spout = GeneratorSpout("kind string", lambda n: ["odd" if n % 2 else "even"], total=7, batch=3)
    with fail_at("after write", txid=2):
        assert count(tmp_path, spout, "kind", ["even", "odd"]) == [4, 3]


def test_a_generator_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    for total in (5, 8):
        spout = GeneratorSpout("n long", lambda n: [n], total=total, batch=3)
        found = count(tmp_path, spout, "n", list(range(9)))
        assert found == [1] * total + [None] * (9 - total)


def test_a_generator_of_columns_makes_many_at_once(tmp_path: Path) -> None:
    spout = GeneratorSpout.of_columns(
        "n long", lambda some: {"n": [n % 10 for n in some]}, total=1000, batch=300
    )
    assert count(tmp_path, spout, "n", list(range(10))) == [100] * 10


def test_a_generator_with_a_rate_is_never_ahead_of_it() -> None:
    coordinator = GeneratorSpout("n long", lambda n: [n], rate=1e-3).getCoordinator("s", {}, None)
    assert coordinator.initializeTransaction(1, None, None) == {"from": 0, "to": 0}
    assert not coordinator.isReady(2)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rate": 0}, {"rate": float("inf")}, {"rate": float("nan")}, {"batch": -1}),
        *({"batch": 1e3}, {"batch": True}, {"total": 0}, {"total": 4.0}),
    ],
)
def test_a_generator_takes_numbers_above_0(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="above 0, found"):
        GeneratorSpout("n long", lambda n: [n], **wrong)


def test_a_generator_takes_a_function() -> None:
    with pytest.raises(TypeError, match="make is a function, found int 7"):
        GeneratorSpout("n long", 7)  # type: ignore[arg-type]


def lines_of(folder: Path, *lines: str) -> list[Any]:
    return count(folder, TextFileSpout(folder / "*.txt", batch_bytes=4), "line", list(lines))


def test_every_line_of_every_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("eins\nzwei\r\n\n\u00fcber\n".encode())
    (tmp_path / "b.txt").write_bytes(b"eins\nthe last one has no end")
    asked = ["eins", "zwei", "", "\u00fcber", "the last one has no end", "b"]
    assert lines_of(tmp_path, *asked) == [2, 1, 1, 1, 1, None]


def test_lines_that_are_appended_and_files_that_are_added_are_read_by_the_next_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert lines_of(tmp_path, "one") == [1]
    with open(tmp_path / "a.txt", "a") as file:
        file.write("two\n")
    (tmp_path / "b.txt").write_text("one\n")
    assert lines_of(tmp_path, "one", "two") == [2, 1]


def test_a_line_that_is_still_written_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\ntw")
    spout = TextFileSpout(log, follow=True)
    assert count(tmp_path, spout, "line", ["one", "tw"]) == [1, None]
    with log.open("a") as file:
        file.write("o\n")
    assert count(tmp_path, spout, "line", ["one", "tw", "two"]) == [1, None, 1]


def test_a_name_that_looks_like_a_pattern_is_read_where_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "[a].log").write_text("x\n")
    assert count(tmp_path, TextFileSpout(tmp_path / "[a].log"), "line", ["x"]) == [1]


def test_a_batch_of_a_file_is_emitted_again_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        count(tmp_path, TextFileSpout(tmp_path / "*.txt"), "line", ["one"], retries=0)
    (tmp_path / "a.txt").write_text("one and more\n")
    asked = ["one", " and more", "one and more"]
    assert count(tmp_path, TextFileSpout(tmp_path / "*.txt"), "line", asked) == [1, 1, None]


def test_a_file_that_was_shortened_is_an_error_that_names_the_byte(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert lines_of(tmp_path, "one") == [1]
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(OperationError, match=r"a\.txt, byte 4: the file ends here.*up to byte 8"):
        lines_of(tmp_path, "one")


def test_a_byte_that_is_no_utf8_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\nb\xff\n")
    with pytest.raises(OperationError, match=r"a\.txt, byte 3: the byte 0xff is no UTF-8"):
        lines_of(tmp_path, "a")


def test_a_file_that_is_gone_in_mid_batch_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        count(tmp_path, TextFileSpout(tmp_path / "*.txt"), "line", ["one"], retries=0)
    (tmp_path / "a.txt").rename(tmp_path / "a.old")
    with pytest.raises(OutageError, match=r"a\.txt: it is part of batch 1"):
        count(tmp_path, TextFileSpout(tmp_path / "*.txt"), "line", ["one"], patience=0.01)
    (tmp_path / "a.old").rename(tmp_path / "a.txt")
    assert lines_of(tmp_path, "one") == [1]


def test_a_file_that_was_written_anew_is_an_error_though_it_is_longer(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert lines_of(tmp_path, "one") == [1]
    (tmp_path / "a.txt").write_text("three\nfour\nfive\n")
    with pytest.raises(OperationError, match=r"a\.txt, byte 8: .*the file was written anew"):
        lines_of(tmp_path, "one")
    (tmp_path / "a.txt").write_text("one\ntwo\nsix\n")
    assert lines_of(tmp_path, "one", "six") == [1, 1]


def test_a_batch_is_not_emitted_again_from_a_file_that_was_written_anew(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        count(tmp_path, TextFileSpout(tmp_path / "*.txt"), "line", ["one"], retries=0)
    (tmp_path / "a.txt").write_text("two\n")
    with pytest.raises(OperationError, match=r"a\.txt, byte 4: .*the file was written anew"):
        lines_of(tmp_path, "one")


def test_a_line_longer_than_a_batch_comes_whole_and_nothing_behind_it_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("x" * 100 + "\nb\n" + "y" * 10_000)
    spout = TextFileSpout(tmp_path / "a.txt", batch_bytes=4)
    emitter, collector = spout.getEmitter({}, None), SpoutCollector("it", spout.getOutputFields())
    [file] = emitter.getOrderedPartitions([str(tmp_path / "a.txt")])
    token = Token(1, 0)
    told = emitter.emitPartitionBatchNew(token, collector, file, None)
    assert (told["from"], told["to"]) == (0, 101)
    assert lines_of(tmp_path, "x" * 100, "b", "y" * 10_000) == [1, 1, 1]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\none\n")
    assert lines_of(tmp_path, "one") == [2]


def test_a_folder_is_an_error_that_shows_the_pattern_of_its_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is a folder. Name its files: .*/\*$"):
        TextFileSpout(tmp_path)


def test_a_file_that_is_named_is_waited_for(tmp_path: Path) -> None:
    missing = TextFileSpout(tmp_path / "a.txt")
    with pytest.raises(OutageError, match=r"a\.txt: No such file"):
        count(tmp_path, missing, "line", ["one"], patience=0.01)
    (tmp_path / "a.txt").write_text("one\n")
    assert count(tmp_path, missing, "line", ["one"]) == [1]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def connected(server: socket.socket) -> Iterator[tuple[SocketLinesSpout, socket.socket]]:
    """A spout of two lines a batch, opened, and the server's end of its connection."""
    spout = SocketLinesSpout("127.0.0.1", server.getsockname()[1], batch=2)
    spout.open({}, None)
    connection, _ = server.accept()
    with connection:
        yield spout, connection
        spout.close()


def emitted(spout: SocketLinesSpout, txid: int) -> list[str]:
    collector = SpoutCollector("the spout", spout.getOutputFields())
    spout.emitBatch(txid, collector)
    return list(collector.block().values("line"))


def test_lines_of_a_socket_come_in_batches_and_again_until_they_are_acked(
    connected: tuple[SocketLinesSpout, socket.socket],
) -> None:
    spout, connection = connected
    assert not spout.isReady(1)
    connection.sendall("one\ntw\u00f6\r\nthree\nfour\n".encode())
    wait_until(lambda: len(spout._lines) == 2)
    assert emitted(spout, 1) == emitted(spout, 1) == ["one", "tw\u00f6"]
    spout.ack(1)
    wait_until(lambda: len(spout._lines) == 2)
    assert emitted(spout, 2) == ["three", "four"]


def test_the_listener_hears_of_lines_and_of_the_end(
    connected: tuple[SocketLinesSpout, socket.socket],
) -> None:
    spout, connection = connected
    heard = threading.Semaphore(0)
    assert spout.whenReady(heard.release)
    connection.sendall(b"one\n")
    assert heard.acquire(timeout=30)
    assert spout.isReady(1)
    connection.close()
    assert heard.acquire(timeout=30)
    assert emitted(spout, 1) == ["one"]
    spout.ack(1)
    assert not spout.isReady(2)


def test_lines_that_are_no_text_end_the_stream_with_an_error(
    connected: tuple[SocketLinesSpout, socket.socket],
) -> None:
    spout, connection = connected
    connection.sendall(b"one\n\xff\n")
    wait_until(lambda: spout._problem is not None)
    assert emitted(spout, 1) == ["one"]
    spout.ack(1)
    assert spout.isReady(2)
    with pytest.raises(SocketLinesError, match=r"127\.0\.0\.1:.*utf-8.*a new run connects"):
        emitted(spout, 2)


def test_a_line_without_an_end_is_an_error_and_not_kept_in_memory(
    connected: tuple[SocketLinesSpout, socket.socket],
) -> None:
    spout, connection = connected
    connection.sendall(b"x" * 5 + b"\n")
    wait_until(lambda: spout.isReady(1))
    assert emitted(spout, 1) == ["xxxxx"]
    spout.ack(1)
    chunk = b"x" * (1 << 20)
    for _ in range(17):
        connection.sendall(chunk)
    wait_until(lambda: spout.isReady(2))
    with pytest.raises(SocketLinesError, match="a line has 16,777,216 bytes and no end"):
        emitted(spout, 2)


def test_a_connection_that_is_reset_ends_the_run_with_an_error_after_its_lines(
    server: socket.socket, tmp_path: Path
) -> None:
    spout = SocketLinesSpout("127.0.0.1", server.getsockname()[1])
    topology = TridentTopology()
    topology.newStream("lines", spout)
    with topology.start() as run:
        connection, _ = server.accept()
        connection.sendall(b"one\n")
        wait_until(lambda: run.lastProgress is not None and run.lastProgress.tuples == 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        with pytest.raises(SocketLinesError, match="reset"):
            run.awaitTermination(60)


def test_closing_ends_the_connection_though_it_is_being_read(
    connected: tuple[SocketLinesSpout, socket.socket],
) -> None:
    spout, connection = connected
    connection.settimeout(60)
    spout.close()
    assert connection.recv(1) == b""
    spout.close()


def test_a_spout_that_was_closed_can_be_opened_again(
    server: socket.socket, connected: tuple[SocketLinesSpout, socket.socket]
) -> None:
    spout, connection = connected
    connection.sendall(b"one\ntwo\nthree\n")
    wait_until(lambda: spout.isReady(1))
    emitted(spout, 1)
    spout.close()
    spout.open({}, None)
    again, _ = server.accept()
    with again:
        again.sendall(b"four\nfive\n")
        wait_until(lambda: len(spout._lines) == 2)
        assert emitted(spout, 1) == ["four", "five"]


@pytest.mark.parametrize(
    ("field", "problem"),
    [("a, b", "is one field, found a, b"), ("n long", 'is a string, found "n long"')],
)
def test_a_line_is_one_string(field: str, problem: str) -> None:
    for make in (lambda: SocketLinesSpout("here", 1, field), lambda: TextFileSpout("a", field)):
        with pytest.raises(ValueError, match=f"a line {problem}"):
            make()


def test_a_server_that_is_not_there_ends_the_run_with_an_error(server: socket.socket) -> None:
    port = server.getsockname()[1]
    server.close()
    topology = TridentTopology()
    topology.newStream("lines", SocketLinesSpout("127.0.0.1", port))
    with (
        pytest.raises(SourceUnavailableError, match="no connection .*Start the server first"),
        topology.start() as run,
    ):
        run.awaitTermination(60)
