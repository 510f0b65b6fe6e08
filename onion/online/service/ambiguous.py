"""Requests that two readers could take for two different ones: a proxy in front, and this service."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from onion.online.desk import Refused

if TYPE_CHECKING:
    from starlette.types import Scope

VERSIONS = ("1.0", "1.1")

ONCE = (b"content-encoding", b"idempotency-key", b"sec-fetch-site")
"""Headers that are heeded, and of which two would leave open which one. Others see to that themselves."""

_ENCODED = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*")


class Ambiguous(Refused):
    """It is not clear what is asked, nor where the request ends: nothing behind it on its connection is heard."""


def refuse_ambiguous(scope: Scope) -> None:
    """Let a request pass that has one meaning.

    Raises:
        Ambiguous: It has none, or more.
    """
    names = Counter(name for name, _ in scope["headers"])
    if scope["http_version"] not in VERSIONS:
        raise Ambiguous(f"HTTP/{scope['http_version']} is not spoken here; send HTTP/1.1.")
    if b"transfer-encoding" in names and (b"content-length" in names or scope["http_version"] == "1.0"):
        # RFC 9112, 6.1 and 6.3: two readers may see different ends, and a second request in the body.
        raise Ambiguous("Transfer-Encoding goes with HTTP/1.1 alone, and not with Content-Length; send one of them.")
    for name in ONCE:
        if names[name] > 1:
            raise Ambiguous(f"The header {name.decode()} is there twice; send it once.")
    for part in (scope["raw_path"], scope["query_string"]):
        if not _is_text(part):
            raise Ambiguous("What is encoded with % in the address is no UTF-8 text.")


def _is_text(part: bytes) -> bool:
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False
    return _ENCODED.fullmatch(part) is not None
