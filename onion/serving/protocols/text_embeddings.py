"""The protocol of Hugging Face's text-embeddings-inference: ``/embed``, ``/predict``, ``/rerank``, ``/info``.

Source: https://huggingface.github.io/text-embeddings-inference, version 1.8. A service of several models answers at
``/NAME/embed`` and so on too, so that ``http://HOST:PORT/NAME`` is the address of a model for its clients.
"""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from onion import __version__
from onion.http.messages import reply
from onion.http.refused import Refused
from onion.serving.calls import Calls
from onion.serving.protocols.described import COUNT, FLAG, ONE_OR_MORE, SAMPLE, TEXT, TEXTS, body
from onion.serving.protocols.rows import as_json, flag, row_of, texts
from onion.serving.servable import CLASSIFIER, RERANKER, VECTORS, TaskModel
from onion.serving.served_models import ServedModel

NEUTRAL_VALUES = {"raw_scores": (None, False), "truncation_direction": (None, "Right", "right"), "prompt_name": (None,)}
"""Unsupported parameters -> the values that change nothing."""

Chosen = Callable[..., ServedModel]
"""kinds -> the model that answers."""


def text_embeddings_routes(calls: Calls, chosen: Chosen) -> APIRouter:
    """Return the routes.

    Args:
        calls: answers.
        chosen: returns the model for one of several kinds.
    """
    router = APIRouter(tags=["text-embeddings-inference"])

    of_embed = body({"inputs": SAMPLE}, inputs=TEXTS, truncate=FLAG, normalize=FLAG, dimensions=COUNT)

    @router.post("/embed", openapi_extra=of_embed)
    async def embed(request: Request) -> Response:
        asked = _supported(await calls.body(request))
        given = texts(asked.get("inputs"), "inputs")
        model = chosen(VECTORS)
        found = await calls.answer(request, model, given, flag(asked, "truncate", True))
        return reply(vectors_of(found.answers, flag(asked, "normalize", True), asked.get("dimensions")))

    @router.post("/predict", openapi_extra=body({"inputs": SAMPLE}, inputs=ONE_OR_MORE, truncate=FLAG))
    async def predict(request: Request) -> Response:
        asked = _supported(await calls.body(request))
        given, single = _inputs(asked.get("inputs"))
        found = await calls.answer(request, chosen(), given, flag(asked, "truncate", True))
        told = scores_of if found.by.servable.kind == CLASSIFIER else as_json
        answers = [told(each) for each in found.answers]
        return reply(answers[0] if single else answers)

    of_rerank = body({"query": "a film", "texts": [SAMPLE]}, query=TEXT, texts=TEXTS, truncate=FLAG, return_text=FLAG)

    @router.post("/rerank", openapi_extra=of_rerank)
    async def rerank(request: Request) -> Response:
        asked = _supported(await calls.body(request))
        query = asked.get("query")
        if not isinstance(query, str):
            raise Refused("query must be a text.", 422)
        given = texts(asked.get("texts"), "texts")
        pairs = [(query, text) for text in given]
        found = await calls.answer(request, chosen(RERANKER), pairs, flag(asked, "truncate", True))
        return reply(_ranked(found.answers, given, flag(asked, "return_text", False)))

    @router.get("/info")
    async def info() -> Response:
        return reply(_info(chosen(), calls))

    return router


def vectors_of(answers: list[Any], normalize: bool, dimensions: Any = None) -> list[list[float]]:
    """Return vectors as lists, perhaps shortened, perhaps divided by their length.

    Raises:
        Refused: ``dimensions`` is no number of dimensions (422).
    """
    found = np.stack(answers).astype(np.float32)
    if dimensions is not None:
        if type(dimensions) is not int or not 1 <= dimensions <= found.shape[1]:
            raise Refused(f"dimensions must be an integer from 1 to {found.shape[1]}.", 422)
        found = found[:, :dimensions]
    if normalize:
        found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    lists: list[list[float]] = found.tolist()
    return lists


def _supported(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body that asks for nothing that is not supported.

    Raises:
        Refused: it does (422).
    """
    for name, values in NEUTRAL_VALUES.items():
        if body.get(name) not in values:
            raise Refused(f"{name} is not supported; leave it out.", 422)
    return body


def _inputs(inputs: Any) -> tuple[list[Any], bool]:
    """Return rows, and whether there is only one, which is answered alone: a text, a row, or a pair of texts."""
    if isinstance(inputs, (str, dict)):
        return [inputs], True
    if isinstance(inputs, list) and inputs and all(isinstance(each, str) for each in inputs) and len(inputs) <= 2:
        return [row_of(inputs, "inputs")], True
    if isinstance(inputs, list) and inputs:
        return [row_of(each, f"inputs[{number}]") for number, each in enumerate(inputs)], False
    raise Refused("inputs must be a text, a pair of texts, or a list of these.", 422)


def scores_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the labels of a prediction with their scores, the highest first."""
    ordered = sorted(answer["probabilities"].items(), key=lambda each: -each[1])
    return [{"score": score, "label": label} for label, score in ordered]


def _ranked(answers: list[dict[str, Any]], given: list[str], with_texts: bool) -> list[dict[str, Any]]:
    order = sorted(range(len(given)), key=lambda place: -answers[place]["score"])
    return [
        {"index": place, "score": answers[place]["score"], **({"text": given[place]} if with_texts else {})}
        for place in order
    ]


def _info(model: ServedModel, calls: Calls) -> dict[str, Any]:
    servable = model.servable
    return {
        "model_id": model.name,
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": _type_of(servable),
        "max_concurrent_requests": calls.limits.connections,
        "max_input_length": servable.max_length,
        "max_batch_tokens": max(calls.limits.batch_tokens, servable.max_length),
        "max_batch_requests": None,
        "max_client_batch_size": calls.limits.texts_of_a_call,
        "auto_truncate": True,
        "tokenization_workers": 1,
        "version": __version__,
    }


def _type_of(servable: Any) -> dict[str, Any]:
    if servable.kind == VECTORS:
        return {"embedding": {"pooling": servable.pooling}}
    labels = list(getattr(servable.of, "labels", ())) if isinstance(servable, TaskModel) else []
    names = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    return {("reranker" if servable.kind == RERANKER else "classifier"): names}
