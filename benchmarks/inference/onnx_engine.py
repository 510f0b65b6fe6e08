"""ONNX Runtime: transformers' BertModel exported by torch; in float32, or with weights and inner values of 8 bits.

The graph is as exported, with the optimisations that a session makes by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, BertModel

from benchmarks.inference.onnx_copy import import_copy
from benchmarks.inference.work import Engine, Job, by_length, head_of, mean_of, probabilities

LIBRARIES = ("onnx", "onnxruntime", "torch", "transformers")
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


class _Outputs(torch.nn.Module):
    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.model(**dict(zip(INPUTS, given, strict=True)))
        return found.last_hidden_state, found.pooler_output


def ways(job: Job) -> dict[str, Engine]:
    """Export the model and open it; ``int8`` in the job asks for 8 bits, ``avx2`` for the copy."""
    if job["avx2"] and "onnxruntime" not in sys.modules:
        import_copy()
    tokenizer = AutoTokenizer.from_pretrained(job["folder"])
    weight, bias = head_of(job)
    with TemporaryDirectory() as folder:
        session = _session(_exported(job["folder"], Path(folder), job["int8"]))

    def tokenise(texts: Sequence[str]) -> dict[str, np.ndarray]:
        given = {"padding": True, "truncation": True, "max_length": job["max_length"], "return_tensors": "np"}
        found = tokenizer(list(texts), **given)
        return {name: np.asarray(found[name], np.int64) for name in INPUTS}

    def classify(texts: Sequence[str]) -> np.ndarray:
        return probabilities(session.run(["pooled"], tokenise(texts))[0] @ weight + bias)

    def embed(texts: Sequence[str]) -> np.ndarray:
        given = tokenise(texts)
        return mean_of(session.run(["tokens"], given)[0], given["attention_mask"])

    return {"classify": by_length(classify), "embed": by_length(embed)}


def _exported(model: str, folder: Path, int8: bool) -> Path:
    path = folder / "model.onnx"
    dimensions = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    example = tuple(torch.ones([2, 8], dtype=torch.int64) for _ in INPUTS)
    network = _Outputs(BertModel.from_pretrained(model, attn_implementation="eager").eval())
    torch.onnx.export(
        network,
        example,
        path,
        input_names=INPUTS,
        output_names=["tokens", "pooled"],
        dynamo=True,
        dynamic_shapes=(tuple(dimensions for _ in INPUTS),),
        external_data=False,
    )
    if not int8:
        return path
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(path, folder / "int8.onnx", weight_type=QuantType.QInt8)
    return folder / "int8.onnx"


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
