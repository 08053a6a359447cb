"""Checkpoints in object stores: S3 and what speaks it, Azure's and Google's."""

from __future__ import annotations

import re

from trident.backends.objectstore.checkpoint import ObjectCheckpoint
from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError

__all__ = ["ObjectCheckpoint", "from_url"]

_OWN: dict[str, dict[str, type]] = {
    "s3": {
        **dict.fromkeys(("region", "access_key_id", "secret_access_key", "session_token"), str),
        **dict.fromkeys(("skip_signature", "virtual_hosted_style_request"), bool),
    },
    "az": {
        **dict.fromkeys(("account_name", "account_key", "sas_token"), str),
        **dict.fromkeys(("tenant_id", "client_id", "client_secret"), str),
        "use_azure_cli": bool,
    },
    "gs": {"service_account": str, "bearer_token": str},
}

_ENDPOINT = re.compile(r"https?://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?(/[^\s?#]*)?", re.I)


def from_url(url: StateURL) -> ObjectCheckpoint:
    """Return the checkpoint that a URL describes; connects to nothing, and needs no driver.

    ``s3://bucket/path``, ``az://container/path`` or ``gs://bucket/path``, where the path is another
    one for each topology. ``timeout=`` and ``endpoint=`` are those of :class:`ObjectCheckpoint`,
    any other option is a setting of the store that obstore has under this name. What the URL
    doesn't say obstore takes from the environment, or asks the machine.

    Raises
    ------
    StateURLError
        For hosts, a path or an option that the scheme doesn't take.

    Examples
    --------
    >>> from_url(StateURL.parse("s3://bucket/trident/words?secret_access_key=secret")).where
    's3://bucket/trident/words'
    """
    if url.user or len(url.hosts) != 1 or url.hosts[0][1]:
        what = f"{url.scheme}: the URL names one bucket, without a login and a port"
        raise StateURLError(what, "", (), f"Write it {url.scheme}://bucket/path?option=value.")
    path = url.checkpoint_path()
    options = url.read_own(timeout=float, endpoint=str, **_OWN[url.scheme])
    if "@" in options.get("endpoint", ""):
        what = f"{url.scheme}: option endpoint can't have a login"
        raise StateURLError(what, "", (), "Give it by the options that are for it.")
    # With a wrong endpoint, or a line break behind a key, the driver would panic.
    if (endpoint := options.get("endpoint")) and not _ENDPOINT.fullmatch(endpoint):
        what = f"{url.scheme}: option endpoint takes the address of a server, found"
        raise StateURLError(what, endpoint, (), "Write it http://host:port, or https://host.")
    for name, value in options.items():
        if re.search(r"[\0-\x1f\x7f]", str(value)):
            what = f"{url.scheme}: option {name} holds a line break or another control character"
            raise StateURLError(what, "", (), "Strip it.")
    return ObjectCheckpoint(url.scheme, url.hosts[0][0], path, **options)
