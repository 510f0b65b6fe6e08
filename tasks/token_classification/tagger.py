"""The networks that tag words: each word independently, or all words of a text jointly by a CRF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.ops import rows
from onion.tasks.batches import arguments, batch_of
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.networks.heads import TokenHead
from onion.tasks.probabilities import softmax
from onion.tasks.token_classification.tags import Tags

if TYPE_CHECKING:
    from onion.tasks.data.features.examples import Example

CRF_RATE = 20.0
"""Factor of a CRF's learning rate: PaddlePALM's 1e-3 beside its 5e-5."""


class Tagger(TokenHead):
    """A head with one logit per tag, over the first token of each word.

    Args: see TokenHead; ``outputs`` is the number of tags.
    """

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[words, tags]``, of a batch as made by :func:`tagging_batch`."""
        encoded = self.encoder(**arguments(batch))
        return self.classifier(self.dropout(rows(encoded.packed, batch["firsts"])))

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy of the words that belong to their windows, a scalar."""
        # Paddle's mean would count the others, too: it excludes ignored ones only if the index is >= 0.
        total = functional.cross_entropy(logits, batch["tags"], ignore_index=IGNORED, reduction="sum")
        return total / _own_words(batch)

    def loss_weight(self, batch: dict[str, Any]) -> int:
        """Return the number of words that belong to their windows, over which the loss is a mean."""
        return _own_words(batch)

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[Tags]:
        """Return for each example the tags of its own words."""
        scores, borders = logits.numpy(), np.cumsum(batch["words"])[:-1]
        paths, best = (np.split(each, borders) for each in (scores.argmax(axis=1), softmax(scores).max(axis=1)))
        return _own(map(Tags, paths, best), batch)


class LinearChain(nn.Layer):
    """A linear-chain conditional random field (Lafferty et al. 2001; Lample et al. 2016, section 2.2).

    The score of a path is the sum of the scores of its tags, of its transitions between tags, and of its first and last
    tag. Its probability is the softmax over all paths. The parameters are initially 0, which makes tags independent.

    Args:
        tags: the number of tags.
        rate: factor of the learning rate of these parameters, which are few and start from 0.

    Attributes:
        transitions: float32 [tags, tags], the score of a transition from the tag of the row to that of the column.
        start, end: float32 [tags], the scores of the first and the last tag.
    """

    def __init__(self, tags: int, rate: float = 1.0) -> None:
        super().__init__()
        attributes = paddle.ParamAttr(learning_rate=rate, initializer=nn.initializer.Constant(0.0))
        self.transitions = self.create_parameter([tags, tags], attr=attributes)
        self.start = self.create_parameter([tags], attr=attributes)
        self.end = self.create_parameter([tags], attr=attributes)

    def forward(self, scores: paddle.Tensor, tags: paddle.Tensor, lengths: Sequence[int]) -> paddle.Tensor:
        """Return the log-probability of each path.

        Args:
            scores: float32 [batch, steps, tags].
            tags: int64 [batch, steps]; any tags after the end of a path.
            lengths: of the paths, each at least 1.

        Returns:
            float32 [batch].
        """
        mask = np.arange(scores.shape[1]) < np.array(lengths)[:, None]
        return self._path_scores(scores, tags, mask, lengths) - self.log_partition(scores, mask)

    def log_partition(self, scores: paddle.Tensor, mask: np.ndarray) -> paddle.Tensor:
        """Return the logarithm of the sum of exp(score) over all paths, float32 [batch].

        Args:
            scores: float32 [batch, steps, tags].
            mask: bool [batch, steps], where a path has a word.
        """
        # A matrix product replaces logsumexp over [batch, tags, tags], which is 30 times as slow with 130 tags. The
        # subtracted maxima keep exp() in range if transitions to one tag do not differ by more than 80.
        most = self.transitions.detach().max(axis=0)
        moves = paddle.exp(self.transitions - most)
        first, *others = paddle.unstack(scores, axis=1)
        sums = first + self.start  # over all paths so far, by their last tag
        for step, goes_on in zip(others, mask.T[1:], strict=True):
            top = sums.detach().max(axis=1, keepdim=True)
            longer = paddle.log(paddle.matmul(paddle.exp(sums - top), moves)) + (step + top + most)
            sums = longer if goes_on.all() else paddle.where(paddle.to_tensor(goes_on[:, None]), longer, sums)
        return paddle.logsumexp(sums + self.end, axis=1)

    def _path_scores(
        self, scores: paddle.Tensor, tags: paddle.Tensor, mask: np.ndarray, lengths: Sequence[int]
    ) -> paddle.Tensor:
        batch, steps, kinds = scores.shape
        inside = paddle.to_tensor(mask.astype(np.float32))
        own = paddle.take_along_axis(scores, tags.unsqueeze(2), 2).squeeze(2)
        total = (own * inside).sum(axis=1) + paddle.gather(self.start, tags[:, 0])
        if steps > 1:
            moves = (tags[:, :-1] * kinds + tags[:, 1:]).reshape([-1])
            moved = paddle.gather(self.transitions.reshape([-1]), moves).reshape([batch, steps - 1])
            total = total + (moved * inside[:, 1:]).sum(axis=1)
        ends = paddle.to_tensor(np.arange(batch) * steps + np.array(lengths) - 1)
        return total + paddle.gather(self.end, paddle.gather(tags.reshape([-1]), ends))

    def best_paths(self, scores: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
        """Return the most probable path of each, by Viterbi's algorithm; of equal ones that with the lower tags.

        Args:
            scores: float32 [batch, steps, tags].
            lengths: of the paths.

        Returns:
            int64 [length] for each.
        """
        transitions = self.transitions.numpy()
        best = scores[:, 0] + self.start.numpy()  # best path so far, by its last tag
        before = []
        for step in range(1, scores.shape[1]):
            longer = best[:, :, None] + transitions
            goes_on = (step < np.array(lengths))[:, None]
            # After its end a path keeps its tag, so that backtracking starts there with the best one.
            before.append(np.where(goes_on, longer.argmax(axis=1), np.arange(scores.shape[2])))
            best = np.where(goes_on, longer.max(axis=1) + scores[:, step], best)
        paths = [(best + self.end.numpy()).argmax(axis=1)]
        for came_from in reversed(before):
            paths.append(np.take_along_axis(came_from, paths[-1][:, None], 1)[:, 0])
        return [path[:length] for path, length in zip(np.stack(paths[::-1], axis=1), lengths, strict=True)]

    def marginals(self, scores: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Return the probability of each tag at each step, over all paths, by the forward-backward algorithm.

        Args:
            scores: float32 [batch, steps, tags].
            lengths: of the paths.

        Returns:
            float64 [batch, steps, tags]; after the end of a path, of no meaning.
        """
        transitions, scores = self.transitions.numpy().astype(np.float64), scores.astype(np.float64)
        steps, ends = scores.shape[1], np.array(lengths)[:, None]
        # Logarithms of sums of exp(score): over all beginnings of paths up to a tag, and over all that may follow it.
        before, after = np.empty_like(scores), np.empty_like(scores)
        before[:, 0] = scores[:, 0] + self.start.numpy()
        after[:, -1] = self.end.numpy()
        for step in range(1, steps):
            before[:, step] = _log_product(before[:, step - 1], transitions) + scores[:, step]
            here = steps - 1 - step
            longer = _log_product(after[:, here + 1] + scores[:, here + 1], transitions.T)
            after[:, here] = np.where(here + 1 < ends, longer, self.end.numpy())
        return softmax(before + after)


def _log_product(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return log(exp(vectors) @ exp(matrix)); the maxima are taken out, so that exp() stays in range."""
    top, most = vectors.max(axis=1, keepdims=True), matrix.max(axis=0)
    with np.errstate(divide="ignore"):  # the logarithm of 0, of what no path reaches
        logs: np.ndarray = np.log(np.exp(vectors - top) @ np.exp(matrix - most)) + top + most
    return logs


class CrfTagger(Tagger):
    """A tagger that decodes the tags of a window jointly, by :class:`LinearChain`.

    The loss is over the words that belong to a window, so each word is counted once; decoding is over all words of the
    window, so that the border of its own words is not treated as the end of the text.

    Args: see Tagger.
    """

    def __init__(self, encoder: nn.Layer, outputs: int, dropout: float | None = None) -> None:
        super().__init__(encoder, outputs, dropout)
        self.crf = LinearChain(outputs, CRF_RATE)

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the negative log-likelihood of the tags per word, a scalar."""
        begins, ends = np.transpose(batch["own"])
        places = grid(_starts(batch["words"]) + begins, ends - begins)
        index = paddle.to_tensor(places.reshape(-1))
        scores = rows(logits, index).reshape([*places.shape, -1])
        tags = paddle.gather(batch["tags"], index).reshape(places.shape)
        return -self.crf(scores, tags, ends - begins).sum() / _own_words(batch)

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[Tags]:
        """Return for each example the tags of its own words, those of the most probable path of its window."""
        words = batch["words"]
        scores = logits.numpy()[grid(_starts(words), words)]
        paths, marginals = self.crf.best_paths(scores, words), self.crf.marginals(scores, words)
        best = (each[np.arange(len(path)), path] for path, each in zip(paths, marginals, strict=True))
        return _own(map(Tags, paths, best), batch)


def tagging_batch(examples: Sequence[Example], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch of examples of ``onion.tasks.token_classification.task.TokenClassification``.

    Returns:
        The fields of ``batch_of``; ``firsts``, int64 [words], the index of each word's first token among all tokens of
        the batch without padding; lists with one entry per example: ``words``, the number of its words; ``own``, begin
        and end of those that belong to it; ``rows``, its row; ``begins``, the index of its first own word in the row;
        and, if the examples have them, ``tags``, int64 [words], IGNORED for words of other examples.
    """
    batch = batch_of(examples, pad_id)
    starts = _starts(batch["lengths"])
    own = [tuple(example["own"].tolist()) for example in examples]
    firsts = [start + each["firsts"] for start, each in zip(starts, examples, strict=True)]
    batch |= {
        "firsts": np.concatenate(firsts).astype(np.int64),
        "words": [len(example["firsts"]) for example in examples],
        "own": own,
        "rows": [example["row"] for example in examples],
        "begins": [example["word"] + begin for example, (begin, _) in zip(examples, own, strict=True)],
    }
    if "tags" in examples[0]:
        batch["tags"] = np.concatenate([example["tags"] for example in examples]).astype(np.int64)
    return batch


def grid(begins: np.ndarray, lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return ``begin, begin + 1, ...`` for each begin, int64 [batch, longest]; the last is repeated."""
    steps = np.arange(max(lengths))
    numbers: np.ndarray = np.asarray(begins)[:, None] + np.minimum(steps, np.asarray(lengths)[:, None] - 1)
    return numbers


def _starts(lengths: Sequence[int]) -> np.ndarray:
    """Return where each part starts when they are concatenated."""
    return np.cumsum(lengths) - lengths


def _own_words(batch: dict[str, Any]) -> int:
    return sum(end - begin for begin, end in batch["own"])


def _own(of_windows: Iterable[Tags], batch: dict[str, Any]) -> list[Tags]:
    return [tags[begin:end] for tags, (begin, end) in zip(of_windows, batch["own"], strict=True)]
