"""Prediction from raw texts to numbers: all texts at once, and one at a time; onion's, and its peers'.

    python -m benchmarks.inference [--rounds 5] [--only short long] [--peers NAME ...] [--data FOLDER] [--avx2] [--keep]

``short`` is MiniLM on SST-2's test sentences, ``long`` an encoder of ERNIE 1.0 base's shape on texts of ChnSentiCorp.
All sides read the same folder; what they compute is compared before any time is reported.
"""

from __future__ import annotations

import base64
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.frame.processes import Answer, FailedError, Round, Side, all_ready, alternate, ratios, values
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.frame.tables import percentile
from benchmarks.inference import models

CLOSE = 1e-4
ONION, OWN_ONNX = "onion", "onion with ONNX Runtime"
TORCH, ONNX, INT8 = "transformers", "ONNX Runtime", "ONNX Runtime int8"
WAYS = {"classify": "classification", "embed": "embedding"}

HOW = f"""\
Raw texts in, numbers out, tokenising included. Short: MiniLM (6 layers of 384, its real weights) on the 872 test
sentences of SST-2; long: the shape of ERNIE 1.0 base (12 of 768, random weights) on {models.LONG} texts of
ChnSentiCorp, at most 256 tokens. Classification gives probabilities, embedding the mean of the token vectors. 64 texts
at a time, the short ones first on every side; transformers also as they come, which is what its users do. One text:
each of the first texts alone. Each side is a process with 2 threads; float32 sides agree with onion to {CLOSE:g}."""


class Goals(NamedTuple):
    """Of bulk: peer -> how many times as fast onion is at least. Of one text: side -> times ONNX Runtime's, at most."""

    bulk: Mapping[str, float]
    alone: Mapping[str, float]


GOALS = Goals({TORCH: 2.0}, {ONION: 1.0, OWN_ONNX: 1.1})
GOALS_AVX2 = Goals({TORCH: 2.0, ONNX: 1.0}, {ONION: 1.3, OWN_ONNX: 1.1})

SHORT_PEERS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    OWN_ONNX: ("onion_engine.onnx_ways", None, {}),
    TORCH: ("transformers_engine.ways", "transformers", {}),
    "sentence-transformers": ("transformers_engine.sentence_ways", "transformers", {}),
    ONNX: ("onnx_engine.ways", "onnx", {"int8": False}),
    INT8: ("onnx_engine.ways", "onnx", {"int8": True}),
    "paddle.inference": ("paddle_inference_engine.ways", None, {}),
}
"""Name -> its engine, its environment, and what its job says besides."""
LONG_PEERS = {name: SHORT_PEERS[name] for name in (OWN_ONNX, TORCH, ONNX)}

PARTS: dict[str, tuple[Callable[[Path, Path], dict[str, Any]], Mapping[str, Any], int]] = {
    "short": (models.minilm, SHORT_PEERS, 100),
    "long": (models.base, LONG_PEERS, 8),
}
"""Title -> its job, its peers, and how many texts are given alone in a round."""


def measure(section: Section, given: Namespace) -> None:
    goals = GOALS_AVX2 if given.avx2 else GOALS
    for title in given.only:
        make, peers, singles = PARTS[title]
        with TemporaryDirectory() as folder:
            job = {**make(Path(folder), given.data), "singles": singles, "avx2": given.avx2}
            sides = [Side(ONION, "benchmarks.inference.work", {**job, "engine": "onion_engine.ways"})]
            for name, (engine, peer, more) in peers.items():
                if given.peers is None or name in given.peers:
                    sides.append(Side(name, "benchmarks.inference.work", {**job, **more, "engine": engine}, peer))
            with all_ready(sides):
                results = {side.name: side.round(ask="results") for side in sides}
                apart = differences(results, [name for name in peers if name != INT8])
                bulk = alternate(sides, given.rounds, ask="bulk")
                alone = alternate(sides, given.rounds, ask="singles")
        section.figures += of_bulk(bulk, len(job["texts"]), title, goals.bulk)
        section.figures += [*of_share(bulk, title), *of_singles(alone, title)]
        if any(side.name == ONNX for side in sides):
            section.figures += against_onnx(alone, title, goals.alone)
        section.add_memory(sides, f"{title}, ")
        section.add_versions(sides)
        section.notes += [f"{title}: {side} differs from onion by {apart[side]:.1g} at most" for side in apart]
    section.notes.append(
        "the peak memory of a side that exports a model (ONNX Runtime, paddle.inference) includes that"
    )


def differences(results: Mapping[str, Answer], exact: Sequence[str]) -> dict[str, float]:
    """Return the largest difference of each side's numbers from onion's.

    Raises:
        FailedError: it exceeds ``CLOSE`` on a side that has to be exact, or the number of values differs.
    """
    own = results[ONION]
    found = {}
    for side, ways in results.items():
        if side == ONION:
            continue
        found[side] = max(_difference(ways[way], own[way.removesuffix(" in order")]) for way in ways)
        if side in exact and not found[side] <= CLOSE:
            raise FailedError(f"{side} computes something else than onion: the numbers differ by {found[side]:g}")
    return found


def _difference(one: str, other: str) -> float:
    left, right = (np.frombuffer(base64.b64decode(each), "<f4") for each in (one, other))
    return float(np.abs(left - right).max()) if left.shape == right.shape else float("inf")


def of_bulk(rounds: Sequence[Round], texts: int, title: str, goals: Mapping[str, float]) -> list[Figure]:
    """Return the speed of every side and way for all texts, and onion's as a ratio to it."""
    found = []
    for side, way in _ways(rounds[0]):
        name = way.removesuffix(" in order")
        speed = [texts / each for each in values(rounds, side, way)]
        ordered = f", {'as they come' if way != name else 'short ones first'}" if side == TORCH else ""
        found.append(Figure(f"{title}, {WAYS[name]}: {side}{ordered}", "texts a second", speed, digits=1))
        if side != ONION:
            times = [each[side][way] / each[ONION][name] for each in rounds]
            found.append(Figure("onion beside it", "times as fast", times, at_least=goals.get(side)))
    return found


def of_share(rounds: Sequence[Round], title: str) -> list[Figure]:
    shares = {
        side: [100 * each[side]["tokenise"] / each[side]["classify"] for each in rounds]
        for side, ways in rounds[0].items()
        if "tokenise" in ways
    }
    return [Figure(f"{title}, of it tokenising: {side}", "%", share, digits=1) for side, share in shares.items()]


def of_singles(rounds: Sequence[Round], title: str) -> list[Figure]:
    """Return the median and the 99th percentile of the time of one text."""
    found = []
    for side, way in _ways(rounds[0]):
        waits = [[1000 * wait for wait in each[side][way]] for each in rounds]
        what = f"{title}, {WAYS[way]} of one text: {side}"
        found.append(Figure(f"{what}, p50", "ms", [statistics.median(each) for each in waits]))
        found.append(Figure(f"{what}, p99", "ms", [percentile(each, 99) for each in waits]))
    return found


def against_onnx(rounds: Sequence[Round], title: str, goals: Mapping[str, float]) -> list[Figure]:
    """Return the p50 of onion's sides divided by that of ONNX Runtime in float32, called directly."""
    medians = [
        {side: {way: statistics.median(waits) for way, waits in ways.items()} for side, ways in each.items()}
        for each in rounds
    ]
    text = f"{title}, {{}} of one text: {{}}'s p50 to ONNX Runtime's"
    return [
        Figure(text.format(WAYS[way], side), "", ratios(medians, side, ONNX, way), at_most=goals.get(side))
        for side in (ONION, OWN_ONNX)
        if side in medians[0]
        for way in WAYS
    ]


def _ways(one: Round) -> list[tuple[str, str]]:
    return [(side, way) for side, ways in one.items() for way in ways if way != "tokenise"]


main = Benchmark("inference", "Inference", HOW, __doc__, measure, 5, PARTS, peers=True, data=True, avx2=True).main


if __name__ == "__main__":
    sys.exit(main())
