"""``make serve-load``: many callers at one service, each answer held against its own text.

    python -m scripts.serving_load MODEL [--requests 100000] [--callers 32] [--reload-every 5] [--leave-every 50]
        [--seconds 3600] [--pause 0.05] [--hostile]

MODEL is an exported folder. The service is a process of its own. Every caller sends texts that only it sends, and
holds the answers against those that the model gave to each text alone, in this process; some callers leave before they
are answered, and the model is loaded again all the time. With --hostile, attackers send what no service should heed:
noise, wrong tokens, ambiguous and misshapen requests, bodies without an end, halves of requests, one byte at a time.
With --seconds the calls go on for so long, however many they are, and with attackers until each of these has worked.
The last line tells what was lost, which is nothing, what memory and handles the service had after a tenth of the time
and at the end, and what the attackers were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import httpx

import onion
from scripts.service_attack import siege
from scripts.service_attack.requests import MAKERS, Target, never_finishes

WORDS = ("a", "the", "film", "plot", "was", "story", "actor", "scene", "good", "bad", "great", "awful", "warm", "dull")
TEXTS = 2000
CLOSE = 1e-4
"""How far a probability may be from that of the text alone: padding rounds differently."""


REFUSED = ("noise", "wrong token", "other site", "deep", "trick", "ambiguous", "misshapen")
"""Hostile requests that every service has to refuse."""

WATCH_EVERY = 5.0
"""Seconds between two looks at what the service uses."""


class Used(NamedTuple):
    """What the service uses: its memory, and its open files and sockets; nothing where the system does not tell."""

    kib: int
    handles: int


class Service:
    """``onion serve`` in a process of its own, with a token."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.token = secrets.token_urlsafe()
        file = folder / "token"
        file.touch(0o600)
        file.write_text(self.token)
        command = [sys.executable, "-m", "onion", "serve", f"model={model}", "--port", "0", "--queue", "4096"]
        command += ["--token-file", str(file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.port = int(self.url.rpartition(":")[2])

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:  # closes its output
            self._process.kill()

    def used(self) -> Used:
        """Return what it uses now."""
        place = Path(f"/proc/{self._process.pid}")
        if not place.exists():
            return Used(0, 0)
        resident = next(line for line in (place / "status").read_text().splitlines() if line.startswith("VmRSS"))
        return Used(int(resident.split()[1]), len(list((place / "fd").iterdir())))

    def end(self) -> int:
        """End it in an orderly way; return its status."""
        self._process.terminate()
        return self._process.wait(60)


class Load:
    """The callers and what they found."""

    def __init__(self, service: Service, expected: dict[str, Any], given: argparse.Namespace) -> None:
        self.url, self.expected, self.given = service.url, expected, given
        self._service = service
        self.is_enough: Callable[[], bool] = lambda: True
        self.left = given.requests
        self.until = None if given.seconds is None else time.monotonic() + given.seconds
        self.used: list[Used] = []
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self.refused = self.gone = self.rows = 0

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=2 * self.given.callers)
        headers = {"Authorization": f"Bearer {self._service.token}"}
        async with httpx.AsyncClient(timeout=120, limits=limits, headers=headers) as client:
            beside = [asyncio.create_task(self._reload(client)), asyncio.create_task(self._watch())]
            await asyncio.gather(*(self._call(client, number) for number in range(self.given.callers)))
            for each in beside:
                each.cancel()
        self.used.append(self._service.used())

    def goes_on(self) -> bool:
        """Return whether there is another call to make."""
        goes_on = self.left > 0 if self.until is None else time.monotonic() < self.until
        return goes_on or not self.is_enough()

    async def _watch(self) -> None:
        """Note what the service uses, every few seconds."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            self.used.append(self._service.used())

    async def _call(self, client: httpx.AsyncClient, number: int) -> None:
        chance, texts = random.Random(number), list(self.expected)
        while self.goes_on():
            self.left -= 1
            asked = chance.choices(texts, k=chance.choice((1, 1, 1, 4)))
            if self.given.leave_every and chance.randrange(self.given.leave_every) == 0:
                await self._leave(client, asked)
                continue
            begin = time.perf_counter()
            response = await client.post(f"{self.url}/models/model/predict", json={"inputs": asked})
            self.seconds.append(time.perf_counter() - begin)
            self._check(asked, response)
            await asyncio.sleep(self.given.pause)

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
    parser.add_argument("--seconds", type=float, help="instead of --requests")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="of a caller between two calls")
    parser.add_argument("--hostile", action="store_true", help="with attackers beside the callers")
    given = parser.parse_args(arguments)
    chance = random.Random(0)
    texts = {f"{' '.join(chance.choices(WORDS, k=chance.randrange(1, 12)))} {number}" for number in range(TEXTS)}
    model = onion.load(given.model, threads=1)
    expected = {text: model(text) for text in sorted(texts)}
    with tempfile.TemporaryDirectory() as folder, Service(given.model, Path(folder)) as service:
        load, begin = Load(service, expected, given), time.perf_counter()
        answered = under_attack(service, load) if given.hostile else _alone(load)
        seconds = time.perf_counter() - begin
        status = service.end()
    heeded = sum(count for tally in answered.values() for told, count in tally.items() if told[:1] in ("2", "5"))
    quantiles = statistics.quantiles(load.seconds, n=100)
    early, late = load.used[len(load.used) // 10], load.used[-1]
    told = {
        "requests": given.requests - load.left, "rows": load.rows,
        "requests_per_second": round((given.requests - load.left) / seconds, 1), "seconds": round(seconds),
        "p50_ms": round(1000 * quantiles[49], 1), "p99_ms": round(1000 * quantiles[98], 1), "refused": load.refused,
        "left": load.gone, "kib": [early.kib, late.kib], "handles": [early.handles, late.handles], "status": status,
        "wrong_or_lost": len(load.wrong), "hostile": {name: dict(tally) for name, tally in answered.items()},
        "heeded": heeded,
    }  # fmt: skip
    print("\n".join(load.wrong[:5]))
    print(json.dumps(told))
    return int(bool(load.wrong) or status != 0 or heeded > 0)


def _alone(load: Load) -> dict[str, Counter[str]]:
    asyncio.run(load.run())
    return {}


def under_attack(service: Service, load: Load) -> dict[str, Counter[str]]:
    """Run the load while attackers are at the service, until all have worked at least; return their answers."""
    target = Target(service.port, service.token)
    attacks: dict[str, siege.Attack] = {
        name: siege.asking(MAKERS[name], target, seed) for seed, name in enumerate(REFUSED)
    }
    attacks["endless"] = lambda over, tally: _provoke(over, tally, target)
    attacks["half"] = lambda over, tally: siege.half(target, over, tally, random.Random(1))
    attacks["slow"] = lambda over, tally: siege.slow(target, over, tally, random.Random(2))
    tallies = {name: Counter[str]() for name in attacks}
    with siege.side_by_side(attacks, tallies) as have_worked:
        load.is_enough = have_worked
        asyncio.run(load.run())
    return tallies


def _provoke(over: Event, tally: Counter[str], target: Target) -> None:
    draw = random.Random(0)
    while not over.is_set():
        tally[target.provoke(never_finishes(draw, target))] += 1


if __name__ == "__main__":
    sys.exit(main())
