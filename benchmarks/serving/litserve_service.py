"""transformers behind LitServe, with its batches: up to 16 calls that arrive within 10 ms, as its documentation has it.

python litserve_service.py FOLDER PORT
"""

# No ``from __future__ import annotations``: LitServe reads the annotations, and a dict is any JSON object.
import os
import sys
from typing import Any

import litserve
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Classes(litserve.LitAPI):
    """The model and its tokenizer."""

    def setup(self, device: str) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
        self.model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()

    def decode_request(self, request: dict) -> str:  # type: ignore[type-arg]
        return str(request["inputs"])

    def predict(self, texts: list[str]) -> Any:
        with torch.inference_mode():
            given = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
            return self.model(**given).logits.softmax(-1).tolist()

    def encode_response(self, scores: list[float]) -> Any:
        return [{"label": str(place), "score": score} for place, score in enumerate(scores)]


if __name__ == "__main__":
    api = Classes(max_batch_size=16, batch_timeout=0.01)
    litserve.LitServer(api, accelerator="cpu", healthcheck_path="/health").run(
        port=int(sys.argv[2]), log_level="error", generate_client_file=False
    )
