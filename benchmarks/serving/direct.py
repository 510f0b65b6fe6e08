"""ONNX Runtime called in a loop without a service, and what its matrix products alone would allow.

python -m benchmarks.serving.direct FOLDER < TEXTS    (a JSON list); prints a line of JSON: texts a second of each
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from onion.models.tokenizer import Tokenizer

WARM_UP = 20


PRODUCTS = ("MatMul", "Gemm", "Attention")
"""Parts of the names of the operations that multiply matrices, fused ones too."""


def main(folder: Path, texts: Sequence[str]) -> dict[str, float]:
    """Return texts a second: of a ``loop``, tokenizer included; and by the time of the ``products`` of another one."""
    plain, profiled = _session(folder), _session(folder, profiled=True)
    tokenizer = Tokenizer.from_pretrained(folder)
    _classify(plain, tokenizer, texts[:WARM_UP])
    begin = time.perf_counter()
    _classify(plain, tokenizer, texts)
    loop = time.perf_counter() - begin
    _classify(profiled, tokenizer, texts)
    return {"loop": len(texts) / loop, "products": len(texts) / _seconds_of_products(Path(profiled.end_profiling()))}


def _session(folder: Path, profiled: bool = False) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.profile_file_prefix = str(folder / "profile")
    options.enable_profiling = profiled
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def _classify(session: Any, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    for text in texts:
        found = tokenizer([text])[0]
        ids, types = found.ids[None], found.types[None]
        session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types})


def _seconds_of_products(profile: Path) -> float:
    """Return the time of all matrix products of a profile, which is removed: a model's folder has to be as it was."""
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    nodes = [each for each in events if each.get("cat") == "Node" and each["name"].endswith("_kernel_time")]
    return sum(each["dur"] for each in nodes if any(part in each["args"]["op_name"] for part in PRODUCTS)) / 1e6


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.load(sys.stdin))))
