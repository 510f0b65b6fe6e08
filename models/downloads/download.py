"""A file over HTTP, whole or not at all. Without Paddle.

With the standard library alone, so that proxies are those of the environment (``https_proxy``, ``no_proxy``).
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
    """Fetch a file.

    Args:
        url: http or https; redirects are followed, but not to another protocol.
        path: where to put it; its folder exists.

    Raises:
        WeightsError: it cannot be fetched, is cut, or cannot be written; nothing of it is left.
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
                raise WeightsError(f"{url}: leads to {response.url}, which is not safe")
            if not response.length:
                raise WeightsError(f"{url}: comes empty, or without a length by which to see that it is whole")
            # disable=None: shown on a terminal only.
            with tqdm(desc=name, total=response.length, unit="B", unit_scale=True, disable=None) as progress:
                while chunk := response.read(CHUNK_BYTES):
                    progress.update(len(chunk))
                    yield chunk
            if response.length:
                raise WeightsError(f"{url}: was cut, {response.length} bytes are missing; fetch it again")
    except urllib.error.HTTPError as error:
        error.close()
        raise WeightsError(f"{url}: HTTP {error.code} {' '.join(error.reason.split())}") from error
    except (OSError, http.client.HTTPException) as error:
        raise WeightsError(f"{url}: cannot be fetched: {getattr(error, 'reason', error)}") from error
