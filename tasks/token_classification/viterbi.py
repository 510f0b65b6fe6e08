"""The best paths of a linear chain and the probabilities of its tags, in numpy; ``tagger.LinearChain`` is the layer.

The three arrays of a chain, float32: ``transitions`` [tags, tags], the score of a transition from the tag of the row to
that of the column; ``start`` and ``end`` [tags], the scores of the first and the last tag.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onion.tasks.probabilities import softmax


def best_paths(
    scores: np.ndarray, lengths: Sequence[int], transitions: np.ndarray, start: np.ndarray, end: np.ndarray
) -> list[np.ndarray]:
    """Return the most probable path of each, by Viterbi's algorithm; of equal ones that with the lower tags.

    Args:
        scores: float32 [batch, steps, tags].
        lengths: of the paths.
        transitions: of the chain.
        start: of the chain.
        end: of the chain.

    Returns:
        int64 [length] for each.
    """
    best = scores[:, 0] + start  # best path so far, by its last tag
    before = []
    for step in range(1, scores.shape[1]):
        longer = best[:, :, None] + transitions
        goes_on = (step < np.array(lengths))[:, None]
        # After its end a path keeps its tag, so that backtracking starts there with the best one.
        before.append(np.where(goes_on, longer.argmax(axis=1), np.arange(scores.shape[2])))
        best = np.where(goes_on, longer.max(axis=1) + scores[:, step], best)
    paths = [(best + end).argmax(axis=1)]
    for came_from in reversed(before):
        paths.append(np.take_along_axis(came_from, paths[-1][:, None], 1)[:, 0])
    return [path[:length] for path, length in zip(np.stack(paths[::-1], axis=1), lengths, strict=True)]


def marginals(
    scores: np.ndarray, lengths: Sequence[int], transitions: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the probability of each tag at each step, over all paths, by the forward-backward algorithm.

    Args: those of :func:`best_paths`.

    Returns:
        float64 [batch, steps, tags]; after the end of a path, of no meaning.
    """
    transitions, scores = transitions.astype(np.float64), scores.astype(np.float64)
    steps, ends = scores.shape[1], np.array(lengths)[:, None]
    # Logarithms of sums of exp(score): over all beginnings of paths up to a tag, and over all that may follow it.
    before, after = np.empty_like(scores), np.empty_like(scores)
    before[:, 0] = scores[:, 0] + start
    after[:, -1] = end
    for step in range(1, steps):
        before[:, step] = _log_product(before[:, step - 1], transitions) + scores[:, step]
        here = steps - 1 - step
        longer = _log_product(after[:, here + 1] + scores[:, here + 1], transitions.T)
        after[:, here] = np.where(here + 1 < ends, longer, end)
    return softmax(before + after)


def _log_product(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return log(exp(vectors) @ exp(matrix)); the maxima are taken out, so that exp() stays in range."""
    top, most = vectors.max(axis=1, keepdims=True), matrix.max(axis=0)
    with np.errstate(divide="ignore"):  # the logarithm of 0, of what no path reaches
        logs: np.ndarray = np.log(np.exp(vectors - top) @ np.exp(matrix - most)) + top + most
    return logs
