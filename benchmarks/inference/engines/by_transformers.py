"""transformers on torch: BertModel in evaluation mode, its fast tokenizer, padding to the longest of a batch."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from transformers import AutoTokenizer, BertModel

from benchmarks.inference.work import HookIterator, Job, by_length, head_of, in_order, mean_of, probabilities

LIBRARIES = ("torch", "transformers")


def ways(job: Job) -> dict[str, HookIterator]:
    """Load the model once; both orders of texts."""
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
        for start in range(0, len(texts), 64):
            tokenise(texts[start : start + 64])

    return {
        "classify": by_length(classify),
        "embed": by_length(embed),
        "classify in order": in_order(classify),
        "embed in order": in_order(embed),
        "tokenise": tokenise_all,
    }
