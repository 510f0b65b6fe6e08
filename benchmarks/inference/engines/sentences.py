"""sentence-transformers: ``encode``, which sorts texts by length itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer

from benchmarks.inference.work import BATCH, HookIterator, Job

LIBRARIES = ("torch", "sentence-transformers")


def ways(job: Job) -> dict[str, HookIterator]:
    """Load the model with mean pooling."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    words = Transformer(job["folder"], max_seq_length=job["max_length"])
    model = SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension(), "mean")], device="cpu")

    def embed(texts: Sequence[str]) -> Any:
        return model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)

    return {"embed": embed}
