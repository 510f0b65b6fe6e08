"""Discourse markers: words with which a sentence tells how it goes on from the sentence before.

The lists are ours, from counts over Wikipedia's texts; ERNIE 2.0's were never published. Beside conjunctions and
adverbs of contrast, cause and addition there are those of time, as among the 174 markers of Discovery (Sileo et al.
2019, arXiv 1903.11850).
"""

from __future__ import annotations

from typing import Any

from onion.tasks.validators import TEXTS, as_names
from onion.validation import Check

CHINESE = (
    "由于", "但", "此外", "然而", "其中", "虽然", "不过", "当时", "同时", "尽管", "后来", "之后", "因此", "随后",
    "此后", "但是", "如果", "另外", "为了", "例如", "最终", "与此同时", "除了", "因为", "最后", "为此", "于是",
    "除此之外", "其后", "然后", "所以", "首先", "而且", "事实上", "接着", "相反", "因而",
)  # fmt: skip
"""37 markers, the commoner ones of Wikipedia's first."""

ENGLISH = (
    "However", "For example", "When", "After", "Although", "If", "While", "Thus", "But", "Since", "In addition", "Also",
    "Therefore", "Because", "Despite", "For instance", "Instead", "Later", "Furthermore", "As a result", "Though",
    "Additionally", "Then", "Moreover", "On the other hand", "Similarly", "Nevertheless", "Finally", "In contrast",
)  # fmt: skip
"""29 markers, the commoner ones of Wikipedia's first."""

LISTS = {"zh": CHINESE, "en": ENGLISH}
"""The lists by language."""


def _are_markers(value: Any) -> bool:
    return TEXTS.fits(value) and len({*value}) == len(value) > 1


MARKERS = Check("two or more markers, each once", _are_markers, reads=as_names)
"""Validator of a list."""
