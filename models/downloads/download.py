"""Download a file over HTTP, completely or not at all. Without Paddle.

It uses the standard library only, so proxies are those of the environment (``https_proxy``, ``no_proxy``).
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from onion.checkpointing.atomic_files import replace_file
from onion.errors import WeightsError

TIMEOUT = 30.0  # seconds of silence
CHUNK_BYTES = 1 << 18


def download(url: str, path: Path) -> None:
    """Download a file; redirects are followed, but not to another protocol.

    Raises:
        WeightsError: it cannot be downloaded, is incomplete, or cannot be written; nothing of it is kept.
    """
    try:
        replace_file(path, _chunks(url, path.name))
    except OSError as error:
        raise WeightsError(f"{path}: cannot be written: {error.strerror or error}") from error


def _chunks(url: str, name: str) -> Iterator[bytes]:
    from tqdm import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "onion"})  # noqa: S310  of the table of sources
    try:
        with urllib.request.build_opener().open(request, timeout=TIMEOUT) as response:
            if urlsplit(response.url).scheme != urlsplit(url).scheme:
                raise WeightsError(f"{url}: redirects to {response.url}, which is not secure")
            if not response.length:
                raise WeightsError(f"{url}: is empty, or has no Content-Length to check that it is complete")
            # disable=None: on a terminal only.
            with tqdm(desc=name, total=response.length, unit="B", unit_scale=True, disable=None) as progress:
                while chunk := response.read(CHUNK_BYTES):
                    progress.update(len(chunk))
                    yield chunk
            if response.length:
                raise WeightsError(f"{url}: is incomplete, {response.length} bytes are missing; download it again")
    except urllib.error.HTTPError as error:
        error.close()
        raise WeightsError(f"{url}: HTTP {error.code} {' '.join(error.reason.split())}") from error
    except (OSError, http.client.HTTPException) as error:
        raise WeightsError(f"{url}: cannot be downloaded: {getattr(error, 'reason', error)}") from error
