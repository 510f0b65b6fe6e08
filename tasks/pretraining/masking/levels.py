"""The kinds of unit that are masked together."""

from __future__ import annotations

LEVELS = ("character", "word", "phrase", "entity")
"""The names of the kinds, from the smallest: a token, and the units that a corpus marks (ERNIE 1.0, Sun et al. 2019,
arXiv 1904.09223, section 3.2, calls the first basic-level)."""

CHARACTER, WORD, PHRASE, ENTITY = range(len(LEVELS))
