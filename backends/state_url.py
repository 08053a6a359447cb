"""The URL of a state, read without connecting to anything, and shown without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from trident.backends.url_options import URLOptions, read_options, read_own_options
from trident.states.errors import StateURLError
from trident.states.printable import HIDDEN, is_secret

Host = tuple[str, int | None]

_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):")
_EXAMPLES = 'as in "sqlite:counts.db" or "redis://localhost:6379/0?prefix=counts"'


@dataclass(frozen=True, repr=False)
class StateURL:
    """A store and its settings: ``scheme://user:password@host:port,host:port/path?name=value``.

    Pickles, with its secrets; its ``repr()`` and ``str()`` hide them. Everything is
    percent-decoded; a plus sign stays a plus sign.

    Parameters
    ----------
    scheme : str
        Which backend, in lower case.
    user, password : str or None
        None if it is empty or not given.
    hosts : sequence of (str, int or None)
        Hosts and ports, in the order given; IPv6 addresses without their brackets.
    path : str
        What follows the hosts, with its slash: ``"/0"``; without hosts whatever follows the
        scheme: ``"counts.db"``, ``"/var/counts.db"``.
    options : mapping of str to str
        As given; :meth:`read` converts them.

    Examples
    --------
    >>> url = StateURL.parse("redis://me:secret@[::1]:6379/0?kind=opaque&tls=true&cache_size=10000")
    >>> url
    StateURL('redis://me:***@[::1]:6379/0?kind=opaque&tls=true&cache_size=10000')
    >>> url.hosts, url.path
    ((('::1', 6379),), '/0')
    >>> options = url.read(tls=bool, ttl=int)
    >>> options.kind, options.prefix, options.state, options.own
    (<StateType.OPAQUE: 'opaque'>, None, {'cache_size': 10000}, {'tls': True})
    """

    scheme: str
    user: str | None = None
    password: str | None = None
    hosts: tuple[Host, ...] = ()
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @staticmethod
    def parse(text: str) -> StateURL:
        """Return the URL that `text` is; StateURLError shows no part that may be a password."""
        found = _SCHEME.match(text)
        if not found:
            # A word or the name of a file is shown; any other text may hold a secret.
            shown = text if re.fullmatch(r"[\w./-]{1,60}", text) else ""
            what = "the URL of a state starts with a scheme" + (", found" if shown else "")
            raise StateURLError(what, shown, (), f"Write it {_EXAMPLES}.")
        scheme = found[1].lower()
        rest = text[found.end() :]
        _check_marks(scheme, rest)
        place, _, query = rest.partition("?")
        authority, slash, path = place[2:].partition("/") if place[:2] == "//" else ("", "", place)
        login, at, hosts = authority.rpartition("@")
        if "@" in path + query:
            raise _malformed(scheme, "it has an @ elsewhere than between password and hosts")
        if at and not hosts:
            raise _malformed(scheme, "a user is given, and no host")
        user, _, password = login.partition(":")
        return StateURL(
            scheme,
            _decode(scheme, user) or None,
            _decode(scheme, password) or None,
            tuple(_host(scheme, host) for host in hosts.split(",")) if hosts else (),
            _decode(scheme, slash + path),
            _options(scheme, query),
        )

    def read(self, /, **own: type) -> URLOptions:
        """Convert the options: those of every scheme, and the scheme's `own`.

        Parameters
        ----------
        own : type
            The name and type of each option the scheme has itself: ``bool``, ``int``, ``float``
            or ``str``.

        Raises
        ------
        StateURLError
            For an unknown option, with the known ones and the nearest; for a value that is not of
            its option's type.
        """
        return read_options(self.scheme, self.options, own)

    def read_own(self, /, **own: type) -> dict[str, Any]:
        """Convert the options of another URL than a state's: the scheme's `own`, and no others.

        Parameters and errors are those of :meth:`read`.

        Examples
        --------
        >>> StateURL.parse("zookeeper://one/words?timeout=2.5").read_own(timeout=float)
        {'timeout': 2.5}
        """
        return read_own_options(self.scheme, self.options, own)

    def checkpoint_path(self, *reserved: str) -> str:
        """Return the path that names a checkpoint, without a slash around it.

        Raises
        ------
        StateURLError
            If there is none, or a name in it is empty, ``.``, ``..`` or one of `reserved`.

        Examples
        --------
        >>> StateURL.parse("s3://bucket/trident/words").checkpoint_path()
        'trident/words'
        """
        path = self.path.strip("/")
        if {"", ".", "..", *reserved} & {*path.split("/")}:
            what = f"{self.scheme}: a path names the checkpoint, and can't be"
            advice = "Add one, as /trident/words, another for each topology."
            raise StateURLError(what, self.path or "/", (), advice)
        return path

    def addresses(self, port: int) -> tuple[tuple[str, int], ...]:
        """Return the hosts with their ports, `port` where the URL gives none.

        Raises
        ------
        StateURLError
            If the URL names no host.

        Examples
        --------
        >>> StateURL.parse("zookeeper://one,two:2182/words").addresses(2181)
        (('one', 2181), ('two', 2182))
        """
        if not self.hosts:
            advice = f"Write it {self.scheme}://host:{port}; the default port is {port}."
            raise StateURLError(f"{self.scheme}: the URL names no host", "", (), advice)
        return tuple((host, given or port) for host, given in self.hosts)

    def address(self, port: int, advice: str = "Leave the others out.") -> tuple[str, int]:
        """Return the only host and its port; `advice` is for a URL with several hosts."""
        [only, *others] = self.addresses(port)
        if others:
            what = f"{self.scheme}: it takes one host, and the URL names {len(self.hosts)}"
            raise StateURLError(what, "", (), advice)
        return only

    def match_path(self, pattern: str, form: str) -> re.Match[str]:
        """Return the match of the whole path; raises StateURLError, which names its `form`."""
        found = re.fullmatch(pattern, self.path)
        if found is None:
            raise StateURLError(f"{self.scheme}: write the URL {form}; its path is", self.path)
        return found

    def check_no_login(self) -> None:
        """Raise StateURLError if the URL has a user or a password."""
        if self.user or self.password:
            what = f"{self.scheme}: it takes no user and no password, and the URL has one"
            raise StateURLError(what, "", (), "Leave them out.")

    def local_path(self) -> str:
        """Return the path of a store without hosts, as a file; raises StateURLError for hosts."""
        if self.hosts:
            what = f"{self.scheme}: it has no hosts, and the URL names some"
            advice = f'Write "{self.scheme}:name", or "{self.scheme}:///folder/name".'
            raise StateURLError(what, "", (), advice)
        return self.path

    def __str__(self) -> str:
        options = "&".join(
            f"{quote(name)}={HIDDEN if is_secret(name) else quote(value)}"
            for name, value in self.options.items()
        )
        hosts = f"//{self._login}{','.join(map(_show, self.hosts))}" if self.hosts else ""
        return f"{self.scheme}:{hosts}{quote(self.path)}" + (f"?{options}" if options else "")

    def __repr__(self) -> str:
        return f"StateURL({str(self)!r})"

    @property
    def _login(self) -> str:
        if self.password is None:  # the user alone may be a token
            return f"{HIDDEN}@" if self.user else ""
        return f"{quote(self.user or '')}:{HIDDEN}@"


def _malformed(scheme: str, problem: str) -> StateURLError:
    advice = f"Write the URL {_EXAMPLES}; in names and passwords @ is %40, / is %2F and ? is %3F."
    return StateURLError(f"{scheme}: {problem}", "", (), advice)


def _check_marks(scheme: str, rest: str) -> None:
    """Refuse characters that a URL must encode; most of them come from passwords and files."""
    for problem, pattern, advice in (
        ("a space or a line break", r"\s|[\0-\x1f]", "Strip it, or write a space as %20."),
        ("a #", "#", "Write it as %23."),
        ("half of a surrogate pair", "[\ud800-\udfff]", "It has no UTF-8: take it out."),
        ("a % without two hexadecimal digits behind it", "%(?![0-9a-fA-F]{2})", "Write it as %25."),
    ):
        if re.search(pattern, rest):
            raise StateURLError(f"{scheme}: the URL holds {problem}", "", (), advice)


def _decode(scheme: str, text: str) -> str:
    data = unquote_to_bytes(text)
    decoded = data.decode(errors="replace")
    if decoded.encode() != data:
        what = f"{scheme}: the URL's percent-encoded bytes are not UTF-8"
        raise StateURLError(what, "", (), "Encode its characters as UTF-8, as in %C3%A9 for é.")
    return decoded


def _host(scheme: str, text: str) -> Host:
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+(?:%25\w+)?\]|[^\[\]:]+)(?::([0-9]{1,5}))?", text)
    name = _decode(scheme, found[1].strip("[]")).lower() if found else ""
    port = int(found[2]) if found and found[2] else None
    if re.search(r"^$|[\s\0-\x1f/?#@,]", name) or (port is not None and not 0 < port < 65536):
        problem = "a host is neither a name nor an IPv6 address in brackets, or its port is not"
        raise _malformed(scheme, f"{problem} from 1 to 65535")
    return name, port


def _show(host: Host) -> str:
    name, port = host
    name = f"[{quote(name, safe=':')}]" if ":" in name else quote(name)
    return name if port is None else f"{name}:{port}"


def _options(scheme: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        name = _decode(scheme, name)
        if not equals or not name:
            what = f"{scheme}: an option is not written name=value"
            raise StateURLError(what, "", (), "In a value write & as %26.")
        if name in options:
            shown = "" if any(map(is_secret, options)) else f" {name}"  # it may be a secret's rest
            raise StateURLError(f"{scheme}: option{shown} is given twice")
        options[name] = _decode(scheme, value)
    return options
