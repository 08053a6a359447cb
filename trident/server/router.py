"""From an HTTP request to its response; knows no framework and no connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import orjson

from trident.drpc.errors import DRPCUsageError, MalformedRequestError
from trident.server.functions import Functions
from trident.server.outcomes import outcome

JSON = ("Content-Type", "application/json")


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Parameters
    ----------
    method : str
        ``"GET"`` and so on.
    target : str
        Path and query, as they came, with their escapes.
    headers : mapping of str to str
        By name, in lower case.
    body : bytes
        All of it.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query, with its escapes."""
        return self.target.partition("?")[0]

    @property
    def token(self) -> str | None:
        """What follows ``Authorization: Bearer``."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() or None if scheme.lower() == "bearer" else None

    @property
    def seconds(self) -> float | None:
        """How long the caller waits, by ``X-DRPC-Timeout``; None where it doesn't say.

        Raises
        ------
        MalformedRequestError
            For what is no number of seconds.
        """
        text = self.headers.get("x-drpc-timeout")
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise MalformedRequestError("X-DRPC-Timeout is no number of seconds")
        return seconds


class Response(NamedTuple):
    """The response to a request.

    Parameters
    ----------
    status : int
        Its status.
    body : bytes
        All of it.
    headers : tuple of (str, str)
        Besides its length.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (JSON,)


class Streamed(NamedTuple):
    """A response that goes on until the client or the server ends it.

    Parameters
    ----------
    status : int
        Its status.
    parts : async generator of bytes
        Its body; asked for the next part when the client has taken what was sent, and
        closed at the end. Never raises.
    headers : tuple of (str, str)
        All of them.
    """

    status: int
    parts: AsyncGenerator[bytes, None]
    headers: tuple[tuple[str, str], ...]


Handler = Callable[[Request], Awaitable[Response | Streamed]]


class Router:
    """Answers Storm's URLs, and those that are added.

    ``GET /drpc/{function}/{args}``, ``GET /drpc/{function}`` (no arguments) and
    ``POST /drpc/{function}``, whose body is the arguments.

    Parameters
    ----------
    functions : Functions
        What answers.

    Examples
    --------
    >>> import asyncio
    >>> from trident import TridentTopology
    >>> from trident.server.access import Access
    >>> from trident.server.limits import DRPCLimits
    >>> from trident.drpc.service import LocalDRPC
    >>> topology = TridentTopology()
    >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
    >>> with LocalDRPC(topology.plan()) as drpc:
    ...     router = Router(Functions([drpc], Access(), DRPCLimits()))
    ...     asyncio.run(router.answer(Request("GET", "/drpc/upper/a%20cat")))[:2]
    (200, b'[["A CAT"]]')
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._routes: dict[str, dict[str, Handler]] = {}
        self.add("GET", "/drpc/", self._get)
        self.add("POST", "/drpc/", self._post)

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Answer another URL.

        Parameters
        ----------
        method : str
            ``"GET"`` and so on.
        path : str
            The path; one that ends in ``/`` is that of all below it, unless a longer one is.
            ``/`` itself is only that.
        handler : callable
            Makes a response of a request, in the event loop.

        Raises
        ------
        DRPCUsageError
            For one that is answered already.
        """
        handlers = self._routes.setdefault(path, {})
        if method in handlers:
            raise DRPCUsageError("add: the router answers already", f"{method} {path}")
        handlers[method] = handler

    @property
    def routes(self) -> Collection[tuple[str, str]]:
        """The method and path of everything that is answered."""
        return [(method, path) for path, found in self._routes.items() for method in found]

    async def answer(self, request: Request) -> Response | Streamed:
        """Answer a request; never raises."""
        try:
            handlers = self._found(request.path)
            if not handlers:
                advice = "there is GET /drpc/{function}/{args}"
                return error_response(404, "NOT_FOUND", f"no such path; {advice}")
            handler = handlers.get(request.method)
            if handler is None:
                allowed = ", ".join(sorted(handlers))
                problem = f"there is {allowed}"
                return error_response(405, "METHOD_NOT_ALLOWED", problem, ("Allow", allowed))
            return await handler(request)
        except Exception as error:
            return failure(error)

    def _found(self, path: str) -> Mapping[str, Handler]:
        exact = self._routes.get(path)
        if exact is not None:
            return exact
        above = [each for each in self._routes if each[1:][-1:] == "/" and path.startswith(each)]
        return self._routes[max(above, key=len)] if above else {}

    async def _get(self, request: Request) -> Response:
        function, _, args = request.path.removeprefix("/drpc/").partition("/")
        return await self._executed(request, function, unquote_to_bytes(args))

    async def _post(self, request: Request) -> Response:
        function = request.path.removeprefix("/drpc/")
        return await self._executed(request, function, request.body)

    async def _executed(self, request: Request, function: str, args: bytes) -> Response:
        name = utf8(unquote_to_bytes(function), "the name of the function")
        answer = await self._functions.execute(
            name,
            utf8(args, "the arguments"),
            request.seconds,
            request.token,
            # Not X-Request-Id, which proxies hand on to whatever one request leads to.
            request.headers.get("idempotency-key"),
        )
        return Response(200, answer.encode())


def failure(error: Exception) -> Response:
    """The response to a request that has failed, with Storm's JSON."""
    told = outcome(error)
    headers = {401: ("WWW-Authenticate", "Bearer"), 503: ("Retry-After", "1")}
    more = (headers[told.status],) if told.status in headers else ()
    return error_response(told.status, told.error, told.message, *more, **told.details)


def error_response(
    status: int, name: str, message: str, *headers: tuple[str, str], **details: object
) -> Response:
    """A response with Storm's JSON: the name of an error, its message, and more for programs."""
    shown = message.encode(errors="replace").decode()  # a user's text may hold lone surrogates
    told = {"error": name, "errorMessage": shown, **details}
    return Response(status, orjson.dumps(told), (JSON, *headers))


def utf8(text: bytes, what: str) -> str:
    """The text of bytes.

    Raises
    ------
    MalformedRequestError
        Where they are no UTF-8; it names `what` they are.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        problem = f"{what} must be UTF-8, which ends at byte {error.start}"
        raise MalformedRequestError(problem) from error
