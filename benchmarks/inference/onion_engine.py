"""Onion, by the objects behind ``onion predict`` and ``onion embed``: computed by Paddle, or by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.inference.work import Engine, Job, head_of
from onion import Forward, Runner, RunnerItem
from onion.device import use_threads
from onion.models.encoder import Encoder
from onion.models.pretrained_encoder import arrays_of
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.export.export_encoder import export_encoder
from onion.tasks.export.exported_network import ExportedForward, ExportedNetwork
from onion.tasks.export.graph import graph_of_task
from onion.tasks.export.onnx_file import onnx_model
from onion.tasks.export.sessions import OnnxSession
from onion.tasks.finetune.predictor import Predictor

LIBRARIES = ("paddlepaddle",)


def ways(job: Job) -> dict[str, Engine]:
    """Compute with the network itself."""
    use_threads()
    task, network, tokenizer = _model(job)
    embed = Embedder(network.encoder, tokenizer, "mean", max_length=job["max_length"])
    return _ways(task, Forward(network), tokenizer, embed)


def onnx_ways(job: Job) -> dict[str, Engine]:
    """Compute as ``onion.load(run, engine="onnx")`` does, and an exported encoder."""
    use_threads()
    task, network, tokenizer = _model(job)
    arrays = arrays_of(network)
    model = onnx_model(graph_of_task(task, network.encoder.config), arrays).SerializeToString()
    item = ExportedForward(ExportedNetwork(task, OnnxSession(model), arrays))
    with TemporaryDirectory() as folder:
        export_encoder(job["folder"], Path(folder) / "encoder", pooling="mean", max_length=job["max_length"])
        embed = Embedder.from_exported(Path(folder) / "encoder")
    return _ways(task, item, tokenizer, embed)


def _model(job: Job) -> tuple[Classification, Any, Tokenizer]:
    weight, bias = head_of(job)
    task = Classification(labels=[f"label {number}" for number in range(len(bias))], max_length=job["max_length"])
    network = task.network(Encoder.from_pretrained(job["folder"]))
    network.classifier.weight.set_value(weight)
    network.classifier.bias.set_value(bias)
    network.eval()
    return task, network, Tokenizer.from_pretrained(job["folder"])


def _ways(task: Classification, item: RunnerItem, tokenizer: Tokenizer, embed: Engine) -> dict[str, Engine]:
    predictor = Predictor(task, Runner(item), tokenizer)

    def classify(texts: Sequence[str]) -> np.ndarray:
        found = predictor(task.text_rows(texts))
        return np.array([list(each["probabilities"].values()) for each in found], np.float32)

    return {
        "classify": classify,
        "embed": embed,
        "tokenise": lambda texts: tokenizer(texts, max_length=task.max_length),
    }
