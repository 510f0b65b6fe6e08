"""Embeddings: one vector for each text, from any encoder.

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
from onion.models.tokenization.validation import Given, listed, whole
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.batches import arguments, batch_of
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.data.texts import check_max_length, examples_of, tell_notes

POOLINGS = ("cls", "mean", "pooler")


class PooledEncoder(nn.Layer):
    """An encoder whose token vectors are made one vector a text.

    * ``cls``: the vector of the token that stands for the text: the first, and the last in XLNet.
    * ``mean``: the mean of the vectors of all tokens, ``[CLS]`` and ``[SEP]`` among them and padding not (as in
      Sentence-BERT, Reimers and Gurevych 2019, section 3).
    * ``pooler``: the encoder's own pooled output, which is a tanh of a linear layer over that token.

    Args:
        encoder: its parameters are shared, not copied.
        pooling: one of ``POOLINGS``.
        layer: whose vectors are taken, from 1; the layers above it are not computed. Default: the last one.
        normalize: divide each vector by its length (Euclidean norm).
        tokens: give the token vectors too.

    Raises:
        DataError: an unknown pooling, or a layer that the encoder does not have.
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
        """Return the vectors of a batch as ``onion.tasks.batches.batch_of`` makes it.

        Returns:
            float32 ``[batch, hidden]``; with ``tokens`` also the vectors of all tokens, row by row and without
            padding, as the layer gave them: float32 ``[tokens, hidden]``.
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
    """Texts -> vectors, by an onion of three rings that ``onion`` gives.

    Args:
        encoder: gives the vectors of tokens; it computes in evaluation mode and is left in the mode it had.
        tokenizer: the encoder's.
        pooling, layer, normalize: see :class:`PooledEncoder`.
        max_length: tokens a text may have, special ones included; of longer ones the rest is cut off.
        batch_size: texts, of similar length, that are computed at once.

    Raises:
        DataError: an unknown pooling, a layer or a length that the encoder does not have (the message names both), or a
            batch of no texts.
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
            raise DataError(f"batch_size {batch_size}: a batch has 1 text or more.")
        self.network = PooledEncoder(encoder, pooling, layer, normalize)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.batch_size = batch_size

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | Path, pooling: str = "cls", *, max_length: int = 128, **settings: Any
    ) -> Embedder:
        """Load the encoder and the tokenizer of a named model or a folder; ``settings`` are those of the class.

        What does not fit is said before the weights are loaded.

        Raises:
            WeightsError: something is missing, damaged or does not fit; or ``pooling="pooler"`` where no pooler is.
            DataError: see the class.
        """
        folder = hub.resolve(name_or_folder)
        config = read_config(folder)
        check_pooling(pooling, settings.get("layer"), config.num_hidden_layers)
        _check_length(max_length, config.max_length)
        tokenizer = Tokenizer.from_pretrained(folder)
        weights = read_weights(folder)
        if pooling == "pooler" and not any(name.startswith("pooler.") for name in weights.arrays):
            raise WeightsError(f"{folder} holds no pooler, and a random one says nothing; take pooling cls or mean.")
        return cls(encoder_class(config).of(config, weights), tokenizer, pooling, max_length=max_length, **settings)

    @property
    def width(self) -> int:
        """The length of a vector."""
        return int(self.network.encoder.config.hidden_size)

    def __call__(self, texts: Given, pairs: Given | None = None) -> np.ndarray:
        """Return the vectors of texts, or of pairs of texts, in their order: float32 ``[texts, hidden]``.

        Raises:
            DataError: these are no strings, or not as many texts as pairs.
        """
        texts, pairs = listed(texts), None if pairs is None else listed(pairs)
        if not texts and not pairs:
            return np.empty((0, self.width), np.float32)
        runner = self.onion(texts, pairs)
        runner.run(passes=1)
        return np.stack(runner[Collector].found)

    def onion(self, texts: Given, pairs: Given | None = None) -> Runner:
        """Return the onion that embeds texts; after ``run(passes=1)`` its Collector holds a vector for each.

        Where most texts have no token of their own, a warning says so.
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
    """Refuse a pooling that does not exist, and a layer that an encoder of so many layers does not have.

    Raises:
        DataError: the message names what there is.
    """
    if pooling not in POOLINGS:
        raise DataError(f"pooling {pooling!r}: there is no such pooling; choose one of {', '.join(POOLINGS)}.")
    if layer is None:
        return
    if not 1 <= whole("layer", layer) <= layers:
        raise DataError(f"layer {layer}: the encoder has the layers 1 to {layers}; choose one of them.")
    if pooling == "pooler" and layer != layers:
        raise DataError(f"layer {layer}: the pooler stands over the last layer, {layers}; take pooling cls or mean.")


def _check_length(max_length: int, positions: int) -> None:
    check_max_length(whole("max_length", max_length), positions, "max_length")
