"""The headers of HTTP by which clients and servers of this library know more of each other."""

TIMEOUT = "X-DRPC-Timeout"
"""How many seconds a client waits."""
REQUEST_ID = "Idempotency-Key"
"""What tells a request from others."""
KNOWN_IDS = "X-DRPC-Ids"
"""Says of a server that it applies a request once, however often it comes with its id."""
