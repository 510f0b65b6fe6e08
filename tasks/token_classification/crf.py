"""A linear-chain conditional random field over scores of tags (Lafferty et al. 2001; Lample et al. 2016, section 2.2).

A path of tags scores what its tags score at their words, what each step from tag to tag scores, and what beginning and
ending with its tags scores. Its probability is the softmax over all paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import paddle
from paddle import nn


class LinearChain(nn.Layer):
    """The scores of steps, all 0 at first: then every tag is chosen for itself.

    Args:
        tags: how many there are.
        rate: these parameters learn so many times as fast as others; they are few, and start from nothing.

    Attributes:
        transitions: float32 [tags, tags], the score of a step from the tag of the row to that of the column.
        start, end: float32 [tags], the scores of beginning and of ending with a tag.
    """

    def __init__(self, tags: int, rate: float = 1.0) -> None:
        super().__init__()
        attributes = paddle.ParamAttr(learning_rate=rate, initializer=nn.initializer.Constant(0.0))
        self.transitions = self.create_parameter([tags, tags], attr=attributes)
        self.start = self.create_parameter([tags], attr=attributes)
        self.end = self.create_parameter([tags], attr=attributes)

    def forward(self, scores: paddle.Tensor, tags: paddle.Tensor, lengths: Sequence[int]) -> paddle.Tensor:
        """Return the logarithm of the probability of each path.

        Args:
            scores: float32 [batch, steps, tags].
            tags: int64 [batch, steps]; what stands behind the end of a path is any tag.
            lengths: of the paths, each at most 1.

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
        # A product of matrices takes the place of logsumexp over [batch, tags, tags]: with 130 tags it is 30 times as
        # fast. What is subtracted keeps exp() in range as long as steps to one tag do not differ by more than 80.
        most = self.transitions.detach().max(axis=0)
        moves = paddle.exp(self.transitions - most)
        first, *others = paddle.unstack(scores, axis=1)
        sums = first + self.start  # over all paths up to here, by their last tag
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
        """Return the most probable path of each, by Viterbi's algorithm; of equals the one with the lower tags.

        Args:
            scores: float32 [batch, steps, tags].
            lengths: of the paths.

        Returns:
            For each int64 [length].
        """
        transitions = self.transitions.numpy()
        best = scores[:, 0] + self.start.numpy()  # path up to here, by its last tag
        before = []
        for step in range(1, scores.shape[1]):
            longer = best[:, :, None] + transitions
            goes_on = (step < np.array(lengths))[:, None]
            # Behind the end every tag comes from itself, so that the walk back arrives at the end with the right one.
            before.append(np.where(goes_on, longer.argmax(axis=1), np.arange(scores.shape[2])))
            best = np.where(goes_on, longer.max(axis=1) + scores[:, step], best)
        paths = [(best + self.end.numpy()).argmax(axis=1)]
        for came_from in reversed(before):
            paths.append(np.take_along_axis(came_from, paths[-1][:, None], 1)[:, 0])
        return [path[:length] for path, length in zip(np.stack(paths[::-1], axis=1), lengths, strict=True)]
