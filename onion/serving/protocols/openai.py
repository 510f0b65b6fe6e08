"""OpenAI's protocol for vectors: ``/v1/embeddings`` and ``/v1/models``.

Source: https://platform.openai.com/docs/api-reference/embeddings.
"""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
import base64
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from onion.http.messages import reply
from onion.http.refused import Refused
from onion.serving.calls import Calls
from onion.serving.protocols.rows import texts
from onion.serving.protocols.text_embeddings import vectors_of
from onion.serving.servable import VECTORS


def openai_routes(calls: Calls) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.post("/embeddings")
    async def embeddings(request: Request) -> Response:
        body = await calls.body(request)
        given = texts(body.get("input"), "input")
        form = body.get("encoding_format", "float")
        if form not in ("float", "base64"):
            raise Refused("encoding_format must be float or base64.", 422)
        if not isinstance(body.get("model", ""), str):
            raise Refused("model must be the name of a model.", 422)
        model = calls.models[body["model"]] if "model" in body else calls.models.first(VECTORS)
        if model.servable.kind != VECTORS:
            raise Refused(f"The model {model.name} gives no vectors.", 422)
        found = await calls.answer(request, model, given)
        vectors = vectors_of(found.answers, False, body.get("dimensions"))
        usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
        data = [_entry(number, vector, form) for number, vector in enumerate(vectors)]
        return reply({"object": "list", "data": data, "model": model.name, "usage": usage})

    @router.get("/models")
    async def models() -> Response:
        data = [_model(model.name) for model in calls.models.all]
        return reply({"object": "list", "data": data})

    @router.get("/models/{name}")
    async def model(name: str) -> Response:
        return reply(_model(calls.models[name].name))

    return router


def _entry(number: int, vector: list[float], form: str) -> dict[str, Any]:
    told: Any = vector
    if form == "base64":
        told = base64.b64encode(np.array(vector, "<f4").tobytes()).decode()
    return {"object": "embedding", "index": number, "embedding": told}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "onion"}
