"""The URLs of states: how a request is read, and its answer sent."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trident.drpc.errors import DRPCError, MalformedRequestError
from trident.server.application import methods_and_paths, param, route, seconds_of, token_of
from trident.server.failure_log import log_failure
from trident.server.functions import Functions
from trident.server.responses import response, utf8
from trident.state_service.errors import StateLeftOutError, UnknownStateError
from trident.state_service.requests import READS, Form, Read, StateRequest, named_states
from trident.state_service.served_states import ServedState
from trident.state_service.service import StateService, holder, queue_of
from trident.wire.errors import public_error

STATES = "/api/v1/state"
BATCH = ":batchGet"
_FILE = files(__package__).joinpath("openapi.json")
"""The description of all URLs, by OpenAPI."""
_REVALIDATED = ("Cache-Control", "no-cache")


def state_routes(
    functions: Functions, services: Sequence[StateService], served: Sequence[BaseRoute] = ()
) -> list[Route]:
    """The routes to states, and to ``/openapi.json``, which describes the URLs of `served`.

    If two services have a state of one name, the first answers.
    """
    routes = _StateRoutes(functions, services)

    async def described(request: Request) -> Response:
        routes.admit_to_any(token_of(request))
        return _fresh(request, orjson.dumps(_openapi(methods_and_paths(served))))

    return [
        route(STATES, routes.list_states),
        route(f"{STATES}{BATCH}", routes.several, "POST"),
        route(f"{STATES}/{{name}}{BATCH}", routes.batch, "POST"),
        route(f"{STATES}/{{name}}", routes.value),
        route(f"{STATES}/{{name}}/{{key:path}}", routes.key),
        route("/openapi.json", described),
    ]


class _StateRoutes:
    def __init__(self, functions: Functions, services: Sequence[StateService]) -> None:
        self._functions = functions
        self._services = services

    def admit_to_any(self, token: str | None) -> None:
        """Refuse callers who may ask for nothing at all."""
        access, names = self._functions.access, self._functions.names
        allowed = access.allowed([*names, *map(queue_of, self._states())], token)
        self._functions.admit(allowed[0] if allowed else "state", token)

    async def list_states(self, request: Request) -> Response:
        """The states and functions that the caller may ask for."""
        self.admit_to_any(token_of(request))
        seconds = self._functions.seconds(seconds_of(request))
        access = self._functions.access
        states = [
            state
            for name, state in self._states().items()
            if access.allowed([queue_of(name)], token_of(request))
        ]
        answer = {
            "states": await asyncio.gather(*[self._describe(state, seconds) for state in states]),
            "functions": access.allowed(self._functions.names, token_of(request)),
        }
        return _fresh(request, orjson.dumps(answer))

    async def value(self, request: Request) -> Response:
        """The value of a state without keys."""
        return await self._get(request, "value", "")

    async def key(self, request: Request) -> Response:
        """The value of a key."""
        return await self._get(request, "key", param(request, "key", "the key"))

    async def _get(self, request: Request, form: Form, key: str) -> Response:
        state, service = self._named(request)
        asked = StateRequest(_read(request), form, state, key)
        return _fresh(request, await self._answer(service, asked, request))

    async def batch(self, request: Request) -> Response:
        """The values of several keys of one state."""
        state, service = self._named(request)
        asked = StateRequest(_read(request), "keys", state, utf8(await request.body(), "the body"))
        return response(200, await self._answer(service, asked, request))

    async def several(self, request: Request) -> Response:
        """The values of several keys of several states, as of one cut."""
        self.admit_to_any(token_of(request))
        body = utf8(await request.body(), "the body")
        named = list(named_states(body))
        services = [self._admit(name, token_of(request)) for name in named]
        if any(service is not services[0] for service in services):
            problem = f"{', '.join(named)} are states of several topologies. Ask one by one"
            raise MalformedRequestError(problem)
        asked = StateRequest(_read(request), "states", ", ".join(sorted(named)), body)
        return response(200, await self._answer(services[0], asked, request))

    def _named(self, request: Request) -> tuple[str, StateService]:
        """The state that the path names, which the caller may read, and its service."""
        state = param(request, "name", "the name of the state")
        return state, self._admit(state, token_of(request))

    def _states(self) -> Mapping[str, ServedState]:
        return {
            name: state
            for service in reversed(self._services)
            for name, state in service.states.items()
        }

    def _admit(self, state: str, token: str | None) -> StateService:
        """The service of a state that the caller may read."""
        self._functions.admit(queue_of(state), token)
        service = holder(self._services, state)
        if service is None:
            access = self._functions.access
            known = [name for name in self._states() if access.allowed([queue_of(name)], token)]
            raise UnknownStateError(state, known)
        if left_out := service.states[state].left_out:
            raise StateLeftOutError(state, left_out)
        return service

    async def _answer(self, service: StateService, asked: StateRequest, request: Request) -> bytes:
        seconds = self._functions.seconds(seconds_of(request))
        return (await service.ask_async(asked, seconds)).encode()

    async def _describe(self, state: ServedState, seconds: float) -> Mapping[str, Any]:
        """Describe a state, with its last committed batch if that can be read now."""
        txid, problem = None, state.left_out
        service = holder(self._services, state.name)
        if not problem and service is not None:
            try:
                asked = StateRequest("committed", "txid", state.name)
                txid = orjson.loads(await service.ask_async(asked, seconds))["txid"]
            except DRPCError as error:
                log_failure(error)
                problem = public_error(error).message
        return {
            "name": state.name,
            "key": None if state.key is None else _fields(state.key.types),
            "value": None if state.value is None else _fields(state.value.types),
            "kind": state.kind,
            "reads": "committed batches" if state.whole else "perhaps a part of a batch",
            "guarantee": state.guarantee,
            "why": state.why,
            "group": state.group,
            "txid": txid,
            "problem": problem or None,
        }


def _fields(types: Mapping[str, str | None]) -> Sequence[Mapping[str, str | None]]:
    return [{"name": name, "type": kind} for name, kind in types.items()]


def _fresh(request: Request, body: bytes) -> Response:
    """Respond with the body and its tag, or that the caller has the body already."""
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = (("ETag", tag), _REVALIDATED)
    known = request.headers.get("if-none-match", "").split(",")
    if {"*", tag} & {each.strip().removeprefix("W/") for each in known}:
        return Response(status_code=304, headers=dict(headers))
    return response(200, body, *headers)


def _read(request: Request) -> Read:
    """Read from the query of the URL what to show."""
    query = request.scope["query_string"].decode("latin-1")
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=10)
    except ValueError as error:
        raise MalformedRequestError("the query has too many fields") from error
    read: Read = "committed"
    for name, value in given:
        if name != "read" or value not in READS:
            allowed = " or ".join(f"read={each}" for each in READS)
            raise MalformedRequestError(f"the query {name}={value!r:.100}; there is {allowed}")
        read = "latest" if value == "latest" else "committed"
    return read


def _openapi(routes: Collection[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the description, by OpenAPI 3.1, of the URLs that are answered."""
    described: dict[str, Any] = orjson.loads(_FILE.read_bytes())
    answered = {
        path: {name: each for name, each in methods.items() if (name.upper(), path) in routes}
        for path, methods in described["paths"].items()
    }
    return {**described, "paths": {path: each for path, each in answered.items() if each}}
