"""Embeddings: one vector per text, from any encoder.

embedder = Embedder.from_pretrained("minilm", pooling="mean", normalize=True)
vectors = embedder(["A deep, moving film.", "It rains."])  # float32 [2, 384]
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion import DataProvider, Forward, Runner
from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.auto import encoder_class
from onion.models.families import read_config
from onion.models.ops import as_tensor
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.tokenization.pre_tokenizer import Given, listed, whole
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.batches import arguments, batch_of
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.data.texts import check_max_length, examples_of, tell_notes

POOLINGS = ("cls", "mean", "pooler")


class PooledEncoder(nn.Layer):
    """An encoder that pools its token vectors into one vector per text.

    * ``cls``: the vector of the classification token: the first token, in XLNet the last.
    * ``mean``: the mean over all tokens including ``[CLS]`` and ``[SEP]``, without padding (Sentence-BERT, Reimers and
      Gurevych 2019, section 3).
    * ``pooler``: the encoder's pooled output, a linear layer and tanh over the classification token.

    Args:
        encoder: its parameters are shared, not copied.
        pooling: one of ``POOLINGS``.
        layer: use the vectors of this layer, from 1; higher layers are not computed. Default: the last.
        normalize: divide each vector by its Euclidean norm.
        tokens: return the token vectors, too.

    Raises:
        DataError: the pooling is unknown, or the encoder does not have the layer.
    """

    def __init__(
        self,
        encoder: PretrainedEncoder,
        pooling: str = "cls",
        layer: int | None = None,
        normalize: bool = False,
        tokens: bool = False,
    ) -> None:
        super().__init__()
        check_pooling(pooling, layer, encoder.config.num_hidden_layers)
        if layer is None or layer == encoder.config.num_hidden_layers:
            self.encoder = encoder
        else:
            self.encoder = encoder.first_layers(layer)
        self.pooling, self.normalize, self.tokens = pooling, normalize, tokens

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor | tuple[paddle.Tensor, paddle.Tensor]:
        """Return the vectors of a batch as made by ``onion.tasks.batches.batch_of``.

        Returns:
            float32 ``[batch, hidden]``; with ``tokens`` also the vectors of all tokens of the layer, row by row without
            padding: float32 ``[tokens, hidden]``.
        """
        cls_only = self.pooling != "mean" and not self.tokens
        encoded = self.encoder(**arguments(batch), cls_only=cls_only)
        if self.pooling == "pooler":
            vectors = encoded.pooled_output
        elif self.pooling == "cls":
            vectors = encoded.cls
        else:
            counts = as_tensor(encoded.packing.mask.sum(axis=1, keepdims=True).astype(np.float32))
            vectors = encoded.sequence_output.astype("float32").sum(axis=1) / counts  # padding is zero there
        vectors = vectors.astype("float32")
        if self.normalize:
            vectors = functional.normalize(vectors, axis=1)
        return (vectors, encoded.packed.astype("float32")) if self.tokens else vectors


class Embedder:
    """Converts texts into vectors, by a runner of three items that ``onion`` returns.

    Args:
        encoder: computes the token vectors in evaluation mode; its mode is restored.
        tokenizer: the encoder's.
        pooling, layer, normalize: see :class:`PooledEncoder`.
        max_length: the maximum number of tokens of a text, including special ones; longer texts are truncated.
        batch_size: texts, of similar length, per batch.

    Raises:
        DataError: the pooling is unknown, the encoder does not support the layer or the length (the message has both
            numbers), or ``batch_size`` is below 1.
    """

    def __init__(
        self,
        encoder: PretrainedEncoder,
        tokenizer: Tokenizer,
        pooling: str = "cls",
        *,
        layer: int | None = None,
        normalize: bool = False,
        max_length: int = 128,
        batch_size: int = 64,
    ) -> None:
        _check_length(max_length, encoder.config.max_length)
        if whole("batch_size", batch_size) < 1:
            raise DataError(f"batch_size {batch_size}: a batch must have at least 1 text.")
        self.network = PooledEncoder(encoder, pooling, layer, normalize)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.batch_size = batch_size

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, pooling: str = "cls", *, max_length: int = 128, **settings: Any
    ) -> Embedder:
        """Load encoder and tokenizer from a known name or a folder; ``settings`` are those of the class.

        Settings are checked before the weights are loaded.

        Raises:
            WeightsError: a file is missing, damaged or does not fit; or ``pooling="pooler"`` without a trained pooler.
            DataError: see the class.
        """
        folder = hub.resolve(name_or_folder)
        config = read_config(folder)
        check_pooling(pooling, settings.get("layer"), config.num_hidden_layers)
        _check_length(max_length, config.max_length)
        tokenizer = Tokenizer.from_pretrained(folder)
        weights = read_weights(folder)
        if pooling == "pooler" and not any(name.startswith("pooler.") for name in weights.arrays):
            raise WeightsError(f"{folder} has no pooler, and a random one is meaningless; use pooling cls or mean.")
        return cls(encoder_class(config).of(config, weights), tokenizer, pooling, max_length=max_length, **settings)

    @property
    def width(self) -> int:
        """The length of a vector."""
        return int(self.network.encoder.config.hidden_size)

    def __call__(self, texts: Given, pairs: Given | None = None) -> np.ndarray:
        """Return the vectors of texts, or of pairs of texts, in their order: float32 ``[texts, hidden]``.

        Raises:
            DataError: these are not strings, or the numbers of texts and pairs differ.
        """
        texts, pairs = listed(texts), None if pairs is None else listed(pairs)
        if not texts and not pairs:
            return np.empty((0, self.width), np.float32)
        runner = self.onion(texts, pairs)
        runner.run(passes=1)
        return np.stack(runner[Collector].found)

    def onion(self, texts: Given, pairs: Given | None = None) -> Runner:
        """Return the runner that embeds texts; after ``run(passes=1)`` its Collector has a vector for each.

        Logs a warning if most texts have no token.
        """
        examples = Examples.of(self._examples(texts, pairs))
        collate = partial(batch_of, pad_id=self.tokenizer.pad_id)
        return Runner(
            DataProvider(examples, self.batch_size, lengths=examples.lengths, collate=collate),
            Collector(len(examples)),
            Forward(self.network),
        )

    def _examples(self, texts: Given, pairs: Given | None) -> list[Example]:
        examples = examples_of(self.tokenizer(texts, pairs, max_length=self.max_length))
        notes, tally = Counter[str](), Tally(self.tokenizer)
        tally.add(examples)
        tally.note(notes)
        tell_notes("the texts to embed", notes)
        return examples


def check_pooling(pooling: str, layer: int | None, layers: int) -> None:
    """Refuse an unknown pooling, and a layer that an encoder of ``layers`` layers does not have.

    Raises:
        DataError: the message lists the possible values.
    """
    if pooling not in POOLINGS:
        raise DataError(f"pooling {pooling!r}: there is no such pooling; choose one of {', '.join(POOLINGS)}.")
    if layer is None:
        return
    if not 1 <= whole("layer", layer) <= layers:
        raise DataError(f"layer {layer}: the encoder has the layers 1 to {layers}; choose one of them.")
    if pooling == "pooler" and layer != layers:
        raise DataError(f"layer {layer}: the pooler belongs to the last layer, {layers}; use pooling cls or mean.")


def _check_length(max_length: int, positions: int) -> None:
    check_max_length(whole("max_length", max_length), positions, "max_length")
