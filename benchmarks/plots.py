"""Draw the bars of docs/benchmarks.md from the figures in benchmarks/measured, as SVG.

python -m benchmarks.plots
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks.frame import ROOT
from benchmarks.frame.section import MEASURED, Section, read
from onion.checkpointing.atomic_files import replace_file

FOLDER = ROOT / "docs" / "plots"
LEFT, WIDTH, RIGHT, BAR, GAP = 350, 400, 60, 16, 6
OURS, OTHERS = "#7e57c2", "#9e9e9e"


@dataclass(frozen=True)
class Panel:
    """A group of bars with a scale of its own.

    Attributes:
        title: what is compared, and the unit.
        bars: name -> value; those whose name begins with onion are coloured.
        digits: after the point.
    """

    title: str
    bars: Mapping[str, float]
    digits: int = 0


def loop(section: Section) -> list[Panel]:
    """Return the overhead of each engine."""
    found = {figure.what: figure.median for figure in section.figures}
    bars = {"onion": found["onion, minimal: above the bare loop with `to_tensors`"]}
    for what, value in found.items():
        name = what.removesuffix(": above it")
        if name != what and not name.startswith(("onion", "bare loop")):
            bars[name] = value
    return [Panel("Overhead of the loop, µs per batch (lower is better)", dict(sorted(bars.items(), key=_value)))]


def finetune(section: Section) -> list[Panel]:
    """Return the speed of fine-tuning on each data set."""
    return _speeds(
        section, r"(?P<panel>[\w-]+): (?P<bar>.*)", "Fine-tuning on {}, examples per second (higher is better)", 1
    )


def inference(section: Section) -> list[Panel]:
    """Return the speed of classification of short and long texts."""
    form = r"(?P<panel>short|long), classification: (?P<bar>.*)"
    return _speeds(section, form, "Classification of {} texts, texts per second (higher is better)", 1)


PLOTS = {"loop": loop, "finetune": finetune, "inference": inference}


def _value(bar: tuple[str, float]) -> float:
    return bar[1]


def _speeds(section: Section, form: str, title: str, digits: int) -> list[Panel]:
    """Return a panel for each data set of the figures that are speeds."""
    panels: dict[str, dict[str, float]] = {}
    for figure in section.figures:
        match = re.fullmatch(form, figure.what)
        if match and figure.unit.endswith("a second"):
            panels.setdefault(match["panel"], {})[match["bar"]] = figure.median
    return [
        Panel(title.format(name), dict(sorted(bars.items(), key=_value, reverse=True)), digits)
        for name, bars in panels.items()
    ]


def drawing(panels: list[Panel]) -> str:
    """Draw panels, one below the other."""
    parts: list[str] = []
    top = 10
    for panel in panels:
        parts += _panel(panel, top)
        top += 34 + len(panel.bars) * (BAR + GAP)
    width = LEFT + WIDTH + RIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f'<rect width="{width}" height="{top}" fill="white"/>', *parts, "</svg>\n"])


def _panel(panel: Panel, top: int) -> Iterator[str]:
    yield f'<text x="10" y="{top + 14}" font-weight="bold">{escape(panel.title)}</text>'
    longest = max(panel.bars.values())
    for place, (name, value) in enumerate(panel.bars.items()):
        y = top + 24 + place * (BAR + GAP)
        colour = OURS if name.startswith("onion") else OTHERS
        length = WIDTH * value / longest
        yield f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
        yield f'<text x="{LEFT + length + 6:.1f}" y="{y + 13}">{value:,.{panel.digits}f}</text>'


def plot(name: str) -> str:
    """Return the picture of a section."""
    return drawing(PLOTS[name](read(MEASURED / f"{name}.json")))


def main(folder: Path = FOLDER) -> None:
    """Write all pictures."""
    folder.mkdir(exist_ok=True)
    for name in PLOTS:
        replace_file(folder / f"{name}.svg", plot(name).encode())


if __name__ == "__main__":
    main()
