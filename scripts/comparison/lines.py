"""Real texts: the license, which never changes, and lines of the folder of data where there is one."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT.parent / "shared" / "data"


def own() -> list[str]:
    """The lines of the license that are not empty, and a few that are odd."""
    lines = (ROOT / "LICENSE").read_text(encoding="utf-8").split("\n")
    odd = ["", "no", "Ünïcödé, 中文 and e-mail@example.com: 12,345.67!", "[MASK] \t x\u0301\u200b", "don't " * 20]
    return [line.strip() for line in lines if line] + odd


def of_data(language: str, count: int) -> list[str]:
    """So many lines of the texts in a language (``"en"``, ``"zh"``) that are not empty; none without the data."""
    path = DATA / f"text_{language}" / f"wiki_{language}.train.txt"
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line][:count]
