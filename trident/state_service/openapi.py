"""What can be asked of a server, as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_KEY = {
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {}, "description": "The fields of a key, with tags."},
    ]
}
_TXID = {"type": ["integer", "null"], "description": "The batch; null before the first."}
_VALUE = {"description": "Any JSON; what that has no form for is an object with one $-name."}
_READ = {
    "name": "read",
    "in": "query",
    "description": "latest shows what was written last, of batches that may never be committed.",
    "schema": {"enum": ["committed", "latest"], "default": "committed"},
}
_TIMEOUT = {
    "name": "X-DRPC-Timeout",
    "in": "header",
    "description": "Seconds to wait for the answer at most.",
    "schema": {"type": "number", "exclusiveMinimum": 0},
}
_REQUEST_ID = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Made anew for each request; a function that updates applies it once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
_ETAG = {"ETag": {"schema": {"type": "string"}}}
_IF_NONE_MATCH = {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}


def _object(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required or properties), "properties": properties}


_ERROR = _object(error={"type": "string"}, errorMessage={"type": "string"})
_FIELDS = {
    "type": ["array", "null"],
    "items": _object(name={"type": "string"}, type={"type": ["string", "null"]}),
}
_STATE = _object(
    name={"type": "string"},
    key=_FIELDS,
    value=_FIELDS,
    kind={"type": ["string", "null"]},
    reads={"type": "string"},
    guarantee={"type": "string"},
    why={"type": "string"},
    group={"type": ["string", "null"]},
    txid=_TXID,
    problem={"type": ["string", "null"]},
)
_TEXT = {"type": "string"}
_VALUES = {"type": "array", "items": _VALUE}
_FOUND = {"anyOf": [_object(txid=_TXID, values=_VALUES), _object(txid=_TXID, value=_VALUE)]}
_ANSWER = "The tuples of the result, each an array of its values."


def _content(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": _content(schema)}


def _in_path(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]


def _operation(
    summary: str, schema: Mapping[str, Any], *, tagged: bool = False, **more: Any
) -> dict[str, Any]:
    """An operation that answers with JSON, or with an error as JSON."""
    ok: dict[str, Any] = {"description": "The answer.", "content": _content(schema)}
    responses: dict[str, Any] = {"200": ok}
    if tagged:
        ok["headers"] = _ETAG
        responses["304"] = {"description": "As If-None-Match says, the caller has it."}
    responses["default"] = {"description": "What went wrong.", "content": _content(_ERROR)}
    return {"summary": summary, **more, "responses": responses}


def _text(summary: str, media: str) -> dict[str, Any]:
    """An operation that answers with something else than JSON."""
    ok = {"description": "The answer.", "content": {media: {"schema": _TEXT}}}
    failed = {"description": "What went wrong.", "content": _content(_ERROR)}
    return {"summary": summary, "responses": {"200": ok, "default": failed}}


# Many generators of clients make no call with a body of text: they take the bytes.
_ARGS = {
    "description": "The arguments, in UTF-8; without them the empty text.",
    "content": {
        "text/plain": {"schema": _TEXT},
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
    },
}
_DRPC = {"type": "array", "items": {"type": "array", "items": {}}, "description": _ANSWER}
_OPERATIONS: Sequence[tuple[str, str, str, dict[str, Any]]] = [
    (
        "/drpc/{function}/{args}",
        "get",
        "queryFunction",
        _operation("Call a function.", _DRPC, parameters=[*_in_path("function", "args"), _TIMEOUT]),
    ),
    (
        "/drpc/{function}",
        "get",
        "queryFunctionWithoutArguments",
        _operation(
            "Call a function without arguments.",
            _DRPC,
            parameters=[*_in_path("function"), _TIMEOUT],
        ),
    ),
    (
        "/drpc/{function}",
        "post",
        "callFunction",
        _operation(
            "Call a function.",
            _DRPC,
            parameters=[*_in_path("function"), _TIMEOUT, _REQUEST_ID],
            requestBody=_ARGS,
        ),
    ),
    (
        "/api/v1/state",
        "get",
        "listStates",
        _operation(
            "Which states and functions there are.",
            _object(
                states={"type": "array", "items": _STATE},
                functions={"type": "array", "items": _TEXT},
            ),
            tagged=True,
            parameters=[_IF_NONE_MATCH],
        ),
    ),
    (
        "/api/v1/state/{name}",
        "get",
        "getSingleValue",
        _operation(
            "The value of a state without keys.",
            _object(state=_TEXT, read=_TEXT, txid=_TXID, value=_VALUE),
            tagged=True,
            parameters=[*_in_path("name"), _READ, _IF_NONE_MATCH, _TIMEOUT],
        ),
    ),
    (
        "/api/v1/state/{name}/{key}",
        "get",
        "getValue",
        _operation(
            "The value of a key: a text, or a JSON array of its fields where it begins with [.",
            _object(state=_TEXT, read=_TEXT, key=_KEY, txid=_TXID, value=_VALUE),
            tagged=True,
            parameters=[*_in_path("name", "key"), _READ, _IF_NONE_MATCH, _TIMEOUT],
        ),
    ),
    (
        "/api/v1/state/{name}:batchGet",
        "post",
        "getValues",
        _operation(
            "The values of keys of a state, as of one batch; null for each that is absent.",
            _object(state=_TEXT, read=_TEXT, txid=_TXID, values=_VALUES),
            parameters=[*_in_path("name"), _READ, _TIMEOUT],
            requestBody=_body(_object(keys={"type": "array", "items": _KEY})),
        ),
    ),
    (
        "/api/v1/state:batchGet",
        "post",
        "getValuesOfStates",
        _operation(
            "The values of keys of several states, of each batch group as of one batch.",
            _object(read=_TEXT, states={"type": "object", "additionalProperties": _FOUND}),
            parameters=[_READ, _TIMEOUT],
            requestBody=_body(
                _object(
                    states={
                        "type": "object",
                        "additionalProperties": {
                            "type": ["array", "null"],
                            "items": _KEY,
                            "description": "Its keys; null for the value of one without keys.",
                        },
                    }
                )
            ),
        ),
    ),
    (
        "/openapi.json",
        "get",
        "getDescription",
        _operation("This description.", {"type": "object"}, tagged=True),
    ),
    (
        "/healthz",
        "get",
        "getHealth",
        _operation("Whether the run is alive and its stores can be reached.", {"type": "object"}),
    ),
    (
        "/metrics",
        "get",
        "getMetrics",
        _text("Figures, in the text format of Prometheus.", "text/plain"),
    ),
    (
        "/figures.json",
        "get",
        "getFigures",
        _operation("The figures of runs and queries.", {"type": "object"}),
    ),
    (
        "/plan.json",
        "get",
        "getPlan",
        _operation("The topologies: steps, states, queries.", {"type": "array", "items": {}}),
    ),
    (
        "/events",
        "get",
        "followFigures",
        _text("The figures, sent whenever they have changed.", "text/event-stream"),
    ),
    (
        "/",
        "get",
        "getPage",
        _text("The page that shows the topology with its figures.", "text/html"),
    ),
]


def openapi(routes: Collection[tuple[str, str]]) -> Mapping[str, Any]:
    """The description, by OpenAPI 3.1, of those of the URLs that are answered.

    Parameters
    ----------
    routes : collection of (str, str)
        The method and path of each route.

    Examples
    --------
    >>> list(openapi([("GET", "/drpc/{function}"), ("GET", "/healthz")])["paths"])
    ['/drpc/{function}', '/healthz']
    """
    paths: dict[str, dict[str, Any]] = {}
    for path, method, name, operation in _OPERATIONS:
        if (method.upper(), path) in routes:
            paths.setdefault(path, {})[method] = {"operationId": name, **operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Queries and states of a topology", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }
