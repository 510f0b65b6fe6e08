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
from onion.serving.protocols.described import COUNT, SAMPLE, TEXT, TEXTS, body
from onion.serving.protocols.rows import texts
from onion.serving.protocols.text_embeddings import vectors_of
from onion.serving.servable import VECTORS

FORMS = "float", "base64"

BODY = body({"input": [SAMPLE]}, input=TEXTS, model=TEXT, encoding_format={"enum": FORMS}, dimensions=COUNT)


def openai_routes(calls: Calls) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.post("/embeddings", openapi_extra=BODY)
    async def embeddings(request: Request) -> Response:
        asked = await calls.body(request)
        given = texts(asked.get("input"), "input")
        form = asked.get("encoding_format", "float")
        if form not in FORMS:
            raise Refused(f"encoding_format must be {' or '.join(FORMS)}.", 422)
        if not isinstance(asked.get("model", ""), str):
            raise Refused("model must be the name of a model.", 422)
        model = calls.models[asked["model"]] if "model" in asked else calls.models.first(VECTORS)
        if model.servable.kind != VECTORS:
            raise Refused(f"The model {model.name} gives no vectors.", 422)
        found = await calls.answer(request, model, given)
        dimensions = asked.get("dimensions")
        vectors = vectors_of(found.answers, dimensions is not None, dimensions)  # shortened ones have length 1 again
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
