"""The URLs of figures: what Prometheus reads, and whether all is well."""

from __future__ import annotations

import orjson

from trident.figures.health import Health
from trident.figures.prometheus import CONTENT_TYPE, text
from trident.figures.server_figures import ServerFigures
from trident.server.access import Access
from trident.server.router import JSON, Request, Response, Router

METRICS = "metrics"
"""What ``allow=`` calls the figures, and the details of health."""
_NEVER_STORED = ("Cache-Control", "no-store")


def add_figures_routes(
    router: Router, figures: ServerFigures, health: Health, access: Access
) -> None:
    """Answer ``GET /metrics`` and ``GET /healthz``.

    Parameters
    ----------
    router : Router
        Which is to answer.
    figures : ServerFigures
        What is told as metrics.
    health : Health
        What is told as health. Who may not see metrics is told the status only.
    access : Access
        Who may see ``"metrics"``.
    """

    async def metrics(request: Request) -> Response:
        access.check(METRICS, request.token)
        try:
            page = text(await figures.asked())
        except TimeoutError as error:
            return Response(503, str(error).encode(), (("Content-Type", "text/plain"),))
        return Response(200, page.encode(), (("Content-Type", CONTENT_TYPE), _NEVER_STORED))

    async def healthz(request: Request) -> Response:
        found = await health.asked()
        if not access.allowed([METRICS], request.token):
            found = {"status": found["status"]}
        status = 200 if found["status"] == "ok" else 503
        return Response(status, orjson.dumps(found), (JSON, _NEVER_STORED))

    router.add("GET", "/metrics", metrics)
    router.add("GET", "/healthz", healthz)
