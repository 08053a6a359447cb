"""Certificates for servers of this machine, signed by an authority made for the occasion."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from trident.testing.servers.process import installed

_ADDRESSES = "subjectAltName=IP:127.0.0.1,DNS:localhost"


@dataclass(frozen=True)
class Certificates:
    """The files of a server's TLS; clients trust `authority`."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make an authority, and a certificate for 127.0.0.1 and localhost, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    authority_key, request, extensions = folder / "ca.key", folder / "csr", folder / "extensions"
    new_key = ("-newkey", "rsa:2048", "-nodes", "-keyout")
    signed_by = ("-CA", made.authority, "-CAkey", authority_key, "-CAcreateserial")
    extensions.write_text(_ADDRESSES)
    signs = ("-addext", "keyUsage=critical,keyCertSign")  # without it Python 3.13 trusts nobody
    subject = ("-subj", "/CN=tests", *signs)
    _openssl("req", "-x509", *new_key, authority_key, *subject, "-out", made.authority)
    _openssl("req", *new_key, made.key, "-subj", "/CN=localhost", "-out", request)
    _openssl(
        "x509", "-req", "-in", request, *signed_by, "-extfile", extensions, "-out", made.certificate
    )
    return made


def _openssl(*arguments: str | Path) -> None:
    command = [installed("openssl", "openssl"), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)
