"""Addresses, and what the headers of an HTTP answer say of the file that comes with it. Without Paddle."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from email.message import Message
from urllib.parse import SplitResult, urlsplit, urlunsplit

from onion.errors import WeightsError

# Digits as HTTP has them, and no more than a file can have bytes: int() takes others, and refuses thousands of them.
_NUMBER = "[0-9]{1,18}"


def address(url: str) -> SplitResult | None:
    """The parts of an http or https address; None: it is none, or not written as one is sent."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:  # brackets that do not match, a port that is none
        return None
    return parts if whole and re.fullmatch("[!-~]+", url) else None


def mirrored(url: str, mirror: str | None) -> str:
    """The address of the same file on a mirror: scheme and host are the mirror's, its path, if any, comes first.

    Raises:
        WeightsError: the mirror is not an http or https address.
    """
    if mirror is None:
        return url
    place, file = address(mirror), urlsplit(url)
    if place is None or place.query or place.fragment:
        raise WeightsError(f"{mirror}: not the address of a mirror, such as https://mirror.example.org")
    return urlunsplit((place.scheme, place.netloc, place.path.rstrip("/") + file.path, file.query, ""))


def agreed_size(url: str, known: int | None, linked: str | None, headers: Message) -> int | None:
    """The size that all who name one name: the table, a redirect, the length of this answer.

    Raises:
        WeightsError: they do not agree.
    """
    sizes = [int(text) for text in (linked, headers.get("Content-Length")) if text and re.fullmatch(_NUMBER, text)]
    sizes = sizes if known is None else [known, *sizes]
    if len(set(sizes)) > 1:
        raise WeightsError(f"{url}: has {sizes[-1]} bytes, not the {sizes[0]} that were published")
    return sizes[0] if sizes else None


def published_digest(linked: Mapping[str, str], headers: Message) -> tuple[str, str] | None:
    """Algorithm and hexadecimal digest of the whole file, where a server tells one.

    Args:
        linked: ``etag``, if a redirect told one.
        headers: of the answer.
    """
    etag = linked.get("etag", headers.get("X-Linked-ETag", "")).removeprefix("W/").strip('"')
    if re.fullmatch(r"[0-9a-f]{64}", etag):
        return "sha256", etag
    try:
        md5 = base64.b64decode(headers.get("Content-MD5", ""), validate=True).hex()
    except binascii.Error:
        return None
    return ("md5", md5) if len(md5) == 32 else None


def validator(headers: Message) -> str | None:
    """By what the file is known again; a weak ETag does not promise the same bytes."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def range_of(headers: Message) -> tuple[int, int, int]:
    """First byte, last byte and size of the whole; zeros when it is not said."""
    found = re.fullmatch(f"bytes ({_NUMBER})-({_NUMBER})/({_NUMBER})", headers.get("Content-Range", "").strip())
    begin, end, size = map(int, found.groups()) if found else (0, 0, 0)
    return begin, end, size
