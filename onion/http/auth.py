"""Who may call: holders of the token or, without one, this machine only."""

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
from onion.http.refused import Refused

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Of a request: names in lower case, and values."""

READING = "GET", "HEAD"
"""Methods that only read."""

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
        raise OnionError("Both a token and a token_file were given; give one of them.")
    if token is not None:
        return _checked(token, "the argument token")
    if file is not None:
        return _checked(_read(Path(file)), str(file))
    token = os.environ.get(VARIABLE)
    return None if token is None else _checked(token.strip(), f"the environment variable {VARIABLE}")


def _checked(token: str, where: str) -> str:
    """Return a valid token. The messages never contain the token itself."""
    if len(token) < MIN_LENGTH:
        raise OnionError(
            f"The token in {where} has fewer than {MIN_LENGTH} characters; make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if len(token) > MAX_LENGTH or not all("!" <= letter <= "~" for letter in token):
        raise OnionError(f"The token in {where} must be at most {MAX_LENGTH} visible ASCII characters without spaces.")
    return token


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            # Of the opened file, so that it cannot be replaced between the check and the read.
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise OnionError(f"{file} holds a token and is accessible to group or others; run: chmod 600 {file}")
            return opened.read(MAX_LENGTH + 2).decode("latin-1").strip()
    except OSError as error:
        raise OnionError(f"{file}: cannot read the token: {error.strerror}.") from None


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address of this machine: ``localhost``, or such as ``127.0.0.1``."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@attrs.frozen
class Access:
    """The access rule of a service.

    Attributes:
        token: Required as ``Authorization: Bearer TOKEN``. None: any caller that reaches a loopback address of this
            machine is accepted.
        free: Paths that may be read without a token, besides those of a page.
    """

    token: str | None = attrs.field(repr=False)
    free: tuple[str, ...] = ()

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Check a request.

        Reading the page's own files needs no token: they contain nothing of the run, and the page asks for the token
        itself.

        Raises:
            Refused: It comes from the page of another site, or lacks the right token (401), or there is no token and
                it was sent to a host name that is not this machine's (403).
        """
        host = _only(headers, b"host")
        # A foreign page cannot choose the Host header, but its own name can resolve to this machine (DNS rebinding).
        if self.token is None and not is_loopback(_name(host)):
            raise Refused("This service has no token, so it accepts calls to localhost only.", 403)
        reads_page = is_open(method, path)
        _refuse_foreign(host, reads_page, headers)
        if self.token is not None and not reads_page and not (method in READING and path in self.free):
            self._check_token(headers)

    def _check_token(self, headers: Headers) -> None:
        scheme, _, given = (_only(headers, b"authorization") or b"").partition(b" ")
        expected = (self.token or "").encode()
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), expected):
            raise Refused("A token is required: send the header Authorization: Bearer TOKEN.", 401)


def is_open(method: str, path: str) -> bool:
    """Return whether a request only reads a page or one of its files; a service may answer other methods there."""
    return method in READING and (path in ("/", "/docs") or path.startswith("/static/"))


def _refuse_foreign(host: bytes | None, reads_page: bool, headers: Headers) -> None:
    """Refuse requests made by pages of other sites; following a link to the page is allowed."""
    origins = [value for name, value in headers if name == b"origin"]
    # Schemes are not compared: a proxy may use TLS towards the browser only.
    foreign = any(_netloc(origin) != (host or b"").lower() for origin in origins)
    if foreign or (_only(headers, b"sec-fetch-site") == b"cross-site" and not reads_page):
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
