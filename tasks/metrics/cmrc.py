"""Similarity of two Chinese answers by the rules of CMRC 2018, which ERNIE also uses for DRCD.

Source: ``cmrc2018_evaluate.py`` (Cui et al. 2019), which splits words between Chinese characters with NLTK. The pattern
here gives the same words except for rare contractions ("wanna") and single quotes: on the 35,023 answers of CMRC 2018
(train, dev), DRCD (dev, test) and XQuAD (zh) it splits 5 differently. NLTK also distinguishes opening from closing
double quotes, so an answer loses a word if a quote opens in it and closes in the other; here it does not.
"""

from __future__ import annotations

import re

PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
"""Ignored characters. The ellipsis is not, since the official list has it doubled, which no single character equals."""

_CHINESE = re.compile("([\u4e00-\u9fa5])")
_WORDS = re.compile(
    r"""
    \.{2,}                               # dots
  | '(?:s|m|d|ll|re|ve)\b                # the end of a contraction
  | (?: [^\s;@\#$%&?!"(){}\[\]<>,.'–—]
      | ,(?=\d)                          # as in 1,000
      | \.(?!\.|[.\s]*$)                 # not the full stop behind words
      | '(?!(?:s|m|d|ll|re|ve)\b)
    )+                                   # a word
  | \S                                   # any other character
    """,
    re.VERBOSE,
)


def alike(answer: str, truth: str) -> tuple[float, float]:
    """Return whether two answers are equal (1 or 0), and the F1 of their longest common run of pieces.

    Pieces are Chinese characters, and words of anything else. Case and punctuation are ignored.
    """
    same = float(_plain(answer) == _plain(truth))
    said, true = pieces(answer), pieces(truth)
    if not said or not true:
        return same, same
    return same, 2 * _longest_run(said, true) / (len(said) + len(true))


def pieces(text: str) -> list[str]:
    """Split a text into Chinese characters and words of anything else, without punctuation."""
    # Every second part is a Chinese character.
    parts = enumerate(_CHINESE.split(_plain(text)))
    return [piece for number, part in parts for piece in ([part] if number % 2 else _WORDS.findall(part))]


def _plain(text: str) -> str:
    return "".join(each for each in text.lower().strip() if each not in PUNCTUATION)


def _longest_run(one: list[str], other: list[str]) -> int:
    """Return the length of the longest list of pieces that both contain without a gap."""
    longest, ending = 0, [0] * (len(other) + 1)  # ending[j]: of the run that ends before other[j]
    for each in one:
        ending = [0, *(before + 1 if each == piece else 0 for before, piece in zip(ending, other, strict=False))]
        longest = max(longest, *ending)
    return longest
