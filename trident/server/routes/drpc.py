"""The URLs of functions, which are Storm's."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trident.server.application import param, route, seconds_of, token_of
from trident.server.functions import Functions
from trident.server.responses import error_response, response, utf8
from trident.wire.headers import REQUEST_ID


def drpc_routes(functions: Functions) -> list[Route]:
    """The routes to functions.

    ``GET /drpc/{function}/{args}``, ``GET /drpc/{function}`` (no arguments) and
    ``POST /drpc/{function}``, whose body is the arguments. A function that updates states is
    called by POST only, as browsers and caches may repeat a GET, or make one by themselves.
    """

    async def execute(request: Request) -> Response:
        name = param(request, "function", "the name of the function")
        token = token_of(request)
        if request.method == "POST":
            args = await request.body()
        elif name in functions.updating:
            functions.admit(name, token)
            problem = f"{name!r} updates a state: call it by POST, with the arguments as the body"
            return error_response(405, "METHOD_NOT_ALLOWED", problem, ("Allow", "POST"))
        else:
            args = unquote_to_bytes(request.path_params.get("args", ""))
        answer = await functions.execute(
            name,
            utf8(args, "the arguments"),
            seconds_of(request),
            token,
            # Not X-Request-Id, which proxies copy to all requests that one request leads to.
            request.headers.get(REQUEST_ID),
        )
        return response(200, answer.encode())

    return [
        route("/drpc/{function}", execute, "GET", "POST"),
        route("/drpc/{function}/{args:path}", execute),
    ]
