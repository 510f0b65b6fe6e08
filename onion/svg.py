"""What pictures of figures are made of: SVG, whose texts may be of any language."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from unicodedata import east_asian_width

from onion.messages import printable

SIZE = 13
"""Of the letters, in pixels."""
WIDEST = 200
"""Of a label, in pixels; the rest of a longer one is left out."""


def picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return an SVG with a white background; the title is what screen readers read."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="{SIZE}" role="img">',
            f"<title>{text_of(title)}</title>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def text_of(text: str) -> str:
    """Return a text for XML, which takes no control characters."""
    return escape(printable(text))


def label(text: str, x: float, y: float, **attributes: object) -> str:
    """Return a text at a place, with attributes such as ``text_anchor="end"``; one that is too long is cut."""
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{given}>{text_of(fitted(text))}</text>'


def fitted(text: str) -> str:
    """Return a text, or as much of its beginning as is not wider than :data:`WIDEST`."""
    if width_of(text) <= WIDEST:
        return text
    end = next(end for end in range(len(text), 0, -1) if width_of(text[:end]) <= WIDEST - SIZE)
    return f"{text[:end]}…"


def width_of(text: str) -> float:
    """Return about how wide a text is, in pixels: Chinese characters are squares, Latin letters narrower."""
    return sum(SIZE if east_asian_width(each) in "FW" else 0.6 * SIZE for each in text)
