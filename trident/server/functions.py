"""The functions that a server answers, for every service and transport."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCClosedError,
    DRPCUsageError,
    UnknownFunctionError,
)
from trident.plan.plan import Plan
from trident.server.access import Access
from trident.server.limits import DRPCLimits


class Service(Protocol):
    """Answers some functions, as `LocalDRPC` does."""

    @property
    def functions(self) -> Sequence[str]:
        """The functions that it has at present."""

    async def execute_async(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Answer one request."""


class Functions:
    """Checks a call, and hands it to the service that has the function.

    Where two services have a function of one name, the first answers.
    """

    def __init__(self, services: Iterable[Service], access: Access, limits: DRPCLimits) -> None:
        self.services = tuple(services)
        self.access = access
        self.limits = limits
        plans = [getattr(each, "plan", None) for each in self.services]
        self.updating = frozenset(
            name for plan in plans if isinstance(plan, Plan) for name in plan.updating
        )
        """The functions that update states."""
        self.under_way = 0
        """How many calls are being answered."""
        self._closed = False

    @property
    def names(self) -> tuple[str, ...]:
        """All functions, each once."""
        return tuple(dict.fromkeys(name for each in self.services for name in each.functions))

    async def execute(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        token: str | None = None,
        request_id: str | None = None,
    ) -> str:
        """Answer a call, in `timeout` seconds at most, and never more than the server's."""
        self.admit(function, token)
        most = self.limits.args
        # A character takes four bytes at most.
        if len(args) * 4 > most and len(args.encode(errors="surrogatepass")) > most:
            raise ArgumentsTooLargeError(function, most)
        seconds = self.seconds(timeout)
        self.under_way += 1
        try:
            for service in self.services:
                if function in service.functions:
                    return await service.execute_async(
                        function, args, seconds, request_id=request_id
                    )
        finally:
            self.under_way -= 1
        raise UnknownFunctionError(function, self.access.allowed(self.names, token))

    def admit(self, name: str, token: str | None) -> None:
        """Refuse a call after the close, or one that the caller may not make; `name` is that of a
        function, or another one that `allow=` can list.
        """
        if self._closed:
            raise DRPCClosedError(name)
        self.access.check(name, token)

    def seconds(self, asked: float | None) -> float:
        """Return how long a call may take: what was asked for, but at most the server's limit."""
        return self.limits.timeout if asked is None else min(asked, self.limits.timeout)

    def close(self) -> None:
        self._closed = True


def service_of(served: Any) -> Service:
    """Return the service of a run, or a service itself; DRPCUsageError for anything else."""
    service: Service = getattr(served, "drpc", served)
    if not hasattr(service, "execute_async"):
        what = "a DRPC server answers for a run, a topology or a service, or a list of them, found"
        raise DRPCUsageError(what, type(served).__name__)
    return service
