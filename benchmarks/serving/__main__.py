"""Calls a second and waits of a served model at 1, 8 and 32 callers; onion's, and its peers'.

    python -m benchmarks.serving [--rounds 5] [--calls 400] [--peers NAME ...] [--keep]

A classifier over MiniLM (6 layers of 384, its real weights, a head with random ones) reads sentences of SST-2. All
services have 2 threads and give the same labels, which is checked; the callers are one process on the same machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.frame import ROOT
from benchmarks.frame.processes import THREADS
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.frame.tables import percentile
from benchmarks.frame.worker import version_of
from benchmarks.inference.models import texts
from benchmarks.serving.callers import Heard
from benchmarks.serving.peers import PEERS
from benchmarks.serving.services import Service, service

CALLERS = (1, 8, 32)
ONION, INT8 = "onion", "onion, int8"
LIBRARIES = ("fastapi", "onnxruntime", "uvicorn")

HOW = """\
A classifier over MiniLM (6 layers of 384) answers sentences of SST-2, one a call, at 1, 8 and 32 callers at a time,
who are one process beside the service on the same processors. Each service has 2 threads; they take turns in every
round. onion serves an exported model by ONNX Runtime; with dynamic 8 bits each text alone. LitServe gathers up to 16
calls for 10 ms; infinity has its default settings, but not optimum's BetterTransformer, which optimum no longer has.
Beside them: ONNX Runtime called in a loop by one process of 2 threads without a service, tokenizer included, and the
limit, what the time of its matrix products alone would allow. Processor seconds are those of the service. Labels are
compared with the first service's: with 32 bits all are equal."""


def measure(section: Section, given: Namespace) -> None:
    sentences = texts(given.data / "glue" / "sst-2")
    with TemporaryDirectory() as room, ExitStack() as held:
        place = Path(room)
        _write_models(place)
        services = [held.enter_context(each) for each in _services(place, given)]
        alone: list[dict[str, float]] = []
        heard: dict[tuple[str, int], list[Heard]] = {}
        spent: dict[tuple[str, int], list[float]] = {}
        for each in services:
            each.call(sentences, 50, 4)
        for _ in range(given.rounds):
            alone.append(_alone(place / "model", sentences, given.calls))
            for callers in CALLERS:
                for each in services:
                    before = each.processor_seconds()
                    heard.setdefault((each.name, callers), []).append(each.call(sentences, given.calls, callers))
                    spent.setdefault((each.name, callers), []).append(each.processor_seconds() - before)
        _check(heard)
        for name, told in {"loop": "ONNX Runtime in a loop", "products": "limit, its products alone"}.items():
            section.figures.append(Figure(f"texts a second: {told}", "/s", [each[name] for each in alone], digits=1))
        section.versions |= {library: version_of(library) for library in LIBRARIES}
        for name, peer in PEERS.items():
            section.versions |= peer.versions() if given.peers is None or name in given.peers else {}
        for (name, callers), found in heard.items():
            section.figures += _figures(name, callers, found, spent[name, callers], given.calls)


def _services(place: Path, given: Namespace) -> Iterator[AbstractContextManager[Service]]:
    serve = ["-m", "onion", "serve", "--port", "PORT"]
    yield service(ONION, [*serve, str(place / "model")])
    yield service(INT8, [*serve, str(place / "int8")])
    for name, peer in PEERS.items():
        if given.peers is None or name in given.peers:
            command = [str(place / "huggingface") if word == "MODEL" else word for word in peer.command]
            yield service(name, command, peer.environment, peer.route)


def _write_models(place: Path) -> None:
    """Write a classifier as a run would be exported: for ONNX Runtime, with 8 bits, for transformers."""
    from onion.tasks.export.export import export
    from onion.tasks.finetune.fine_tune import train
    from onion.tasks.finetune.settings import Settings

    rows = [f"{text}\t{label}" for text, label in (("a good film", "1"), ("a bad film", "0")) for _ in range(8)]
    (place / "rows.tsv").write_text("\n".join(["text_a\tlabel", *rows]) + "\n", encoding="utf-8")
    files: dict[str, Any] = {name: str(place / "rows.tsv") for name in ("train", "dev")}
    settings: dict[str, Any] = {"encoder": "minilm", "passes": 2, "batch_size": 4, "learning_rate": 1e-4}
    train(Settings(task="classification", **files, **settings), place / "run", quiet=True)
    export(place / "run", place / "model")
    export(place / "run", place / "int8", int8="dynamic")
    export(place / "run", place / "huggingface", "huggingface")


def _alone(folder: Path, sentences: list[str], calls: int) -> dict[str, float]:
    """Return texts a second of ONNX Runtime called directly, and of its products; see ``direct.main``."""
    command = [sys.executable, "-m", "benchmarks.serving.direct", str(folder)]
    given = json.dumps(list(islice(cycle(sentences), calls)))
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
    streams: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    done = subprocess.run(command, cwd=ROOT, env=environment, input=given, **streams)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _check(heard: dict[tuple[str, int], list[Heard]]) -> None:
    """Refuse to report where a service of 32 bits gives other labels than the first one."""
    expected = heard[ONION, CALLERS[0]][0].labels
    for (name, callers), rounds in heard.items():
        apart = sum(one != other for found in rounds for one, other in zip(found.labels, expected, strict=True))
        if apart and name != INT8:
            raise SystemExit(f"serving: {name} at {callers} callers gives {apart} other labels")


def _figures(name: str, callers: int, found: list[Heard], spent: list[float], calls: int) -> list[Figure]:
    of = f"{name}, {callers} caller{'s' if callers > 1 else ''}"
    waits = [sorted(each.waits) for each in found]
    return [
        Figure(f"calls a second: {of}", "/s", [calls / each.seconds for each in found], digits=1),
        Figure(f"median wait: {of}", "ms", [1000 * statistics.median(each) for each in waits], digits=1),
        Figure(f"99th percentile: {of}", "ms", [1000 * percentile(each, 99) for each in waits], digits=1),
        Figure(f"processor time a call: {of}", "ms", [1000 * each / calls for each in spent], digits=1),
    ]


BENCHMARK = Benchmark("serving", "Serving", HOW, __doc__, measure, rounds=5, peers=True, data=True)
BENCHMARK.parser.add_argument("--calls", type=int, default=400, help="of each service at each number of callers")
main = BENCHMARK.main

if __name__ == "__main__":
    sys.exit(main())
