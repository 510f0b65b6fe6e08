"""Many callers at once, and how long each waited."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from itertools import cycle, islice

import attrs
import httpx

logging.getLogger("httpx").setLevel(logging.WARNING)  # which tells of every call otherwise


@attrs.frozen
class Heard:
    """What callers heard.

    Attributes:
        seconds: from the first call to the last answer.
        waits: of each call, in seconds.
        labels: the most likely label of each text, in the order of the calls of each caller.
    """

    seconds: float
    waits: Sequence[float]
    labels: Sequence[str]


def call(url: str, texts: Sequence[str], calls: int, callers: int) -> Heard:
    """Let some callers send texts, one a call, each the next when it has its answer."""
    return asyncio.run(_call(url, list(islice(cycle(texts), calls)), callers))


async def _call(url: str, texts: Sequence[str], callers: int) -> Heard:
    waits, labels = [0.0] * len(texts), [""] * len(texts)
    left = iter(range(len(texts)))

    async def caller(client: httpx.AsyncClient) -> None:
        for number in left:
            begin = time.perf_counter()
            response = await client.post(f"{url}/predict", json={"inputs": texts[number]})
            waits[number] = time.perf_counter() - begin
            scores = response.raise_for_status().json()
            labels[number] = max(scores, key=lambda each: each["score"])["label"]

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=callers)) as client:
        begin = time.perf_counter()
        await asyncio.gather(*(caller(client) for _ in range(callers)))
        return Heard(time.perf_counter() - begin, waits, labels)
