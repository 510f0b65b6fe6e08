"""Embeddings: one vector per text, from any encoder.

embedder = Embedder.from_pretrained("minilm")
vectors = embedder(["A deep, moving film.", "It rains."])  # float32 [2, 384]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from onion import DataProvider, Runner
from onion.device import paddle
from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.families import read_config
from onion.models.tokenization.pre_tokenizer import Given, listed, whole
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.batches import batch_of
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.data.texts import check_max_length, examples_of, tell_notes
from onion.tasks.embedding.declared import pooling_for
from onion.tasks.embedding.exported_encoder import ExportedEncoder
from onion.tasks.embedding.names import CLS, MAX_LENGTH
from onion.tasks.embedding.pooling import check_pooling
from onion.tasks.export.exported_network import forward_of
from onion.tasks.export.manifest import is_exported

if TYPE_CHECKING:
    from onion.models.pretrained_encoder import PretrainedEncoder
    from onion.tasks.networks.pooled_encoder import PooledEncoder


class Embedder:
    """Converts texts into vectors, by a runner of three items that ``onion`` returns.

    Args:
        encoder: computes the token vectors in evaluation mode; its mode is restored. An exported one pools by itself.
        tokenizer: the encoder's.
        pooling, layer, normalize: see :class:`onion.tasks.networks.pooled_encoder.PooledEncoder`.
        max_length: the maximum number of tokens of a text, including special ones; longer texts are truncated.
        batch_size: texts, of similar length, per batch.

    Raises:
        DataError: the pooling is unknown, the encoder does not support the layer or the length (the message has both
            numbers), or ``batch_size`` is below 1.
    """

    def __init__(
        self,
        encoder: PretrainedEncoder | ExportedEncoder,
        tokenizer: Tokenizer,
        pooling: str = CLS,
        *,
        layer: int | None = None,
        normalize: bool = False,
        max_length: int = MAX_LENGTH,
        batch_size: int = 64,
    ) -> None:
        _check_length(max_length, encoder.config.max_length)
        if whole("batch_size", batch_size) < 1:
            raise DataError(f"batch_size {batch_size}: a batch must have at least 1 text.")
        self.network = _pooled(encoder, pooling, layer, normalize)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.batch_size = batch_size

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path,
        pooling: str | None = None,
        *,
        layer: int | None = None,
        normalize: bool | None = None,
        max_length: int | None = None,
        batch_size: int = 64,
    ) -> Embedder:
        """Load encoder and tokenizer from a known name or a folder.

        Settings are checked before the weights are loaded. An exported encoder has those of its export, and others are
        refused.

        Args:
            name_or_folder: of the encoder.
            pooling: see the class. Default: pooling, normalization and maximum length that the files of
                sentence-transformers in the folder say; without such files, those of the class.
            layer: see the class.
            normalize: see the class. Default: as ``pooling``.
            max_length: see the class. Default: as ``pooling``.
            batch_size: see the class.

        Raises:
            WeightsError: a file is missing, damaged or does not fit; its files of sentence-transformers ask for what
                onion does not compute; or ``pooling="pooler"`` without a trained pooler.
            DataError: see the class.
        """
        folder = hub.resolve(name_or_folder)
        if is_exported(folder):
            asked = bool(normalize)
            return cls.from_exported(
                folder, pooling, layer=layer, normalize=asked, max_length=max_length, batch_size=batch_size
            )
        paddle()  # says how to install it, before modules ask for it
        from onion.models.auto import encoder_class

        config = read_config(folder)
        check_pooling(pooling or CLS, layer, config.num_hidden_layers)
        if max_length is not None:
            _check_length(max_length, config.max_length)
        chosen = pooling_for(folder, pooling, layer=layer, normalize=normalize, max_length=max_length)
        _check_length(chosen.max_length, config.max_length)
        tokenizer = Tokenizer.from_pretrained(folder)
        weights = read_weights(folder)
        if chosen.pooling == "pooler" and not any(name.startswith("pooler.") for name in weights.arrays):
            raise WeightsError(f"{folder} has no pooler, and a random one is meaningless; use pooling cls or mean.")
        return cls(encoder_class(config).of(config, weights), tokenizer, batch_size=batch_size, **attrs.asdict(chosen))

    @classmethod
    def from_exported(
        cls,
        folder: str | Path,
        pooling: str | None = None,
        *,
        layer: int | None = None,
        normalize: bool = False,
        max_length: int | None = None,
        batch_size: int = 64,
        threads: int | None = None,
    ) -> Embedder:
        """Load what ``onion export --encoder`` wrote, which needs no Paddle.

        Args:
            folder: of the export.
            pooling: None, or that of the export.
            layer: None, or that of the export.
            normalize: False, or that of the export.
            max_length: see the class. Default: that of the export.
            batch_size: see the class.
            threads: that ONNX Runtime computes on. Default: as :func:`onion.device.use_threads`.

        Raises:
            CheckpointError: the folder is damaged, or has another model.
            DataError: another pooling was exported.
            OnionError: the engine is not installed.
        """
        encoder = ExportedEncoder.load(Path(folder), threads)
        encoder.check(pooling, layer, normalize)
        length = encoder.exported.max_length if max_length is None else max_length
        return cls(encoder, Tokenizer.from_pretrained(folder), max_length=length, batch_size=batch_size)

    @property
    def width(self) -> int:
        """The length of a vector."""
        network = self.network
        return int((network if isinstance(network, ExportedEncoder) else network.encoder).config.hidden_size)

    @property
    def pooling(self) -> str:
        """How the vector of a text is made, as :class:`onion.tasks.embedding.pooling.Pooling` names it."""
        network = self.network
        return network.exported.pooling if isinstance(network, ExportedEncoder) else network.pooling

    def __call__(self, texts: Given, pairs: Given | None = None) -> np.ndarray:
        """Return the vectors of texts, or of pairs of texts, in their order: float32 ``[texts, hidden]``.

        Raises:
            DataError: these are not strings, or the numbers of texts and pairs differ.
        """
        texts, pairs = listed(texts), None if pairs is None else listed(pairs)
        if not texts and not pairs:
            return np.empty((0, self.width), np.float32)
        return self.of_examples(self._examples(texts, pairs))

    def of_examples(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the vectors of examples of ``onion.tasks.data.texts.examples_of``: float32 ``[examples, hidden]``."""
        if len(examples) == 1 and isinstance(self.network, ExportedEncoder):
            return self.network(batch_of(examples, self.tokenizer.pad_id))  # a loop over one batch would cost a tenth
        runner = self._onion(examples)
        runner.run(passes=1)
        return np.stack(runner[Collector].found)

    def onion(self, texts: Given, pairs: Given | None = None) -> Runner:
        """Return the runner that embeds texts; after ``run(passes=1)`` its Collector has a vector for each.

        Logs a warning if most texts have no token.
        """
        return self._onion(self._examples(texts, pairs))

    def _onion(self, made: Sequence[Example]) -> Runner:
        examples = Examples.of(made)
        collate = partial(batch_of, pad_id=self.tokenizer.pad_id)
        return Runner(
            DataProvider(examples, self.batch_size, lengths=examples.lengths, collate=collate),
            Collector(len(examples)),
            forward_of(self.network),
        )

    def _examples(self, texts: Given, pairs: Given | None) -> list[Example]:
        examples = examples_of(self.tokenizer(texts, pairs, max_length=self.max_length))
        notes, tally = Counter[str](), Tally(self.tokenizer)
        tally.add(examples)
        tally.note(notes)
        tell_notes("the texts to embed", notes)
        return examples


def _pooled(
    encoder: PretrainedEncoder | ExportedEncoder, pooling: str, layer: int | None, normalize: bool
) -> PooledEncoder | ExportedEncoder:
    if isinstance(encoder, ExportedEncoder):
        return encoder
    from onion.tasks.networks.pooled_encoder import PooledEncoder

    return PooledEncoder(encoder, pooling, layer, normalize)


def _check_length(max_length: int, positions: int) -> None:
    check_max_length(whole("max_length", max_length), positions, "max_length")
