"""The architectures in small: sizes, and weights and batches that depend on a seed and nothing else.

A weight depends on the seed and on our name of it, so that every reference gets the same model without a file between.
RoBERTa-wwm (Chinese) is not among them: it is a BERT in all but its name, and its authors publish it as one.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

_MASK = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0]]
_SIZES: dict[str, Any] = {
    "vocab_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_FOURFOLD: dict[str, Any] = {"intermediate_size": 4 * _SIZES["hidden_size"]}  # static ERNIE knows no other
_TINY: dict[str, Any] = {"num_hidden_layers": 3, "intermediate_size": 20, "max_position_embeddings": 15}
_LIVE = {"vocab_size": 311, "hidden_size": 48, "num_attention_heads": 4, "max_position_embeddings": 40}


_XLNET = {"vocab_size": 24, "d_model": 8, "n_layer": 2, "n_head": 2, "d_inner": 12, "dropout": 0.0, "pad_token_id": 0}


@dataclass(frozen=True)
class Case:
    """A model and a batch.

    Attributes:
        name: of the architecture.
        family: ``"bert"``, ``"roberta"``, ``"ernie"``, ``"electra"`` or ``"xlnet"``.
        config: the reference's config, as keywords; and ``type_vocab_size`` of the batch for XLNet, which has no table
            of segments.
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
    def last(self) -> np.ndarray:
        """The column of each row's last token."""
        return self.mask.shape[1] - 1 - self.mask[:, ::-1].argmax(axis=1)

    @property
    def is_classifier(self) -> bool:
        """Whether the model is a classifier, without pretraining heads."""
        return self.family in ("electra", "xlnet")

    @property
    def settings(self) -> dict[str, Any]:
        """The config without what the family does not have."""
        return {name: value for name, value in self.config.items() if self.family != "xlnet" or "type" not in name}

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


def _case(name: str, family: str, seed: int = 0, **config: Any) -> Case:
    sizes = _XLNET if family == "xlnet" else _SIZES
    return Case(name, family, sizes | config, np.array(_MASK), seed)


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
CLASSIFIERS = {
    case.name: case
    for case in (
        _case("electra", "electra", type_vocab_size=2, embedding_size=6),
        _case("electra_equal", "electra", seed=1, type_vocab_size=2, embedding_size=8),
        _case("xlnet", "xlnet", type_vocab_size=3),
        _case("xlnet_clamped", "xlnet", seed=1, type_vocab_size=3, clamp_len=2, ff_activation="relu"),
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


EXPECTED = "expected.npz"


def write(by: Any, case: Case, folder: Path, layouts: Iterable[str], expected: bool = True) -> None:
    """Write a case into ``folder``, a sub-folder for each layout.

    Args:
        by: the reference.
        case: the model and the batch.
        folder: where to.
        layouts: of the reference; ``"static"`` gets outputs of its own, for its epsilon is another.
        expected: whether the outputs and gradients are written, which all other layouts share.
    """
    model = by.make(case)
    for layout in layouts:
        shutil.rmtree(folder / layout, ignore_errors=True)
        by.save(model, case, layout, folder / layout)
    if expected:
        np.savez_compressed(folder / EXPECTED, **run(by, model, case))
    if "static" in layouts:
        np.savez_compressed(folder / "static" / EXPECTED, **run(by, by.as_static(model), case))


def read_back(by: Any, case: Case, folder: Path) -> None:
    """Load the folder of a model that onion saved, and write what the reference makes of it."""
    np.savez(folder / EXPECTED, **run(by, by.load(folder, case), case))


def run(by: Any, model: Any, case: Case) -> dict[str, Any]:
    """Compute inputs, outputs, the factors of the loss, and the gradients of all parameters with onion's names.

    Args:
        by: the reference: ``tensor`` converts an array, ``outputs`` and ``gradients`` are those of a model.
        model: of the reference, without gradients.
        case: the batch.
    """
    ids = case.batch()
    outputs = by.outputs(model, case, {name: by.tensor(array) for name, array in ids.items()})
    factors = case.factors({name: tuple(out.shape) for name, out in outputs.items()})
    sum((out * by.tensor(factors[name])).sum() for name, out in outputs.items()).backward()
    found = ids | ({"masked_positions": case.masked_positions} if "words" in outputs else {})
    found |= {"maker": np.array(by.MAKER)} | {name: out.detach().numpy() for name, out in outputs.items()}
    found |= {f"factor:{name}": factor for name, factor in factors.items()}
    return found | {f"gradient:{name}": gradient for name, gradient in by.gradients(model).items()}


# In this order.
_FROM_HUGGING_FACE = [
    (r"^(bert|roberta|ernie|electra|transformer)\.", ""),
    (r"^(classifier\.dense|sequence_summary\.summary)\.", "pooler.dense."),
    (r"embeddings\.LayerNorm", "embeddings.layer_norm"),
    (r"encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.(q)uery|attention\.self\.(k)ey|attention\.self\.(v)alue", r"self_attn.\1\2\3_proj"),
    (r"attention\.output\.dense", "self_attn.out_proj"),
    (r"attention\.output\.LayerNorm", "norm1"),
    (r"intermediate\.dense", "linear1"),
    (r"output\.dense", "linear2"),
    (r"output\.LayerNorm", "norm2"),
    (r"^cls\.predictions\.transform\.LayerNorm", "cls.predictions.layer_norm"),
    (r"^cls\.predictions\.transform\.dense", "cls.predictions.transform"),
    (r"^cls\.predictions\.bias", "cls.predictions.decoder_bias"),
    (r"^lm_head\.dense", "cls.predictions.transform"),
    (r"^lm_head\.layer_norm", "cls.predictions.layer_norm"),
    (r"^lm_head\.bias", "cls.predictions.decoder_bias"),
]
_STATIC = [
    (r"^embeddings\.word_embeddings\.weight", "word_embedding"),
    (r"^embeddings\.position_embeddings\.weight", "pos_embedding"),
    (r"^embeddings\.token_type_embeddings\.weight", "sent_embedding"),
    (r"^embeddings\.task_type_embeddings\.weight", "task_embedding"),
    (r"^embeddings\.layer_norm\.", "pre_encoder_layer_norm."),
    (r"^encoder\.layers\.(\d+)\.", r"encoder_layer_\1_"),
    (r"self_attn\.q_proj", "multi_head_att_query_fc"),
    (r"self_attn\.k_proj", "multi_head_att_key_fc"),
    (r"self_attn\.v_proj", "multi_head_att_value_fc"),
    (r"self_attn\.out_proj", "multi_head_att_output_fc"),
    (r"norm1", "post_att_layer_norm"),
    (r"linear1", "ffn_fc_0"),
    (r"linear2", "ffn_fc_1"),
    (r"norm2", "post_ffn_layer_norm"),
    (r"^pooler\.dense", "pooled_fc"),
    (r"^cls\.predictions\.transform", "mask_lm_trans_fc"),
    (r"^cls\.predictions\.layer_norm", "mask_lm_trans_layer_norm"),
    (r"^cls\.predictions\.decoder_bias", "mask_lm_out_fc.b_0"),
    (r"^cls\.seq_relationship", "next_sent_fc"),
    (r"_layer_norm\.weight$", "_layer_norm_scale"),
    (r"_layer_norm\.bias$", "_layer_norm_bias"),
    (r"\.weight$", ".w_0"),
    (r"\.bias$", ".b_0"),
]


def from_hugging_face(name: str) -> str:
    """Our name of a parameter of transformers'."""
    return _renamed(name, _FROM_HUGGING_FACE)


def from_paddlenlp(name: str) -> str:
    """Our name of a parameter of PaddleNLP's: without the model's name before it; RoBERTa's head has its own."""
    return _renamed(name, [pair for pair in _FROM_HUGGING_FACE if pair[0].startswith(("^(", "^lm"))])


def to_static(name: str) -> str:
    """Static ERNIE's name of one of our parameters."""
    return _renamed(name, _STATIC)


def _renamed(name: str, pairs: list[tuple[str, str]]) -> str:
    for pattern, replacement in pairs:
        name = re.sub(pattern, replacement, name)
    return name
