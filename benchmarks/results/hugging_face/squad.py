"""SQuAD's figures, as the official evaluate-v1.1.py has them, from 0 to 1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_figures(true: Mapping[str, Sequence[str]], told: Mapping[str, str]) -> dict[str, float]:
    """Return the means over all questions; of several true answers the one that fits best counts."""
    exact = [max(_words(told[id_]) == _words(answer) for answer in answers) for id_, answers in true.items()]
    overlap = [max(_f1(_words(told[id_]), _words(answer)) for answer in answers) for id_, answers in true.items()]
    return {"exact_match": sum(exact) / len(exact), "f1": sum(overlap) / len(overlap)}


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(told: Sequence[str], true: Sequence[str]) -> float:
    common = sum((Counter(told) & Counter(true)).values())
    return 2 * common / (len(told) + len(true)) if common else 0.0
