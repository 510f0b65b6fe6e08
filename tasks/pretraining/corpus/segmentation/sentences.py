"""The sentences of Chinese and of English text.

A Chinese sentence ends with a full stop, an exclamation or question mark or a double ellipsis, and with the closing
quotes and brackets behind it; it goes on if a comma follows, and within the marks of a title. An English one ends where
white space follows such a mark and then a capital letter, a digit or a letter without case; not behind initials and
abbreviations. A line break always ends one.

Source of the abbreviations: Moses, scripts/share/nonbreaking_prefixes/nonbreaking_prefix.en, the commoner ones.
"""

from __future__ import annotations

import re

from onion.tasks.pretraining.corpus.segmentation.spans import Units, units_of

CLOSING = "”’\"'」』）)】\\]》〉"
OPENING = "“‘\"'「『（(【[《〈"
CHINESE_MARK = re.compile("[。！？｡]|……")
COMMAS = "，、；：,;:"
IDEOGRAPH = re.compile("[\u3400-\u9fff]")
# A title, such as 《你好！》; marks; line breaks. Nothing stands behind the repetitions, so the search is linear.
MARK = re.compile(rf"《[^《》\n]{{1,80}}》|(?P<mark>[.!?。！？｡…]+)[{CLOSING}]*|(?P<line>\n+)")
ABBREVIATIONS = frozenset(
    [
        "adj", "adm", "adv", "al", "apr", "asst", "aug", "bldg", "brig", "bros", "ca", "capt", "cf", "cmdr", "co",
        "col", "corp", "cpl", "dec", "dept", "dr", "drs", "e.g", "ed", "est", "feb", "fig", "gen", "gov", "hon", "i.e",
        "insp", "jan", "jr", "jul", "jun", "lt", "ltd", "maj", "mar", "messrs", "mlle", "mme", "mr", "mrs", "ms",
        "mt", "nov", "nr", "oct", "op", "ph", "prof", "pvt", "rep", "reps", "rev", "rs", "rt", "sen", "sens", "sep",
        "sept", "sgt", "sr", "st", "supt", "v", "vol", "vs",
    ]
)  # fmt: skip
BEFORE_NUMBERS = frozenset(["art", "ch", "no", "nos", "p", "pp", "sec"])
"""Abbreviations if a digit follows; otherwise words."""

ENDS_SENTENCES = frozenset(["a.m", "p.m", "etc"])
"""Abbreviations that end a sentence if a capital letter follows."""

INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
WORD_BEFORE = re.compile(r"[\w.]*$")
LONGEST_WORD = 20
NEXT = re.compile(rf"\s+[{re.escape(OPENING)}]*(.?)", re.DOTALL)


def sentences(text: str) -> Units:
    """Return the sentences of a text, int32 ``[sentences, 2]``, without the white space around them."""
    found, begin = [], 0
    for mark in MARK.finditer(text):
        if mark["line"] or (mark["mark"] and _ends(text, mark)):
            found.append((begin, mark.end()))
            begin = mark.end()
    found.append((begin, len(text)))
    return units_of(stripped for each in found if (stripped := _stripped(text, *each)))


def _stripped(text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return a range without white space at its ends, or None if there is nothing else."""
    part = text[begin:end]
    size = len(part.strip())
    if not size:
        return None
    begin += len(part) - len(part.lstrip())
    return begin, begin + size


def _ends(text: str, mark: re.Match[str]) -> bool:
    """Return whether marks end a sentence."""
    behind = text[mark.end() : mark.end() + 1]
    if CHINESE_MARK.search(mark["mark"]):
        return not behind or behind not in COMMAS
    if IDEOGRAPH.match(behind):
        return not mark["mark"].startswith(".")
    follows = NEXT.match(text, mark.end())
    if follows is None:  # no white space
        return not behind
    first = follows[1]
    if first and not (first.isdigit() or (first.isalpha() and not first.islower())):
        return False
    return not first or mark["mark"] != "." or not _abbreviated(text, mark.start(), first)


def _abbreviated(text: str, stop: int, first: str) -> bool:
    """Return whether the full stop at a place belongs to the word before it; ``first`` is what follows."""
    found = WORD_BEFORE.search(text[max(0, stop - LONGEST_WORD) : stop])
    word = found[0] if found else ""
    if word.lower() in ENDS_SENTENCES:
        return False
    if word.lower() in BEFORE_NUMBERS:
        return first.isdigit()
    return word.lower() in ABBREVIATIONS or INITIALS.fullmatch(word) is not None
