"""Prediction from raw texts to numbers: all texts at once, and one at a time; onion's, and its peers'.

    python -m benchmarks.inference [--rounds 5] [--only short long] [--peers NAME ...] [--data FOLDER] [--avx2] [--keep]

``short`` is MiniLM on SST-2's test sentences, ``long`` an encoder of ERNIE 1.0 base's shape on texts of ChnSentiCorp.
All sides read the same folder; what they compute is compared before any time is told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.common.driver import no_data
from benchmarks.common.limits import add_limit, limited
from benchmarks.common.measured import Measured, of_memory, versions_of
from benchmarks.common.options import add_parts, parser_of
from benchmarks.common.rounds import alternate
from benchmarks.common.sides import Side, all_ready
from benchmarks.inference import models
from benchmarks.inference.figures import (
    CLOSE,
    GOALS,
    GOALS_AVX2,
    INT8,
    ONION,
    ONNX,
    TORCH,
    against_onnx,
    differences,
    of_bulk,
    of_share,
    of_singles,
)

HOW = f"""\
Raw texts in, numbers out, tokenising included. Short: MiniLM (6 layers of 384, its real weights) on the 872 test
sentences of SST-2; long: the shape of ERNIE 1.0 base (12 of 768, random weights) on {models.LONG} texts of
ChnSentiCorp, at most 256 tokens. Classification gives probabilities, embedding the mean of the token vectors. 64 texts
at a time, the short ones first on every side; transformers also as they come, which is what its users do. One text:
each of the first texts alone. Each side is a process with 2 threads; float32 sides agree with onion to {CLOSE:g}."""

SHORT_PEERS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    TORCH: ("by_transformers", "transformers", {}),
    "sentence-transformers": ("sentences", "transformers", {}),
    ONNX: ("onnx", "onnx", {"int8": False}),
    INT8: ("onnx", "onnx", {"int8": True}),
    "paddle.inference": ("paddle_inference", None, {}),
}
LONG_PEERS = {name: SHORT_PEERS[name] for name in (TORCH, ONNX)}

PARTS: dict[str, tuple[Callable[[Path, Path], dict[str, Any]], Mapping[str, Any], int]] = {
    "short": (models.minilm, SHORT_PEERS, 100),
    "long": (models.base, LONG_PEERS, 8),
}
"""Title -> its job, its peers, and how many texts are given alone in a round."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("inference", __doc__, rounds=5)
    add_parts(parser, PARTS)
    add_limit(parser)
    settings = parser.parse_args(arguments)
    if no_data(settings.data, "bench"):
        return 2
    measured = Measured(*limited(settings, "inference", "Inference", HOW), settings.rounds, [])
    for title in settings.only:
        _measure(measured, title, settings.peers, settings.data, settings.avx2)
    measured.notes.append(
        "the peak memory of a side that exports a model (ONNX Runtime, paddle.inference) includes that"
    )
    measured.tell(settings.keep)
    return 0


def _measure(measured: Measured, title: str, wanted: Sequence[str] | None, data: Path, avx2: bool) -> None:
    """Run a part, and add what was found.

    Raises:
        FailedError: a side ended, or computes something else.
    """
    make, peers, singles = PARTS[title]
    with TemporaryDirectory() as folder:
        job = {**make(Path(folder), data), "singles": singles}
        sides = [Side(ONION, "benchmarks.inference.side", {**job, "engine": "onion"})]
        for name, (engine, peer, more) in peers.items():
            if wanted is None or name in wanted:
                engine += "_avx2" * (avx2 and engine == "onnx")
                sides.append(Side(name, "benchmarks.inference.side", {**job, **more, "engine": engine}, peer))
        with all_ready(sides):
            apart = differences(
                {side.name: side.round(ask="results") for side in sides}, [n for n in peers if n != INT8]
            )
            bulk = alternate(sides, measured.rounds, ask="bulk")
            alone = alternate(sides, measured.rounds, ask="singles")
    goals = GOALS_AVX2 if avx2 else GOALS
    measured.figures += of_bulk(bulk, len(job["texts"]), title, goals.bulk)
    measured.figures += [*of_share(bulk, title), *of_singles(alone, title)]
    if any(side.name == ONNX for side in sides):
        measured.figures += against_onnx(alone, title, goals.alone)
    measured.figures += of_memory({side.name: side.last for side in sides}, f"{title}, ")
    measured.notes += [f"{title}: {side} differs from onion by {apart[side]:.1g} at most" for side in apart]
    measured.versions |= versions_of(side.last for side in sides)


if __name__ == "__main__":
    sys.exit(main())
