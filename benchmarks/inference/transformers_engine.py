"""transformers on torch, and sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, BertModel

from benchmarks.inference.work import BATCH, Engine, Job, by_length, head_of, in_order, mean_of, probabilities

LIBRARIES = ("torch", "transformers", "sentence-transformers")


def ways(job: Job) -> dict[str, Engine]:
    """BertModel in evaluation mode, its fast tokenizer, padding to the longest of a batch; both orders of texts."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    tokenizer = AutoTokenizer.from_pretrained(job["folder"])
    model = BertModel.from_pretrained(job["folder"]).eval()
    weight, bias = head_of(job)

    def tokenise(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        given = {"padding": True, "truncation": True, "max_length": job["max_length"], "return_tensors": "pt"}
        return dict(tokenizer(list(texts), **given))

    def classify(texts: Sequence[str]) -> np.ndarray:
        with torch.inference_mode():
            return probabilities(model(**tokenise(texts)).pooler_output.numpy() @ weight + bias)

    def embed(texts: Sequence[str]) -> np.ndarray:
        given = tokenise(texts)
        with torch.inference_mode():
            return mean_of(model(**given).last_hidden_state.numpy(), given["attention_mask"].numpy())

    def tokenise_all(texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH):
            tokenise(texts[start : start + BATCH])

    return {
        "classify": by_length(classify),
        "embed": by_length(embed),
        "classify in order": in_order(classify),
        "embed in order": in_order(embed),
        "tokenise": tokenise_all,
    }


def sentence_ways(job: Job) -> dict[str, Engine]:
    """sentence-transformers with mean pooling: ``encode``, which sorts texts by length itself."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    words = Transformer(job["folder"], max_seq_length=job["max_length"])
    model = SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension(), "mean")], device="cpu")

    def embed(texts: Sequence[str]) -> Any:
        return model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)

    return {"embed": embed}
