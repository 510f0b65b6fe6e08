"""``make serve-load``: many callers at one service, each answer held against its own text.

    python -m scripts.serving_load MODEL [--requests 100000] [--callers 32] [--reload-every 5] [--leave-every 50]

MODEL is an exported folder. The service is a process of its own. Every caller sends texts that only it sends, and holds
the answers against those that the model gave to each text alone, in this process; some callers leave before they are
answered, and the model is loaded again all the time. The last line tells what was lost, which is nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

import onion

WORDS = ("a", "the", "film", "plot", "was", "story", "actor", "scene", "good", "bad", "great", "awful", "warm", "dull")
TEXTS = 2000
CLOSE = 1e-4
"""How far a probability may be from that of the text alone: padding rounds differently."""


class Load:
    """The callers and what they found."""

    def __init__(self, url: str, expected: dict[str, Any], given: argparse.Namespace) -> None:
        self.url, self.expected, self.given = url, expected, given
        self.left = given.requests
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.refused = self.gone = self.rows = 0

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=2 * self.given.callers)
        async with httpx.AsyncClient(timeout=120, limits=limits) as client:
            reloading = asyncio.create_task(self._reload(client))
            await asyncio.gather(*(self._call(client, number) for number in range(self.given.callers)))
            reloading.cancel()

    async def _call(self, client: httpx.AsyncClient, number: int) -> None:
        chance, texts = random.Random(number), list(self.expected)
        while self.left > 0:
            self.left -= 1
            asked = chance.choices(texts, k=chance.choice((1, 1, 1, 4)))
            if self.given.leave_every and chance.randrange(self.given.leave_every) == 0:
                await self._leave(client, asked)
                continue
            begin = time.perf_counter()
            response = await client.post(f"{self.url}/models/model/predict", json={"inputs": asked})
            self.seconds.append(time.perf_counter() - begin)
            self._check(asked, response)

    def _check(self, asked: list[str], response: httpx.Response) -> None:
        if response.status_code == 429:
            self.refused += 1
            return
        found = response.json().get("predictions") if response.status_code == 200 else None
        if found is None or len(found) != len(asked):
            self.wrong.append(f"{response.status_code} {response.text[:200]}")
            return
        self.rows += len(asked)
        for text, answer in zip(asked, found, strict=True):
            if not alike(answer, self.expected[text]):
                self.wrong.append(f"{text}: {answer}, expected {self.expected[text]}")

    async def _leave(self, client: httpx.AsyncClient, asked: list[str]) -> None:
        try:
            await client.post(f"{self.url}/models/model/predict", json={"inputs": asked}, timeout=0.001)
        except httpx.TimeoutException:
            self.gone += 1

    async def _reload(self, client: httpx.AsyncClient) -> None:
        while self.given.reload_every:
            await asyncio.sleep(self.given.reload_every)
            response = await client.post(f"{self.url}/models/model/reload")
            if response.status_code != 200:
                self.wrong.append(f"reload: {response.text[:200]}")


def alike(found: Any, expected: Any) -> bool:
    """Return whether two answers are equal but for rounding."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(alike(found[name], each) for name, each in expected.items())
    if isinstance(expected, float):
        return abs(found - expected) <= CLOSE
    return bool(found == expected)


def main(arguments: list[str] | None = None) -> int:
    """Run the load; return 1 if an answer was wrong or lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=32)
    parser.add_argument("--reload-every", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--leave-every", type=int, default=50, metavar="N", help="one call in N is left by its caller")
    given = parser.parse_args(arguments)
    chance = random.Random(0)
    texts = {f"{' '.join(chance.choices(WORDS, k=chance.randrange(1, 12)))} {number}" for number in range(TEXTS)}
    model = onion.load(given.model, threads=1)
    expected = {text: model(text) for text in sorted(texts)}
    command = [sys.executable, "-m", "onion", "serve", f"model={given.model}", "--port", "0", "--queue", "4096"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        load, begin = Load(process.stdout.readline().strip(), expected, given), time.perf_counter()
        asyncio.run(load.run())
        seconds = time.perf_counter() - begin
        handles = len(list(Path(f"/proc/{process.pid}/fd").iterdir())) if Path("/proc").exists() else None
        process.terminate()
        status = process.wait(60)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    quantiles = statistics.quantiles(load.seconds, n=100)
    told = {
        "requests": given.requests, "rows": load.rows, "requests_per_second": round(given.requests / seconds, 1),
        "p50_ms": round(1000 * quantiles[49], 1), "p99_ms": round(1000 * quantiles[98], 1), "refused": load.refused,
        "left": load.gone, "peak_kib": peak, "handles": handles, "status": status, "wrong_or_lost": len(load.wrong),
    }  # fmt: skip
    print("\n".join(load.wrong[:5]))
    print(json.dumps(told))
    return int(bool(load.wrong) or status != 0)


if __name__ == "__main__":
    sys.exit(main())
