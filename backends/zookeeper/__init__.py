"""Checkpoints in ZooKeeper: the logs of a topology's groups, for a driver on any machine."""

from __future__ import annotations

from trident.backends.state_url import StateURL
from trident.backends.zookeeper.checkpoint import ZooKeeperCheckpoint
from trident.states.errors import StateURLError

__all__ = ["ZooKeeperCheckpoint", "from_url"]

_PORT = 2181


def from_url(url: StateURL) -> ZooKeeperCheckpoint:
    """Return the checkpoint that a URL describes; connects to nothing.

    ``zookeeper://[user:password@]host:port,host:port/path``, where the path is another one for
    each topology. The options are `timeout` and `session_timeout` of
    :class:`ZooKeeperCheckpoint`.

    Raises
    ------
    StateURLError
        For hosts, a path or an option that the scheme doesn't take.

    Examples
    --------
    >>> from_url(StateURL.parse("zookeeper://me:secret@one,two:2182/trident/words")).where
    'zookeeper://one:2181,two:2182/trident/words'
    """
    hosts = url.addresses(_PORT)
    path = url.checkpoint_path("zookeeper")
    if (url.user is None) != (url.password is None):
        raise StateURLError(f"{url.scheme}: a user and a password go together; give both")
    return ZooKeeperCheckpoint(
        hosts,
        f"/{path}",
        user=url.user,
        password=url.password,
        **url.read_own(timeout=float, session_timeout=float),
    )
