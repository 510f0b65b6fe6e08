"""How alike two English answers are, by the rules of SQuAD's official scripts.

Source: ``evaluate-v1.1.py`` and ``evaluate-v2.0.py`` of SQuAD (Rajpurkar et al. 2016, 2018).
"""

from __future__ import annotations

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def alike(answer: str, truth: str) -> tuple[float, float]:
    """Return whether two answers are the same (1 or 0), and the F1 of the words that they share.

    Case, punctuation, articles and white space do not count. Where one of the two then is nothing at all, the F1 is 1
    if both are (as in SQuAD 2.0; the script of 1.1 gives 0 to an answer of nothing but articles).
    """
    said, true = _words(answer), _words(truth)
    same = float(said == true)
    if not said or not true:
        return same, same
    shared = sum((Counter(said) & Counter(true)).values())
    return same, 2 * shared / (len(said) + len(true))


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()
