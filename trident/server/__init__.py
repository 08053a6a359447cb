"""What listens for requests, over HTTP and Thrift, and answers them.

Its packages are optional, so that a name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trident.server.asgi import DRPCApp
    from trident.server.limits import DRPCLimits
    from trident.server.server import DRPCServer

__all__ = ["DRPCApp", "DRPCLimits", "DRPCServer"]

if not TYPE_CHECKING:  # to which any name, also one that is mistyped, would be there then

    def __getattr__(name):
        homes = {"DRPCApp": "asgi", "DRPCLimits": "limits", "DRPCServer": "server"}
        if name not in homes:
            raise AttributeError(f"module 'trident.server' has no attribute {name!r}")
        return getattr(import_module(f"trident.server.{homes[name]}"), name)
