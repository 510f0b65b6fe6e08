"""How fast ``onion corpus build`` is by workers, and how soon a large corpus is open, with its segments.

    python -m benchmarks.corpus [--megabytes 1000] [--tokens 1000000000] [--rounds 1] [--only build open] [--data DIR]
        [--keep]

All builds hold the same bytes, which is checked before a time is reported. It takes some 5 bytes on the disk for each
token, and 10 for each byte of text.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
import numpy as np

from benchmarks.frame.processes import Side
from benchmarks.frame.section import Benchmark, Figure, Section
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.build import Build
from onion.tasks.pretraining.corpus.folder import TOKENIZER, CorpusFolder
from onion.tasks.pretraining.corpus.segmentation.segmenter import SegmenterSettings, make_segmenter
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.corpus.shard_files import KINDS, path_of
from onion.tasks.pretraining.registry import get_pretraining_task

LIBRARIES = ("rjieba", "tokenizers")
WORKERS = (1, 2, 4)
MAX_TOKENS = 126
READ, STEPS = 1000, 3
SMALL = {
    "model_type": "ernie",
    "vocab_size": 18000,
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
"""The config of an encoder that computes next to nothing."""

TASKS = ("next-sentence", "sentence-order", "sentence-reordering", "sentence-distance", "discourse-relation")
HOW = """\
{megabytes} MB of Chinese text: the documents of text_zh again and again, in random order. Each build is a process of
its own, beside which its workers run; with one worker it tokenizes itself. Words are rjieba's, the vocabulary is ERNIE
1.0's. Memory is the most that the process and its workers have had together; how it grows is that beside the most in
the first quarter of the build. Opened is a corpus of {tokens:,} tokens, copies of the shards that were built: then its
segments of {most} tokens are found, and the examples of tasks, and again by a second process, from the cache; {read}
segments are read at random. Memory is what a process has beyond its libraries, without the mapped files: before the
examples are found, and the most while they are. A pretraining on it is ended after {steps} batches of masked words, and
resumed by another process: the time from the call to the first batch, without imports."""

Answer = dict[str, Any]


def measure(section: Section, given: Namespace) -> None:
    section.how = HOW.format(megabytes=given.megabytes, tokens=given.tokens, most=MAX_TOKENS, read=READ, steps=STEPS)
    with tempfile.TemporaryDirectory() as room:
        place = Path(room)
        _write_text(given.data / "text_zh" / "wiki_zh.train.txt", place / "a.txt", given.megabytes * 1_000_000)
        for number in range(given.rounds):
            sides = [_building(place, given.data, workers, number) for workers in WORKERS]
            answers = {workers: side.round() for workers, side in zip(WORKERS, sides, strict=True)}
            if len({answer["sum"] for answer in answers.values()}) > 1:
                raise SystemExit("corpus: the builds hold different bytes")
            section.add_versions(sides)
            if "build" in given.only:
                section.figures += _figures(answers, given.megabytes)
        if "open" in given.only:
            tile(CorpusFolder.open(place / f"{WORKERS[0]} 0"), place / "large", given.tokens)
            for name in ("first", "again"):
                section.figures += _figures_of_opening(name, _opening(place).round())
            begun, resumed = (_pretraining(place).round() for _ in range(2))
            if (begun["step"], resumed["step"]) != (0, STEPS):
                raise SystemExit(f"corpus: a pretraining began at step {begun['step']}, and again at {resumed['step']}")
            section.figures.append(Figure("resuming a pretraining", "s", [resumed["seconds"]], at_most=1.0))


def _write_text(source: Path, target: Path, size: int) -> None:
    """Write a text of some bytes: the documents of another one, in another order each time."""
    documents = source.read_text(encoding="utf-8").split("\n\n")
    draw, left = random.Random(0), size
    with target.open("wb") as file:
        for document in cycle(documents):
            if document is documents[0]:
                draw.shuffle(documents)
            left -= file.write(document.encode() + b"\n\n")
            if left <= 0:
                return


def _building(place: Path, data: Path, workers: int, number: int) -> Side:
    vocabulary = str(data / "vocab" / "ernie-1.0-zh")
    job = {"text": str(place / "a.txt"), "tokenizer": vocabulary, "output": str(place / f"{workers} {number}")}
    return Side(f"{workers} workers", "benchmarks.corpus", {**job, "workers": workers}, stays=False)


def prepare(job: Mapping[str, Any]) -> Callable[[], Answer]:
    """Prepare a build; job: ``text``, ``tokenizer``, ``output``, ``workers``."""
    build = Build(
        inputs=(job["text"],),
        tokenizer=Tokenizer.from_pretrained(job["tokenizer"]),
        segmenter=make_segmenter(SegmenterSettings(words="jieba")),
        workers=job["workers"],
    )

    def work() -> Answer:
        peaks: list[int] = []
        begun = perf_counter()
        corpus = build.run(Path(job["output"]), lambda counts: peaks.append(_memory_of_all()))
        seconds = perf_counter() - begun
        early = max(peaks[: 1 + len(peaks) // 4])
        found = {"seconds": seconds, "tokens": corpus.manifest.counts.tokens, "peak": max(peaks)}
        return {**found, "growth": max(peaks) / early, "sum": _sum(corpus.path)}

    return work


def _memory_of_all() -> int:
    """Return the memory of this process and its workers, in bytes, without the files that they map."""
    processes = [os.getpid(), *(child.pid for child in multiprocessing.active_children() if child.pid)]
    return sum(_memory(process, "RssAnon") for process in processes)


def _memory(process: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # it has ended
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def _sum(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                found.update(piece)
    return found.hexdigest()


def _figures(answers: Mapping[int, Answer], megabytes: int) -> list[Figure]:
    figures = []
    for workers, answer in answers.items():
        of = f"{workers} worker{'s' * (workers > 1)}"
        figures += [
            Figure(f"text: {of}", "MB/s", [megabytes / answer["seconds"]]),
            Figure(f"tokens: {of}", "/s", [answer["tokens"] / answer["seconds"]], digits=0),
            Figure(f"memory: {of}", "MB", [answer["peak"] / 1e6], digits=0),
            Figure(f"growth of memory: {of}", "times", [answer["growth"]], at_most=1.25),
        ]
    return figures


def tile(source: CorpusFolder, target: Path, tokens: int) -> None:
    """Write a corpus of at least so many tokens: the shards of another one again and again."""
    target.mkdir()
    shutil.copytree(source.path / TOKENIZER, target / TOKENIZER)
    shards: list[Any] = []
    for number, record in cycle(enumerate(source.manifest.shards)):
        for kind in KINDS:
            shutil.copyfile(path_of(source.path, number, kind), path_of(target, len(shards), kind))
        shards.append(record)
        tokens -= record.counts.tokens
        if tokens <= 0:
            break
    attrs.evolve(source.manifest, shards=tuple(shards)).write(target)


def _opening(place: Path) -> Side:
    home = {"ONION_HOME": str(place / "home")}
    return Side("opening", "benchmarks.corpus:prepare_opening", str(place / "large"), environment=home, stays=False)


def prepare_opening(folder: str) -> Callable[[], Answer]:
    """Prepare to open a corpus."""

    def work() -> Answer:
        before = _memory(os.getpid(), "RssAnon")
        begun = perf_counter()
        corpus = CorpusFolder.open(folder)
        opened = perf_counter()
        segments = Segments.of(corpus, MAX_TOKENS)
        found = perf_counter()
        memory = _memory(os.getpid(), "RssAnon") - before
        with _most_memory() as most:
            tasks = _examples(corpus)
        numbers = np.random.default_rng(0).integers(len(segments), size=READ).tolist()
        reading = perf_counter()
        tokens = sum(len(segments[number].ids) for number in numbers)
        times = {"open": opened - begun, "segments": found - opened, "read": perf_counter() - reading}
        told = {"memory": memory, "most_memory": max(most) - before, "many": len(segments), "tokens": tokens}
        return {**times, **told, "tasks": tasks}

    return work


@contextmanager
def _most_memory() -> Iterator[list[int]]:
    """Give a list that gets the memory of this process, every tenth of a second."""
    over, found = threading.Event(), [_memory(os.getpid(), "RssAnon")]

    def watch() -> None:
        while not over.wait(0.1):
            found.append(_memory(os.getpid(), "RssAnon"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _examples(corpus: CorpusFolder) -> dict[str, float]:
    """Return how many seconds it takes until the examples of each task are there, by its name."""
    times = {}
    for name in TASKS:
        begun = perf_counter()
        get_pretraining_task(name, {}).samples(corpus, 1)
        times[name] = perf_counter() - begun
    return times


def _figures_of_opening(name: str, answer: Answer) -> list[Figure]:
    at_most = 0.1 if name == "again" else None
    return [
        Figure(f"opening, {name}", "ms", [1000 * answer["open"]], digits=1),
        Figure(f"finding {answer['many']:,} segments, {name}", "s", [answer["segments"]], at_most, digits=4),
        Figure(f"reading {READ} segments, {name}", "ms", [1000 * answer["read"]], digits=1),
        *(
            Figure(f"finding examples of {task}, {name}", "s", [took], digits=2)
            for task, took in answer["tasks"].items()
        ),
        Figure(f"memory, {name}", "MB", [answer["memory"] / 1e6], digits=1),
        Figure(f"memory while examples are found, {name}", "MB", [answer["most_memory"] / 1e6], digits=0),
    ]


def _pretraining(place: Path) -> Side:
    job = {"corpus": str(place / "large"), "run": str(place / "run"), "config": str(place / "config.json")}
    Path(job["config"]).write_text(json.dumps(SMALL), encoding="utf-8")
    home = {"ONION_HOME": str(place / "home")}
    return Side("pretraining", "benchmarks.corpus:prepare_pretraining", job, environment=home, stays=False)


def prepare_pretraining(job: Mapping[str, str]) -> Callable[[], Answer]:
    """Prepare to pretrain a few steps, or to resume that; job: ``corpus``, ``run``, ``config``."""
    from onion import Observer, ParameterUpdater
    from onion.tasks.pretraining.pretrain import pretrain

    settings: dict[str, Any] = {
        "corpus": job["corpus"],
        "config": job["config"],
        "max_steps": 10**6,
        "save_every": STEPS,
    }

    def work() -> Answer:
        answer: Answer = {}
        begun = perf_counter()

        def begin(state: Any) -> None:
            if not answer:
                answer.update(seconds=perf_counter() - begun, step=state.step)

        def end(state: Any) -> None:
            if state.step >= STEPS:
                state.stop("enough was seen")

        observer = Observer(on_batch_begin=begin, on_batch_end=end)
        pretrain(job["run"], **settings).insert_before(ParameterUpdater, observer).run(passes=1)
        return answer

    return work


BENCHMARK = Benchmark("corpus", "Corpora", HOW, __doc__, measure, rounds=1, parts=("build", "open"), data=True)
BENCHMARK.parser.add_argument("--megabytes", type=int, default=1000, help="of text")
BENCHMARK.parser.add_argument("--tokens", type=int, default=1_000_000_000, help="of the corpus that is opened")
main = BENCHMARK.main

if __name__ == "__main__":
    sys.exit(main())
