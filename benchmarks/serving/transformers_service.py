"""transformers behind FastAPI, as its documentation has it: a pipeline, and a route that Starlette runs in a thread.

python transformers_service.py FOLDER PORT
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from transformers import pipeline

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
classify = pipeline("text-classification", model=sys.argv[1], tokenizer=sys.argv[1])
app = FastAPI()


@app.get("/health")
def health() -> dict[str, str]:
    return {}


@app.post("/predict")
def predict(body: dict[str, Any]) -> Any:
    return classify(body["inputs"], top_k=None)


uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
