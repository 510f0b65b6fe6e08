"""docs/results.md: what was measured and how, and one table of all that there is."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from benchmarks.common.tables import mean_and_spread, table, where_and_when
from benchmarks.results import earlier
from benchmarks.results.pieces import Piece, Results
from benchmarks.results.rows import COMMON, OURS, THEIRS, Row

Result = dict[str, Any]

MISSING = "not run yet"
NOBODY = "–"
POINT = 1.0
"""How far below Hugging Face's mean ours may be without a remark."""

HEAD = """\
# Results

Made by `make results`; not edited by hand. Each row is an encoder fine-tuned on real data, by onion and by Hugging
Face (transformers' models, tokenizers and Trainer on torch) with the same files, weights to begin with, settings and
seeds: AdamW, batches of {batch_size} of similar length, the learning rate rising over the first {warmup:.0%} of the
steps and falling to 0, weight decay {weight_decay:g} except on biases and LayerNorms, gradients clipped to a norm of
{clip:g}, dropout as in the encoder's config, {threads} threads. Figures are of the weights after the last step: nothing
was chosen by the dev file. They are times 100: mean over the seeds ± sample standard deviation. The difference is of
the means; bold where ours is more than one point lower. Seconds are the median over the seeds, from reading the files
to the last step, and say little where the machine had other work too; onion keeps the features of a file, so its
second and third seed do not make them again.

The encoder of the English rows is MiniLM (all-MiniLM-L6-v2: six layers, 384 wide). That of the Chinese rows has ERNIE
1.0's vocabulary and shape, but four layers, 256 wide, and begins with random weights, the same on both sides: these
rows show that everything works, not what a pretrained encoder reaches. Each side draws the head from its seed, unless
the row says otherwise.
"""
COLUMNS = ("data", "settings", "figure", "onion", "Hugging Face", "difference", "seconds, onion / Hugging Face")


def page(rows: Sequence[Row], results: Results) -> str:
    """Return the whole page."""
    found = {(row.name, side): _results(row, side, results) for row in rows for side in (OURS, THEIRS)}
    lines = [line for row in rows for line in _lines(row, found[row.name, OURS], found[row.name, THEIRS])]
    notes = "\n".join(f"- {note}" for note in _notes(rows, lines))
    told = where_and_when([result for some in found.values() for result in some])
    parts = [HEAD.format(**COMMON), told, table(COLUMNS, lines), notes]
    return "\n".join(f"{part.rstrip()}\n" for part in parts if part)


def _results(row: Row, side: str, results: Results) -> list[Result]:
    pieces = (Piece(row, side, seed) for seed in row.seeds if side in row.sides)
    return [result for result in map(results.read, pieces) if result is not None]


def _notes(rows: Sequence[Row], lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield from (f"{row.title}: {row.note}" for row in rows if row.note)
    if any(line[0].endswith(earlier.MARK) for line in lines):
        yield earlier.NOTE


def _lines(row: Row, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """A line for each figure on each dev file; title, settings and seconds stand in the first."""
    if not ours and not theirs and row.name in earlier.LINES:
        for number, cells in enumerate(earlier.LINES[row.name]):
            yield "" if number else f"{row.title} {earlier.MARK}", *cells
        return
    for number, (dev, figure) in enumerate(product(row.dev, row.figures)):
        both = [_values(side, dev, figure) for side in (ours, theirs)]
        told = [_spread(values, side in row.sides, row) for values, side in zip(both, (OURS, THEIRS), strict=True)]
        what = figure.replace("_", " ") + (f", {dev}" if len(row.dev) > 1 else "")
        first = number == 0
        title, settings = (row.title, _settings(row, [*ours, *theirs])) if first else ("", "")
        seconds = f"{_seconds(ours)} / {_seconds(theirs)}" if first else ""
        yield title, settings, what, *told, _difference(*both), seconds


def _values(results: Sequence[Result], dev: str, figure: str) -> list[float]:
    return [100 * result["figures"][dev][figure] for result in results]


def _spread(values: Sequence[float], runs: bool, row: Row) -> str:
    if not values:
        return MISSING if runs else NOBODY
    fewer = f" ({len(values)} of {len(row.seeds)} seeds)" if len(values) < len(row.seeds) else ""
    return f"{mean_and_spread(values)}{fewer}"


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    if not ours or not theirs:
        return ""
    difference = statistics.mean(ours) - statistics.mean(theirs)
    return f"**{difference:+.1f}**" if difference < -POINT else f"{difference:+.1f}"


def _seconds(results: Sequence[Result]) -> str:
    return f"{statistics.median(result['seconds'] for result in results):.0f}" if results else NOBODY


def _settings(row: Row, results: Sequence[Result]) -> str:
    """Steps are told as they were counted; two numbers of them would mean that the sides differ."""
    steps = " or ".join(str(number) for number in sorted({result["steps"] for result in results}))
    return ", ".join(
        [
            _count(row.passes, "pass", "passes") + (f" ({steps} steps)" if steps else ""),
            f"rate {row.lr:g}",
            f"{row.max_length} tokens",
            *(f"{name.replace('_', ' ')} {value}" for name, value in row.options.items()),
            _count(len(row.seeds), "seed", "seeds"),
            *(["ours begins with their head"] if row.same_head else []),
        ]
    )


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
