"""Onion, by the objects behind ``onion predict`` and ``onion embed``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.inference.work import Engine, Job, head_of
from onion import Forward, Runner
from onion.device import use_threads
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.finetune.predictor import Predictor

LIBRARIES = ("paddlepaddle",)


def ways(job: Job) -> dict[str, Engine]:
    use_threads()
    weight, bias = head_of(job)
    task = Classification(labels=[f"label {number}" for number in range(len(bias))], max_length=job["max_length"])
    encoder, tokenizer = Encoder.from_pretrained(job["folder"]), Tokenizer.from_pretrained(job["folder"])
    network = task.network(encoder)
    network.classifier.weight.set_value(weight)
    network.classifier.bias.set_value(bias)
    network.eval()
    predictor = Predictor(task, Runner(Forward(network)), tokenizer)

    def classify(texts: Sequence[str]) -> np.ndarray:
        found = predictor(task.text_rows(texts))
        return np.array([list(each["probabilities"].values()) for each in found], np.float32)

    return {
        "classify": classify,
        "embed": Embedder(encoder, tokenizer, "mean", max_length=job["max_length"]),
        "tokenise": lambda texts: tokenizer(texts, max_length=job["max_length"]),
    }
