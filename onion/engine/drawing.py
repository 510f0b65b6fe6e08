"""The onion as text and as a picture.

    Runner                                             initialize  pass  batch
    ╭ progress  Progress()                                 ↓        ↕      ↕
    │╭ saver  Saver(out, every=500)                        ↕        ↕      ↕
    ││  gradient_machine  GradientMachine(ToyNetwork)      ↓        ·      ↓
    │╰
    ╰

A bracket is a ring that has a way out (↕), a name without a bracket runs on the way in only (↓), a dot: nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from onion.engine.identity import given
from onion.engine.item import HOOKS, RunnerItem, overrides
from onion.engine.item_tree import holds, subitems
from onion.paths import shortened

if TYPE_CHECKING:
    from onion.engine.item_holder import Holder

PLAIN = (str, int, float, bool)
FEW = 8
"""Numbers of a list that are drawn, at most."""

ARROWS = {True: "↕", False: "↓", None: "·"}


def way_out(item: RunnerItem, hook: str) -> bool | None:
    """Tell whether a hook has a way out; None: the hook is not overridden."""
    if not overrides(item, hook):
        return None
    return inspect.isgeneratorfunction(getattr(item, hook))


def settings(item: RunnerItem) -> str:
    """Write an item as the call that makes it: the constructor's arguments that differ from their defaults.

    Its name is left out; it is shown beside.
    """
    shown = []
    for name, value, default in given(item):
        if name == "name" or value is default or inspect.ismethod(value):
            continue
        if isinstance(value, PLAIN):
            shown += [f"{name}={value!r}"] if value != default else []
        elif isinstance(value, timedelta) or _is_row(value):
            shown.append(f"{name}={value}")
        elif type(value).__module__ != "builtins":
            shown.append(shortened(value) if isinstance(value, Path) else type(value).__name__)
    return f"{type(item).__name__}({', '.join(shown)})"


def _is_row(value: object) -> bool:
    """Return whether a value is a few numbers."""
    if not isinstance(value, (list, tuple)) or not 0 < len(value) <= FEW:
        return False
    return all(isinstance(each, (int, float)) for each in value)


def as_text(runner: Holder) -> str:
    """Draw an onion as text."""
    rows = [("Runner", "", "", "", ""), *_rows(runner.items, "")]
    left = [f"{name}  {text}" if text else name for name, text, *_ in rows]
    width = max(map(len, left))
    lines = [f"{left[0]:<{width}}  initialize  pass  batch"]
    for drawn, (_, text, *arrows) in zip(left[1:], rows[1:], strict=True):
        table = f"  {arrows[0]:^10}  {arrows[1]:^4}  {arrows[2]:^5}" if text else ""
        lines.append(f"{drawn:<{width}}{table}".rstrip())
    return "\n".join(lines)


def _rows(items: Sequence[RunnerItem], bars: str) -> list[tuple[str, str, str, str, str]]:
    """Return a row an item (name with its bars, settings, three arrows), then the rows that close the brackets."""
    rows: list[tuple[str, str, str, str, str]] = []
    opened: list[str] = []
    for item in items:
        arrows = [ARROWS[way_out(item, hook)] for hook in HOOKS]
        rings = "↕" in arrows
        inner = subitems(item)
        rows.append((f"{bars}{'╭ ' if rings else '  '}{item.name}", settings(item), arrows[0], arrows[1], arrows[2]))
        for title, nested in [("", inner)] if inner else inner_runs(item):
            edge = bars + ("│" if rings else " ")
            rows += [(f"{edge}  {title}", "", "", "", "")] if title else []
            rows += _rows(nested, f"{edge}   ")
        if rings:
            opened.append(bars)
            bars += "│"
    rows += [(f"{bars}╰", "", "", "", "") for bars in reversed(opened)]
    return rows


def inner_runs(item: RunnerItem) -> list[tuple[str, Sequence[RunnerItem]]]:
    """Return the runners that an item runs by itself (a tester's), found among its attributes.

    A runner that holds the item itself is not among them: the item only refers to it.
    """
    return [
        (f"runs {name}:", subitems(value))
        for name, value in vars(item).items()
        if isinstance(value, RunnerItem)
        and not name.startswith("_")
        and subitems(value)
        and not holds(subitems(value), item)
    ]


def save_drawing(runner: Holder, path: str | Path) -> None:
    """Write the drawing to a file: a picture for ``.svg``, text for any other suffix."""
    path = Path(path)
    path.write_text(as_svg(runner) if path.suffix == ".svg" else as_text(runner) + "\n", encoding="utf-8")


LINE, EDGE = 26, 14
"""Height of a row of text and width of a ring's border, in pixels."""


def as_svg(runner: Holder) -> str:
    """Draw an onion as nested rounded boxes; a box is a ring with a way out."""
    body, width, height = _boxes(runner.items, x=EDGE, y=EDGE, depth=0)
    width, height = width + 2 * EDGE, height + 2 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace, monospace" font-size="13">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n{body}</svg>\n'
    )


def _boxes(items: Sequence[RunnerItem], x: int, y: int, depth: int) -> tuple[str, int, int]:
    """Return the drawing of items from the outermost in, its width and its height."""
    if not items:
        return "", 0, 0
    item, *rest = items
    rings = any(way_out(item, hook) for hook in HOOKS)
    label = f"{item.name}  {settings(item)}"
    tall, wide, own = LINE, 8 * len(label) + EDGE, ""
    for title, nested in [("", subitems(item))] if subitems(item) else inner_runs(item):
        own += _text(title, x + 2 * EDGE, y + tall) if title else ""
        tall += LINE if title else 0
        drawn, inner_wide, inner_tall = _boxes(nested, x + 2 * EDGE, y + tall, depth + 1)
        own, wide, tall = own + drawn, max(wide, inner_wide + 3 * EDGE), tall + inner_tall + EDGE
    shift = EDGE if rings else 0
    drawn, inner_wide, inner_tall = _boxes(rest, x + shift, y + tall, depth + rings)
    wide, tall = max(wide, inner_wide + 2 * shift), tall + inner_tall + shift
    box = (
        f'<rect x="{x}" y="{y}" width="{wide}" height="{tall}" rx="10" fill="hsl({(200 + 23 * depth) % 360} 60% 94%)" '
        f'stroke="hsl({(200 + 23 * depth) % 360} 40% 55%)"/>\n'
        if rings
        else ""
    )
    return box + _text(label, x + EDGE // 2, y) + own + drawn, wide, tall


def _text(text: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y + 18}">{escape(text)}</text>\n'
