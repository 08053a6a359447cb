"""What servers tell of errors and calls, and what clients read."""

from __future__ import annotations

from trident.drpc.errors import DRPCInternalError, DRPCQueueFullError, DRPCTimeoutError
from trident.wire.errors import ExceptionType, public_error, read_error
from trident.wire.thrift_binary import CALL, Message, message_bytes, read_message


def test_an_error_is_told_by_its_status_and_type() -> None:
    told = public_error(DRPCTimeoutError("words", 5.0, 2))
    assert told[:3] == (504, ExceptionType.SERVER_TIMEOUT, "SERVER_TIMEOUT")


def test_an_error_is_read_by_its_name_or_its_status() -> None:
    full = read_error("words", "", 503, b'{"error":"QUEUE_FULL","queueLength":7}')
    assert repr(full) == repr(DRPCQueueFullError("words", 7))
    other = read_error("words", "", 502, b"<html>")
    assert repr(other) == repr(DRPCInternalError("words", "", "status 502"))


def test_a_message_is_read_as_it_was_written() -> None:
    fields = {1: "words", 2: "cat"}
    found = read_message(message_bytes("execute", CALL, 1, fields))
    assert found == Message("execute", CALL, 1, fields)
