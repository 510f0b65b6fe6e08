"""A file over HTTP: taken up again after a cut, checked, at its place whole or not at all. Without Paddle.

With the standard library alone, so that proxies are those of the environment (``https_proxy``, ``no_proxy``).

    model.safetensors               the whole file, checked
    .model.safetensors.part         what has come so far
    .model.safetensors.part.json    of what: address, ETag, size, checksum, and how much of it is safe on the disk
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import attrs
from attrs.validators import instance_of, optional

from onion.checkpointing.atomic_files import replace_file, sync_folder
from onion.errors import WeightsError
from onion.models.downloads.answers import address, agreed_size, published_digest, range_of, validator

ATTEMPTS = 5  # in a row that bring nothing new
REQUESTS = 100  # in all
PAUSE = 1.0  # seconds, twice as many after each attempt that brought nothing
TIMEOUT = 30.0  # seconds of silence
REDIRECTS = 10
LARGEST = 32 << 30
BLOCK = 1 << 18
ALGORITHMS = ("sha256", "md5")  # of checksums that servers tell
SYNC_EVERY = 1 << 26  # bytes; so much is fetched again after a power cut or a kill
AGAIN = (408, 425, 429, 500, 502, 503, 504)  # states of the server that may pass


class _AgainError(Exception):
    """This attempt failed; another one may not."""


def _known_algorithm(part: object, field: object, digest: Sequence[str] | None) -> None:
    if digest is not None and digest[0] not in ALGORITHMS:
        raise ValueError(f"{digest[0]!r} is no checksum that is told")


@attrs.define
class _Part:
    """What a partial file is a part of.

    Attributes:
        url: the address it was asked from.
        validator: strong ETag, or the date of the last change; None: it cannot be taken up again.
        size: of the whole file, if known.
        digest: algorithm and hexadecimal digest of the whole file, if published.
        done: bytes that are there.
    """

    url: str
    validator: str | None = attrs.field(default=None, validator=optional(instance_of(str)))
    size: int | None = attrs.field(default=None, validator=optional(instance_of(int)))
    digest: tuple[str, str] | None = attrs.field(default=None, validator=_known_algorithm)
    done: int = attrs.field(default=0, validator=instance_of(int))


def download(
    url: str,
    path: Path,
    parts: Path | None = None,
    size: int | None = None,
    sha256: str | None = None,
    quiet: bool = False,
) -> Path:
    """Fetch a file; what an earlier call left unfinished is taken up where it stopped, if the file is still the same.

    Only one process at a time may fetch into the same ``parts``.

    Args:
        url: http or https; redirects are followed, but never from https to http.
        path: where to put it; its folder exists.
        parts: folder for the partial file, on the same disk; default: that of ``path``.
        size: of the file, where it is known.
        sha256: of the file, where it is known; otherwise what the server says is checked (``X-Linked-ETag``, as
            Hugging Face calls a SHA-256, or ``Content-MD5``).
        quiet: show no progress even on a terminal.

    Raises:
        WeightsError: it cannot be fetched, or is not what it should be; in the first case what has come is kept.
    """
    if address(url) is None:
        raise WeightsError(f"{url}: not an http or https address; what is not ASCII, and a space, is written %20 or so")
    transfer = _Transfer(url, path, parts or path.parent, size, sha256, quiet)
    best, fruitless, reason = transfer.part.done, 0, ""
    for _ in range(REQUESTS):
        try:
            return transfer.attempt()
        except _AgainError as error:
            reason = str(error)
        except OSError as error:
            raise WeightsError(f"{path}: cannot be written: {error.strerror or error}") from error
        fruitless = 0 if transfer.part.done > best else fruitless + 1
        best = max(best, transfer.part.done)
        if fruitless == ATTEMPTS:
            break
        time.sleep(PAUSE * (2**fruitless - 1))
    kept = (
        f", {transfer.part.done} bytes are kept for the next time"
        if transfer.part.validator and transfer.part.done
        else ""
    )
    raise WeightsError(f"{url}: {reason}; given up{kept}")


class _Transfer:
    """One download: its partial file and what is known of it."""

    def __init__(self, url: str, path: Path, parts: Path, size: int | None, sha256: str | None, quiet: bool) -> None:
        self.path, self.size, self.sha256, self.quiet = path, size, sha256, quiet
        self.file = parts / f".{path.name}.part"
        self.notes = parts / f".{path.name}.part.json"
        self.part = _read_notes(self.notes, self.file, url)

    def attempt(self) -> Path:
        """Ask once, for what is missing or for all.

        Raises:
            _AgainError: it was cut, or the server has a weak moment.
            WeightsError: trying again is no use.
            OSError: the disk refused.
        """
        resumed = self.part.done > 0
        if self.part.size is None or self.part.done < self.part.size or not resumed:
            redirects = _Redirects()
            with self._ask(redirects) as response:
                self._heed(response, redirects.linked)
                self._receive(response)
        if not self._is_whole():
            self._forget()
            message = f"{self.part.url}: what came has another checksum than the one published; thrown away"
            raise _AgainError(message) if resumed else WeightsError(message)
        self.file.replace(self.path)
        self.notes.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        return self.path

    def _ask(self, redirects: _Redirects) -> Any:
        headers = {"User-Agent": "onion", "Accept-Encoding": "identity"}
        if self.part.done and self.part.validator:
            headers |= {"Range": f"bytes={self.part.done}-", "If-Range": self.part.validator}
        request = urllib.request.Request(self.part.url, headers=headers)  # noqa: S310  http(s), see download
        try:
            return urllib.request.build_opener(redirects).open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            error.close()
            told = " ".join(f"HTTP {error.code} {error.reason}".split())  # the library's own has three lines
            if error.code == 416:  # there is no such part: it became shorter
                self._forget()
            elif error.code not in AGAIN:
                raise WeightsError(f"{self.part.url}: {told}") from error
            raise _AgainError(told) from error
        except urllib.error.URLError as error:
            reason = error.reason
            if isinstance(reason, (TimeoutError, ConnectionResetError, ssl.SSLEOFError)):
                raise _AgainError(f"no answer: {reason}") from error
            raise WeightsError(f"{self.part.url}: cannot be reached: {reason}") from error
        except (OSError, http.client.HTTPException) as error:
            raise _AgainError(f"no answer: {error}") from error

    def _heed(self, response: Any, linked: Mapping[str, str]) -> None:
        """Take note of what the answer says it is; anything but the rest of what is here starts anew."""
        headers, asked = response.headers, self.part.done and self.part.validator
        if headers.get("Content-Encoding", "identity") != "identity":
            raise WeightsError(f"{self.part.url}: comes as {headers['Content-Encoding']}, which was not asked for")
        if response.status == 206 and asked:
            begin, end, size = range_of(headers)
            same = (size, end) == (self.part.size, size - 1) and validator(headers) in (None, self.part.validator)
            if begin != self.part.done or not same:
                self._forget()
                raise _AgainError("another part than the one asked for")
        elif response.status == 200:
            self._forget()
            size = agreed_size(self.part.url, self.size, linked.get("size"), headers)
            digest = ("sha256", self.sha256) if self.sha256 else published_digest(linked, headers)
            if size is None and not (digest or response.chunked):
                raise WeightsError(f"{self.part.url}: without length and checksum nobody can tell when it is whole")
            again = None if size is None else validator(headers)  # of a part of nobody knows what there is no rest
            self.part = _Part(self.part.url, again, size, digest)
        else:
            raise WeightsError(f"{self.part.url}: HTTP {response.status}, which was not asked for")

    def _receive(self, response: Any) -> None:
        from tqdm import tqdm

        part, mode = self.part, "r+b" if self.part.done else "wb"
        bar = {"total": part.size, "initial": part.done, "unit": "B", "unit_scale": True, "desc": self.path.name}
        with self.file.open(mode) as file, tqdm(**bar, disable=True if self.quiet else None) as progress:
            file.truncate(part.done)
            file.seek(part.done)
            safe = part.done
            try:
                while block := _next_block(response):
                    file.write(block)
                    part.done += len(block)
                    progress.update(len(block))
                    if part.done > LARGEST:
                        raise WeightsError(f"{part.url}: goes on after {LARGEST} bytes")
                    if part.done - safe >= SYNC_EVERY:
                        safe = self._save(file)
            finally:
                self._save(file)
        if part.size is not None and part.done != part.size:
            if part.done > part.size:
                self._forget()
            raise _AgainError(f"cut after {part.done} of {part.size} bytes")

    def _save(self, file: IO[bytes]) -> int:
        """Flush to the disk what has come, then say so; return how much that is."""
        file.flush()
        os.fsync(file.fileno())
        replace_file(self.notes, json.dumps(attrs.asdict(self.part)).encode())
        return self.part.done

    def _is_whole(self) -> bool:
        if self.part.digest is None:
            return True
        algorithm, wanted = self.part.digest
        digest = hashlib.new(algorithm, usedforsecurity=False)
        with self.file.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        return digest.hexdigest() == wanted

    def _forget(self) -> None:
        self.notes.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)
        self.part = _Part(self.part.url)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, a limited number, never to less safety; keeps what is said on the way about the file."""

    max_redirections = REDIRECTS

    def __init__(self) -> None:
        self.linked: dict[str, str] = {}

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage
    ) -> Any:
        """Follow a redirect; the library takes the address apart before :meth:`redirect_request` sees it."""
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError as error:
            fp.close()
            raise WeightsError(f"{req.full_url}: sends us on to {headers['Location']}, which is no address") from error

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url).scheme, address(newurl)
        if new is None or (old, new.scheme) == ("https", "http"):
            fp.close()
            raise WeightsError(f"{req.full_url}: sends us on to {newurl}, which is not safe, or no address")
        # Hugging Face says it of large files here, and not where they lie.
        for key, name in (("X-Linked-Size", "size"), ("X-Linked-ETag", "etag")):
            if name not in self.linked and key in headers:
                self.linked[name] = headers[key]
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read_notes(notes: Path, file: Path, url: str) -> _Part:
    """What is known of a partial file; if anything is doubtful, nothing."""
    try:
        part = _Part(**json.loads(notes.read_text(encoding="utf-8")))
        if part.url == url and part.validator and 0 < part.done <= file.stat().st_size:
            return part
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        pass
    return _Part(url)


def _next_block(response: Any) -> bytes:
    try:
        return response.read1(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _AgainError(f"cut: {error or type(error).__name__}") from error
