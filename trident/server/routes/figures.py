"""The URLs of figures: metrics for Prometheus, and the health."""

from __future__ import annotations

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trident.figures.prometheus import CONTENT_TYPE, text
from trident.figures.run_figures import ServerFigures
from trident.server.access import Access
from trident.server.application import route, token_of
from trident.server.health import Health
from trident.server.responses import response

METRICS = "metrics"
"""What ``allow=`` calls the figures, and the details of health."""
_NEVER_STORED = ("Cache-Control", "no-store")


def figures_routes(figures: ServerFigures, health: Health, access: Access) -> list[Route]:
    """The routes ``GET /metrics`` and ``GET /healthz``.

    Callers that may not see ``"metrics"`` get only the status of the health.
    """

    async def metrics(request: Request) -> Response:
        access.check(METRICS, token_of(request))
        try:
            page = text(await figures.read())
        except TimeoutError as error:
            return response(503, str(error).encode(), ("Content-Type", "text/plain"))
        return response(200, page.encode(), ("Content-Type", CONTENT_TYPE), _NEVER_STORED)

    async def healthz(request: Request) -> Response:
        found = await health.check()
        if not access.allowed([METRICS], token_of(request)):
            found = {"status": found["status"]}
        status = 200 if found["status"] == "ok" else 503
        return response(status, orjson.dumps(found), _NEVER_STORED)

    return [route("/metrics", metrics), route("/healthz", healthz)]
