"""Logits -> the best spans of a window; the spans of all windows of a question -> its answer.

Source: google-research/bert ``run_squad.py``, with two differences: all allowed spans are considered instead of pairs
of the best starts and the best ends, and an answer is cut out of the context by its offsets, so it is always an exact
part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion.tasks.probabilities import softmax
from onion.tasks.question_answering.positions import NOWHERE

if TYPE_CHECKING:
    from onion.tasks.data.features.examples import Example


@attrs.frozen(eq=False)
class Spans:
    """The best spans of one window, best first.

    Attributes:
        places: int64 [spans, 2], begin and end in the context, in code points.
        logits: float32 [spans, 2], of the first and the last token.
        null: float32 [2], both logits of [CLS], for no answer.
    """

    places: np.ndarray
    logits: np.ndarray
    null: np.ndarray


def window_spans(logits: np.ndarray, batch: dict[str, Any], most: int, longest: int) -> list[Spans]:
    """Return the best spans of each window of a batch.

    Args:
        logits: float32 [batch, length, 2], as the first token and as the last one.
        batch: with ``windows``, the examples.
        most: the maximum number of spans.
        longest: the maximum number of tokens of a span.
    """
    return [_of_window(each, window, most, longest) for each, window in zip(logits, batch["windows"], strict=True)]


def _of_window(logits: np.ndarray, window: Example, most: int, longest: int) -> Spans:
    context = logits[window["begin"] :][: len(window["offsets"])]
    core = slice(window["core_begin"], window["core_end"])
    return Spans(*best_spans(context, window["offsets"], core, most, longest), logits[_place_of_cls(window)])


def _place_of_cls(window: Example) -> int:
    """Return the position of [CLS]: the first or, in XLNet, the last, behind the special token after the context."""
    length = len(window["ids"])
    behind = length - window["begin"] - len(window["offsets"])
    return length - 1 if behind > 1 else NOWHERE


def best_spans(
    logits: np.ndarray, offsets: np.ndarray, core: slice, most: int, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the spans of a window with the largest sums of both logits.

    Args:
        logits: float32 [tokens, 2], of the context in the window: as the first token, as the last token.
        offsets: int64 [tokens, 2], of the tokens in the context.
        core: the tokens that a span may begin with.
        most: the maximum number of spans.
        longest: the maximum number of tokens of a span.

    Returns:
        Places and logits of at most ``most`` spans, as in ``Spans``.
    """
    starts = logits[core, 0]
    if not len(starts):
        return np.empty((0, 2), np.int64), np.empty((0, 2), np.float32)
    ends = np.concatenate([logits[:, 1], np.full(longest - 1, -np.inf, np.float32)])
    # sums[i, j]: the span begins with token i of the core and has 1 + j tokens.
    sums = starts[:, None] + np.lib.stride_tricks.sliding_window_view(ends, longest)[core]
    flat = sums.ravel()
    best = np.sort(np.argpartition(flat, -most)[-most:]) if most < flat.size else np.arange(flat.size)
    best = best[np.isfinite(flat[best])]
    begin, more = np.divmod(best[np.argsort(-flat[best], kind="stable")], longest)
    first = begin + core.start
    last = first + more
    return np.stack([offsets[first, 0], offsets[last, 1]], 1), np.stack([logits[first, 0], logits[last, 1]], 1)


@attrs.frozen
class Found:
    """The answer to a question.

    Attributes:
        begin: its begin in the context, in code points.
        end: its end, equal to ``begin`` if there is no answer.
        text: the answer.
        nbest: the best answers with ``text``, ``probability`` (among these), ``start_logit`` and ``end_logit``, best
            first, including an empty text if there may be no answer.
        null_odds: the score of no answer minus that of the best answer; above the threshold, there is no answer.
        best: the answer regardless of the odds; empty only if there are no spans.
    """

    begin: int
    end: int
    text: str
    nbest: list[dict[str, Any]]
    null_odds: float
    best: str


def find(
    context: str, windows: Sequence[Spans], most: int, with_negative: bool = False, threshold: float = 0.0
) -> Found:
    """Choose the answer to a question.

    Args:
        context: the text.
        windows: the spans of all its windows.
        most: the maximum number of answers in ``nbest``, besides the empty one.
        with_negative: whether there may be no answer.
        threshold: of ``null_odds``. Default 0: the more probable of the two.
    """
    distinct = _distinct(context, windows)
    best = [span for span, _ in zip(distinct, range(most), strict=False)]
    null = min((each.null for each in windows), key=sum)
    odds = float(null.sum() - (best[0][2].sum() if best else 0.0))
    entries = [(context[begin:end], logits) for begin, end, logits in best]
    if with_negative:
        entries = sorted([*entries, ("", null)], key=lambda entry: -entry[1].sum())
    likeliest = best[0][:2] if best else (0, 0)
    begin, end = (0, 0) if with_negative and odds > threshold else likeliest
    return Found(begin, end, context[begin:end], _nbest(entries), odds, context[slice(*likeliest)])


def _distinct(context: str, windows: Sequence[Spans]) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the spans of all windows, best first, without spans whose text occurred before."""
    places = np.concatenate([each.places for each in windows])
    logits = np.concatenate([each.logits for each in windows])
    known = {""}  # a token may have no characters
    for number in np.argsort(-logits.sum(axis=1), kind="stable"):
        begin, end = places[number].tolist()
        if context[begin:end] not in known:
            known.add(context[begin:end])
            yield begin, end, logits[number]


def _nbest(entries: Sequence[tuple[str, np.ndarray]]) -> list[dict[str, Any]]:
    if not entries:
        return []
    probabilities = softmax(np.array([logits.sum() for _, logits in entries]))
    return [
        {
            "text": text,
            "probability": round(float(probability), 6),
            "start_logit": round(float(start), 6),
            "end_logit": round(float(end), 6),
        }
        for (text, (start, end)), probability in zip(entries, probabilities, strict=True)
    ]
