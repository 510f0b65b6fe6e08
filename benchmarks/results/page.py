"""docs/results.md: what was measured and how, and one table of all that there is."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from benchmarks.frame.tables import MISSING, mean_and_spread, table, where_and_when

if TYPE_CHECKING:
    from benchmarks.results.__main__ import Row

Result = Mapping[str, Any]

SIDES = ("onion", "hugging-face")
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

MARK = "†"
NOTE = (
    f"{MARK} run 2026-11-20 to 2026-11-21 on 2 cores, Intel(R) Xeon(R) Processor (family 6, model 167), with the "
    "versions above; only these lines were kept of it."
)
EARLIER = {
    "rte": [
        "3 passes (234 steps), rate 5e-05, 128 tokens, 5 seeds | accuracy | 55.7 ± 1.2 | 56.6 ± 1.0 | -0.9 | 311 / 456"
    ],
    "mrpc": [
        "3 passes (345 steps), rate 5e-05, 128 tokens, 3 seeds"
        " | accuracy | 79.3 ± 1.6 | 77.1 ± 0.4 | +2.2 | 535 / 1514",
        " | f1 | 85.7 ± 1.2 | 84.9 ± 0.3 | +0.8 | ",
    ],
    "cola": [
        "3 passes (804 steps), rate 5e-05, 128 tokens, 3 seeds | matthews | 26.1 ± 1.0 | 26.2 ± 3.4 | -0.1 | 328 / 375"
    ],
    "sts-b": [
        "3 passes (540 steps), rate 5e-05, 128 tokens, 3 seeds | pearson | 84.5 ± 0.4 | 82.6 ± 0.9 | +1.8 | 250 / 196",
        " | spearman | 84.9 ± 0.3 | 84.4 ± 0.3 | +0.5 | ",
    ],
    "qnli": [
        "3 passes (420 steps), rate 5e-05, 128 tokens, 3 seeds | accuracy | 83.7 ± 0.2 | 83.3 ± 0.1 | +0.4 | 298 / 233"
    ],
    "sst-2": ["1 pass (2105 steps), rate 5e-05, 128 tokens, 1 seed | accuracy | 90.0 | 89.6 | +0.5 | 1494 / 1234"],
    "chnsenticorp": [
        "3 passes (900 steps), rate 0.0003, 128 tokens, 1 seed | accuracy | 87.9 | 86.8 | +1.1 | 396 / 337"
    ],
    "lcqmc": ["3 passes (1173 steps), rate 0.0003, 128 tokens, 1 seed | accuracy | 64.6 | 63.5 | +1.1 | 201 / 135"],
    "tnews": ["1 pass (1668 steps), rate 0.0003, 128 tokens, 1 seed | accuracy | 48.9 | 48.6 | +0.4 | 214 / 155"],
}
"""Lines of rows that were run when only the table was kept, not what each training gave: name of a row -> the cells
behind the title. They stay until the row is run again: ``make results ROWS=...``."""


def page(rows: Sequence[Row], results: Mapping[tuple[str, str], Sequence[Result]], common: Mapping[str, Any]) -> str:
    lines = [line for row in rows for line in _lines(row, *(results[row.name, side] for side in SIDES))]
    notes = "\n".join(f"- {note}" for note in _notes(rows, lines))
    where = where_and_when([result for some in results.values() for result in some])
    parts = [HEAD.format(**common), where, table(COLUMNS, lines), notes]
    return "\n".join(f"{part.rstrip()}\n" for part in parts if part)


def _notes(rows: Sequence[Row], lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield from (f"{row.title}: {row.note}" for row in rows if row.note)
    if any(line[0].endswith(MARK) for line in lines):
        yield NOTE


def _lines(row: Row, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """A line for each figure on each dev file; title, settings and seconds stand in the first."""
    if not ours and not theirs and row.name in EARLIER:
        for number, cells in enumerate(EARLIER[row.name]):
            yield "" if number else f"{row.title} {MARK}", *cells.split(" | ")
        return
    for number, (dev, figure) in enumerate(product(row.dev, row.figures)):
        both = [[100 * result["figures"][dev][figure] for result in side] for side in (ours, theirs)]
        told = [_spread(values, side in row.sides, row) for values, side in zip(both, SIDES, strict=True)]
        what = figure.replace("_", " ") + (f", {dev}" if len(row.dev) > 1 else "")
        first = number == 0
        title, settings = (row.title, _settings(row, [*ours, *theirs])) if first else ("", "")
        seconds = f"{_seconds(ours)} / {_seconds(theirs)}" if first else ""
        yield title, settings, what, *told, _difference(*both), seconds


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
    """Steps are as they were counted; two numbers of them would mean that the sides differ."""
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
