"""The networks that tag words: each word independently, or all words of a text jointly by a CRF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.ops import rows
from onion.tasks.batches import arguments
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.networks.heads import TokenHead
from onion.tasks.token_classification.batches import grid, starts
from onion.tasks.token_classification.decoding import independent_tags, joint_tags
from onion.tasks.token_classification.tags import Tags
from onion.tasks.token_classification.viterbi import best_paths, marginals

CRF_RATE = 20.0
"""Factor of a CRF's learning rate: PaddlePALM's 1e-3 beside its 5e-5."""


class Tagger(TokenHead):
    """A head with one logit per tag, over the first token of each word.

    Args: see TokenHead; ``outputs`` is the number of tags.
    """

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[words, tags]``, of a batch as made by ``batches.tagging_batch``."""
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
        return independent_tags(logits.numpy(), batch)


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
        return best_paths(scores, lengths, *self.arrays())

    def marginals(self, scores: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Return the probability of each tag at each step, over all paths, by the forward-backward algorithm.

        Args:
            scores: float32 [batch, steps, tags].
            lengths: of the paths.

        Returns:
            float64 [batch, steps, tags]; after the end of a path, of no meaning.
        """
        return marginals(scores, lengths, *self.arrays())

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ``transitions``, ``start`` and ``end`` in numpy."""
        return self.transitions.numpy(), self.start.numpy(), self.end.numpy()


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
        places = grid(starts(batch["words"]) + begins, ends - begins)
        index = paddle.to_tensor(places.reshape(-1))
        scores = rows(logits, index).reshape([*places.shape, -1])
        tags = paddle.gather(batch["tags"], index).reshape(places.shape)
        return -self.crf(scores, tags, ends - begins).sum() / _own_words(batch)

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[Tags]:
        """Return for each example the tags of its own words, those of the most probable path of its window."""
        return joint_tags(logits.numpy(), batch, *self.crf.arrays())


def _own_words(batch: dict[str, Any]) -> int:
    return sum(end - begin for begin, end in batch["own"])


TAGGERS: dict[str, type[Tagger]] = {"softmax": Tagger, "crf": CrfTagger}
"""By the setting ``decoder`` of ``TokenClassification``."""
