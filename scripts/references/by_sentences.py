"""sentence-transformers: the vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer, __version__
from sentence_transformers.sentence_transformer import modules

MAKER = f"sentence-transformers {__version__}"


def mean_vectors(folder: str, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Mean-pooled vectors [texts, hidden] by the weights in a folder: before and after normalisation."""
    word = modules.Transformer(folder)
    pooling = modules.Pooling(word.get_embedding_dimension(), pooling_mode="mean")
    means = SentenceTransformer(modules=[word, pooling], device="cpu").encode(list(texts))
    whole = SentenceTransformer(modules=[word, pooling, modules.Normalize()], device="cpu").encode(list(texts))
    return means, whole
