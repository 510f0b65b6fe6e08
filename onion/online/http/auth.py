"""Who may call: a token, or this machine alone."""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import attrs

from onion.errors import OnionError
from onion.online.control.run_api import Refused

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Of a request: names in lower case, and values."""

VARIABLE = "ONION_TOKEN"
MIN_LENGTH = 16
MAX_LENGTH = 1024


def find_token(token: str | None = None, file: str | Path | None = None) -> str | None:
    """Return the token: the one given, that of a file, that of the environment variable ``ONION_TOKEN``, or None.

    Args:
        token: At least 16 characters, visible ASCII.
        file: One that holds the token alone, and that only its owner can read.

    Raises:
        OnionError: Both are given, the token is invalid, or the file cannot be read, or others can read it.
    """
    if token is not None and file is not None:
        raise OnionError("A token and a token_file were given; give one of them.")
    if token is not None:
        return _checked(token, "the token that was given")
    if file is not None:
        return _checked(_read(Path(file)), str(file))
    token = os.environ.get(VARIABLE)
    return None if token is None else _checked(token.strip(), f"the environment variable {VARIABLE}")


def _checked(token: str, where: str) -> str:
    """Return a token if it does; the token itself is in no message."""
    if len(token) < MIN_LENGTH:
        raise OnionError(
            f"The token in {where} has fewer than {MIN_LENGTH} characters; make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if len(token) > MAX_LENGTH or not all("!" <= letter <= "~" for letter in token):
        raise OnionError(f"The token in {where} is not up to {MAX_LENGTH} visible ASCII characters without spaces.")
    return token


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            # Of the opened file, so that it cannot be another one than that which is read.
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise OnionError(f"{file} holds a token and can be used by group or others; run: chmod 600 {file}")
            return opened.read(MAX_LENGTH + 2).decode("latin-1").strip()
    except OSError as error:
        raise OnionError(f"{file}: the token cannot be read: {error.strerror}.") from None


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, for this machine: ``localhost`` or an address such as ``127.0.0.1``."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@attrs.frozen
class Access:
    """The rule of one service.

    Attributes:
        token: That calls have to bring as ``Authorization: Bearer TOKEN``; None: anyone who can reach this machine's
            loopback addresses may call.
    """

    token: str | None = attrs.field(repr=False)

    def check(self, path: str, headers: Headers) -> None:
        """Check a request.

        The page's own files need no token: they hold nothing of the run, and the page asks for the token itself.

        Raises:
            Refused: It comes from the page of another site, or has no right token (401), or was sent to a name that is
                not this machine's while there is no token (403).
        """
        host = _only(headers, b"host")
        # A foreign page cannot choose the Host header, but it can let its own name lead here (DNS rebinding).
        if self.token is None and not is_loopback(_name(host)):
            raise Refused("This service has no token, so it answers to localhost only.", 403)
        _refuse_foreign(host, path, headers)
        if self.token is not None and not is_open(path):
            self._check_token(headers)

    def _check_token(self, headers: Headers) -> None:
        scheme, _, given = (_only(headers, b"authorization") or b"").partition(b" ")
        expected = (self.token or "").encode()
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), expected):
            raise Refused("A token is needed: send the header Authorization: Bearer TOKEN.", 401)


def is_open(path: str) -> bool:
    """Return whether a path is that of the page or of one of its files."""
    return path == "/" or path.startswith("/static/")


def _refuse_foreign(host: bytes | None, path: str, headers: Headers) -> None:
    """Refuse what a page of another site had the browser send; following a link to the page is no such thing."""
    origins = [value for name, value in headers if name == b"origin"]
    # Schemes are not compared: a proxy may speak TLS with the browser and none with us.
    foreign = any(_netloc(origin) != (host or b"").lower() for origin in origins)
    if foreign or (_only(headers, b"sec-fetch-site") == b"cross-site" and not is_open(path)):
        raise Refused("This call comes from the page of another site.", 403)


def _only(headers: Headers, name: bytes) -> bytes | None:
    """Return the value of a header that occurs once."""
    values = [value for each, value in headers if each == name]
    return values[0] if len(values) == 1 else None


def _netloc(origin: bytes) -> bytes | None:
    scheme, separator, netloc = origin.lower().partition(b"://")
    return netloc if separator and scheme in (b"http", b"https") else None


def _name(host: bytes | None) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit("//" + (host or b"").decode("latin-1")).hostname or ""
    except ValueError:
        return ""
