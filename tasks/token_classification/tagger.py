"""The networks that tag words: each word for itself, or all words of a text together by a CRF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.ops import rows
from onion.tasks.batches import arguments, batch_of
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.networks.heads import TokenHead
from onion.tasks.token_classification.crf import LinearChain

if TYPE_CHECKING:
    from onion.tasks.data.features.examples import Example

CRF_RATE = 20.0
"""How much faster than the encoder a CRF learns: PaddlePALM's 1e-3 beside its 5e-5."""


class Tagger(TokenHead):
    """A head with one logit for every tag, over the first token of every word only.

    Args: see TokenHead; ``outputs`` is the number of tags.
    """

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[words, tags]``, of a batch as :func:`tagging_batch` makes it."""
        encoded = self.encoder(**arguments(batch))
        return self.classifier(self.dropout(rows(encoded.packed, batch["firsts"])))

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy of the words that belong to their windows, a scalar."""
        # Paddle's own mean would count the others too: it leaves ignored ones out of the number only for indices >= 0.
        total = functional.cross_entropy(logits, batch["tags"], ignore_index=IGNORED, reduction="sum")
        return total / _own_words(batch)

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return for every example the tags of its own words, int64 ``[own words]``."""
        paths = np.split(logits.numpy().argmax(axis=1), np.cumsum(batch["words"])[:-1])
        return _own(paths, batch)


class CrfTagger(Tagger):
    """A tagger that decodes the tags of a window jointly, by :class:`onion.tasks.token_classification.crf.LinearChain`.

    It learns from the words that belong to a window, so from each word once; it looks for the best tags of all words in
    the window, so a word next to the border of what belongs to it is not taken for the end of the text.

    Args: see Tagger.
    """

    def __init__(self, encoder: nn.Layer, outputs: int, dropout: float | None = None) -> None:
        super().__init__(encoder, outputs, dropout)
        self.crf = LinearChain(outputs, CRF_RATE)

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the negative log-likelihood of the tags, a scalar; divided by the number of words."""
        begins, ends = np.transpose(batch["own"])
        places = grid(_starts(batch["words"]) + begins, ends - begins)
        index = paddle.to_tensor(places.reshape(-1))
        scores = rows(logits, index).reshape([*places.shape, -1])
        tags = paddle.gather(batch["tags"], index).reshape(places.shape)
        return -self.crf(scores, tags, ends - begins).sum() / _own_words(batch)

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return for every example the tags of its own words, int64 ``[own words]``."""
        words = batch["words"]
        scores = logits.numpy()[grid(_starts(words), words)]
        return _own(self.crf.best_paths(scores, words), batch)


def tagging_batch(examples: Sequence[Example], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch of examples of ``onion.tasks.token_classification.task.TokenClassification``.

    Returns:
        Besides the fields of ``batch_of``: ``firsts``, int64 [words], where the first token of every word stands among
        all tokens of the batch, padding not counted; lists with one entry an example: ``words``, how many it has;
        ``own``, begin and end of those that belong to it; ``rows``, the row that it was made of; ``begins``, the
        number of its first own word in the row; and, if the examples have them, ``tags``, int64 [words], IGNORED
        where a word belongs to another example.
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
    """Return the numbers ``begin, begin + 1, ...`` for each begin, int64 [batch, longest]; after its end the last."""
    steps = np.arange(max(lengths))
    numbers: np.ndarray = np.asarray(begins)[:, None] + np.minimum(steps, np.asarray(lengths)[:, None] - 1)
    return numbers


def _starts(lengths: Sequence[int]) -> np.ndarray:
    """Where each of some parts begins when they stand one after the other."""
    return np.cumsum(lengths) - lengths


def _own_words(batch: dict[str, Any]) -> int:
    return sum(end - begin for begin, end in batch["own"])


def _own(paths: Sequence[np.ndarray], batch: dict[str, Any]) -> list[np.ndarray]:
    return [path[begin:end] for path, (begin, end) in zip(paths, batch["own"], strict=True)]
