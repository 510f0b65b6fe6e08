"""ONNX Runtime called in a loop, tokenizer included, without a service: what a service could come to at most.

python -m benchmarks.serving.direct FOLDER < TEXTS    (a JSON list); prints texts a second
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

from onion.models.tokenizer import Tokenizer

WARM_UP = 20


def main(folder: Path) -> float:
    """Return texts a second."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer, texts = Tokenizer.from_pretrained(folder), json.load(sys.stdin)

    def classify(text: str) -> None:
        found = tokenizer([text])[0]
        ids, types = found.ids[None], found.types[None]
        session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types})

    for text in texts[:WARM_UP]:
        classify(text)
    begin = time.perf_counter()
    for text in texts:
        classify(text)
    return len(texts) / (time.perf_counter() - begin)


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
