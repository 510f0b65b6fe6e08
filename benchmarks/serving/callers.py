"""Many callers at once, and how long each waited."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import attrs
import httpx

logging.getLogger("httpx").setLevel(logging.WARNING)  # which tells of every call otherwise


@attrs.frozen
class Route:
    """How a service is asked for the label of one text.

    Attributes:
        path: of the service.
        asked: a text -> the body, as JSON values.
        scores: the answer's JSON values -> ``[{"label": ..., "score": ...}, ...]``.
    """

    path: str
    asked: Callable[[str], Any]
    scores: Callable[[Any], Sequence[dict[str, Any]]]


PREDICT = Route("/predict", lambda text: {"inputs": text}, lambda answer: answer)
"""As text-embeddings-inference has it."""
CLASSIFY = Route("/classify", lambda text: {"model": "model", "input": [text]}, lambda answer: answer["data"][0])
"""As infinity has it."""


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


def call(url: str, route: Route, texts: Sequence[str], calls: int, callers: int) -> Heard:
    """Let some callers send texts, one a call, each the next when it has its answer."""
    return asyncio.run(_call(url + route.path, route, list(islice(cycle(texts), calls)), callers))


async def _call(address: str, route: Route, texts: Sequence[str], callers: int) -> Heard:
    waits, labels = [0.0] * len(texts), [""] * len(texts)
    left = iter(range(len(texts)))

    async def caller(client: httpx.AsyncClient) -> None:
        for number in left:
            begin = time.perf_counter()
            response = await client.post(address, json=route.asked(texts[number]))
            waits[number] = time.perf_counter() - begin
            scores = route.scores(response.raise_for_status().json())
            labels[number] = max(scores, key=lambda each: each["score"])["label"]

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=callers)) as client:
        begin = time.perf_counter()
        await asyncio.gather(*(caller(client) for _ in range(callers)))
        return Heard(time.perf_counter() - begin, waits, labels)
