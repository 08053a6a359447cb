"""What the errors of HBase's Thrift gateway and its connections mean, each with the next step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trident.states.errors import StateError, StateUnavailableError

START = (
    "Start HBase's Thrift gateway there (hbase thrift start -p {port}); for a trial: "
    "docker run -d -p {port}:9090 harisekhon/hbase."
)
_CUT = (
    "The batch is retried. Look at the gateway's log; if every first call ends so, the gateway "
    'speaks another transport or protocol: give transport="framed" or protocol="compact".'
)
_SLOW = (
    "The gateway itself waits for region servers that are down or busy: look at HBase's logs, or "
    "give a longer timeout=."
)
_SILENT = (
    "Is it HBase's Thrift gateway, and is it paused or overloaded? Look at its log, or give a "
    "longer timeout= if its machine is only slow."
)
_WRONG = (
    "Look at the gateway's log. The calls are those of `hbase thrift`; a gateway started as "
    "`hbase thrift2` has others."
)
_RETRIED = "The batch is retried; look at the logs of HBase's master and region servers."
_REFUSALS = (
    ("TableNotFound", "The table was dropped; it is made anew when it is used again."),
    ("TableNotEnabled", "Enable the table in HBase's shell: enable '{table}'."),
    ("NoSuchColumnFamily", "Add the family in HBase's shell: alter '{table}', '{family}'."),
    ("NamespaceNotFound", "Make the table's namespace in HBase's shell: create_namespace."),
    ("AccessDenied", "Grant the gateway's user RWC on the table, and R on hbase:meta."),
    ("out of range", "Versions are cell timestamps: unset the slop for timestamps on the servers."),
)
"""A part of the first line of HBase's error, and the next step."""


def no_answer(gateway: str, patience: float) -> StateUnavailableError:
    """Return the error of a gateway that accepts a connection and never answers."""
    return StateUnavailableError(gateway, f"no answer within {patience:g} s", _SILENT)


@contextmanager
def explained(gateway: str, timeout: float, table: str, family: str) -> Iterator[None]:
    """Turn the errors of calls into ours with advice: StateError if a retry can't help."""
    try:
        yield
    except TimeoutError:
        raise StateUnavailableError(gateway, f"no answer within {timeout:g} s", _SLOW) from None
    except OSError as error:
        raise StateUnavailableError(gateway, f"the connection was cut ({error})", _CUT) from None
    except Exception as error:
        if not type(error).__module__.startswith(("thriftpy2", "Hbase_thrift")):
            raise
        # Its text is Java's stack, in one line of many thousand characters.
        raise _explain_thrift(gateway, table, family, error) from None


def _explain_thrift(gateway: str, table: str, family: str, error: Exception) -> Exception:
    complaint = _first_line(error)
    match type(error).__name__:
        case "TDecodeException":
            return error  # an argument of another type than bytes: the caller's mistake
        case "TTransportException":
            return StateUnavailableError(gateway, "the connection was cut", _CUT)
        case "IllegalArgument":
            return StateError(
                f"{gateway}: table {table} refuses a write: {complaint}. Keep "
                "values under the servers' hbase.server.keyvalue.maxsize, or raise it."
            )
        case "IOError":
            advice = next((advice for part, advice in _REFUSALS if part in complaint), _RETRIED)
            return StateUnavailableError(
                gateway, f"table {table}: {complaint}", advice.format(table=table, family=family)
            )
    return StateUnavailableError(gateway, f"it answered with an error ({complaint})", _WRONG)


def _first_line(error: Exception) -> str:
    """Return the first line of an error, without Java's stack and packages."""
    message = getattr(error, "message", None) or str(error)
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    line = text.partition("\n")[0].strip().rstrip(".")
    return " ".join(word.rpartition("hbase.")[2] for word in line.split())[:240]
