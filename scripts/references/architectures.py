"""The architectures in small: sizes, and weights and batches that depend on a seed and nothing else.

A weight depends on the seed and on our name of it, so that every reference gets the same model without a file between.
RoBERTa-wwm (Chinese) is not among them: it is a BERT in all but its name, and its authors publish it as one.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

_MASK = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0]]
_SIZES = {
    "vocab_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_FOURFOLD = {"intermediate_size": 4 * _SIZES["hidden_size"]}  # static ERNIE knows no other
_TINY = {"num_hidden_layers": 3, "intermediate_size": 20, "max_position_embeddings": 15}
_LIVE = {"vocab_size": 311, "hidden_size": 48, "num_attention_heads": 4, "max_position_embeddings": 40}


@dataclass(frozen=True)
class Case:
    """A model and a batch.

    Attributes:
        name: of the architecture.
        family: ``"bert"``, ``"roberta"`` or ``"ernie"``.
        config: the reference's config, as keywords.
        mask: int64 [batch, length], with padding right, left and in the middle, and a row of one token.
        seed: of the weights and of the batch.
        share: what the loss is multiplied with.
    """

    name: str
    family: str
    config: dict[str, Any]
    mask: np.ndarray
    seed: int = 0
    share: float = 1.0

    @property
    def first(self) -> np.ndarray:
        """The column of each row's first token."""
        return self.mask.argmax(axis=1)

    @property
    def masked_positions(self) -> np.ndarray:
        """Some tokens, not in order: where they stand in the flattened batch."""
        generator = np.random.default_rng([self.seed, 3])
        return generator.permutation(np.flatnonzero(self.mask))[: self.mask.sum() // 3]

    def weight(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """One that is large enough to matter; embeddings are small, so that the norm's epsilon matters."""
        generator = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        is_scale = re.search(r"norm\d?\.weight$", name) is not None
        width = 0.01 if "_embeddings." in name else 0.2
        return generator.normal(1.0 if is_scale else 0.0, width, shape).astype(np.float32)

    def batch(self) -> dict[str, np.ndarray]:
        """Ids; the padding id where the mask is 0 and nowhere else."""
        generator = np.random.default_rng([self.seed, 1])
        config, shape = self.config, self.mask.shape
        pad = config.get("pad_token_id", 0)
        found = {
            "input_ids": np.where(self.mask, generator.integers(pad + 1, config["vocab_size"], shape), pad),
            "token_type_ids": generator.integers(0, config["type_vocab_size"], shape),
            "attention_mask": self.mask,
        }
        if config.get("use_task_id"):
            found["task_type_ids"] = generator.integers(0, config["task_type_vocab_size"], shape)
        return found

    def factors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """What each output is multiplied with in the loss: zero where there is padding."""
        generator = np.random.default_rng([self.seed, 2])
        found = {
            name: generator.normal(scale=self.share, size=shape).astype(np.float32) for name, shape in shapes.items()
        }
        found["sequence_output"] *= self.mask[:, :, None].astype(np.float32)
        return found


def _case(name: str, family: str, **config: Any) -> Case:
    return Case(name, family, _SIZES | config, np.array(_MASK))


CASES = {
    case.name: case
    for case in (
        _case("bert", "bert", type_vocab_size=2),
        _case("roberta", "roberta", type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5),
        _case("ernie_1", "ernie", type_vocab_size=2, hidden_act="relu", **_FOURFOLD),
        _case("ernie_2", "ernie", type_vocab_size=4, task_type_vocab_size=16, use_task_id=True, **_FOURFOLD),
        _case("ernie_3", "ernie", type_vocab_size=4, task_type_vocab_size=3, use_task_id=True, **_FOURFOLD),
        _case("ernie_tiny", "ernie", type_vocab_size=2, hidden_act="relu", **_TINY),
    )
}


def live(case: Case, seed: int) -> Case:
    """The same architecture with other sizes, another seed and another batch, and the mean of its rows as the loss."""
    config = case.config | _LIVE
    if case.config["intermediate_size"] == _FOURFOLD["intermediate_size"]:
        config["intermediate_size"] = 4 * config["hidden_size"]
    else:
        config["intermediate_size"] = 100
    generator = np.random.default_rng([seed, 4])
    mask = (generator.random((7, 23)) < 0.8).astype(np.int64)
    mask[np.arange(7), generator.integers(0, 23, 7)] = 1
    mask[0] = 1
    mask[1] = np.arange(23) == 9
    return replace(case, config=config, mask=mask, seed=seed, share=1 / len(mask))
