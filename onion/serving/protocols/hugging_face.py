"""The protocol of Hugging Face's Inference API: a model's own address, and answers as transformers' pipelines give.

``huggingface_hub.InferenceClient("http://HOST:PORT/NAME")`` speaks it: ``text_classification``, ``fill_mask``,
``token_classification``, ``question_answering``, ``feature_extraction`` and ``sentence_similarity``. Source:
https://huggingface.co/docs/inference-providers, and huggingface_hub 2.4.
"""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from onion.http.messages import reply
from onion.http.refused import Refused
from onion.serving.calls import Calls
from onion.serving.protocols.rows import row_of, texts
from onion.serving.protocols.text_embeddings import scores_of
from onion.serving.servable import VECTORS, Servable
from onion.serving.served_models import ServedModel
from onion.tasks.loading import Given

MASK = "[MASK]"


def hugging_face_routes(calls: Calls, chosen: Callable[[], ServedModel], path: str) -> APIRouter:
    """Return the route of a model's own address.

    Args:
        calls: answers.
        chosen: returns the model.
        path: of the address.
    """
    router = APIRouter(tags=["Hugging Face"])

    @router.post(path)
    async def pipeline(request: Request) -> Response:
        body = await calls.body(request)
        model, inputs = chosen(), body.get("inputs")
        if model.servable.kind == VECTORS and isinstance(inputs, dict):
            return reply(await _similarities(calls, request, model, inputs))
        rows, single = _rows(inputs)
        found = await calls.answer(request, model, rows)
        servable = found.by.servable
        answers = [_answer(servable, row, answer) for row, answer in zip(rows, found.answers, strict=True)]
        nested = servable.kind in NESTED
        return reply(answers[0] if single and not nested else answers)

    return router


NESTED = ("classifier", VECTORS)
"""Kinds whose answer to one text is a list of one."""


def _rows(inputs: Any) -> tuple[list[Given], bool]:
    if isinstance(inputs, list) and inputs:
        return [row_of(each, f"inputs[{number}]") for number, each in enumerate(inputs)], False
    return [row_of(inputs, "inputs")], True


async def _similarities(calls: Calls, request: Request, model: ServedModel, inputs: dict[str, Any]) -> list[float]:
    source, others = inputs.get("source_sentence"), texts(inputs.get("sentences"), "sentences")
    if not isinstance(source, str):
        raise Refused("source_sentence must be a text.", 422)
    found = await calls.answer(request, model, [source, *others])
    vectors = np.stack(found.answers)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    similarities: list[float] = (vectors[1:] @ vectors[0]).tolist()
    return similarities


def _answer(servable: Servable, row: Given, answer: Any) -> Any:
    """Return an answer as transformers' pipeline of the task gives it; of tasks without one, as it is."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if servable.kind == "classifier":
        return scores_of(answer)
    form = FORMS.get(servable.task)
    return answer if form is None else form(row, answer)


def _text(row: Given) -> str:
    text = row["text_a"] if isinstance(row, dict) else row
    return text if isinstance(text, str) else ""


def _spans(row: Given, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans of a text; the score is the mean probability of their words."""
    places = _places(_text(row), answer["tokens"])
    found = []
    for span in answer["spans"]:
        inside = [
            chance
            for (begin, end), chance in zip(places, answer["probabilities"], strict=True)
            if span["begin"] <= begin and end <= span["end"]
        ]
        score = float(np.mean(inside)) if inside else 0.0
        told = {"entity_group": span["type"], "word": span["text"], "start": span["begin"], "end": span["end"]}
        found.append({**told, "score": round(score, 6)})
    return found


def _places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return begin and end of each word in a text, in code points."""
    found, place = [], 0
    for word in words:
        begin = max(text.find(word, place), place)
        place = begin + len(word)
        found.append((begin, place))
    return found


def _masks(row: Given, answer: dict[str, Any]) -> Any:
    """Return the guesses of the only mask; of several masks a list for each."""
    text = _text(row)
    found = [
        [
            {"score": chance, "token": number, "token_str": word, "sequence": text.replace(MASK, str(word), 1)}
            for word, number, chance in zip(mask["words"], mask["word_ids"], mask["probabilities"], strict=True)
        ]
        for mask in answer["masks"]
    ]
    return found[0] if len(found) == 1 else found


def _span_of_context(row: Given, answer: dict[str, Any]) -> dict[str, Any]:
    scores = [each["probability"] for each in answer["nbest"] if each["text"] == answer["answer"]]
    told = {"answer": answer["answer"], "start": answer["begin"], "end": answer["end"]}
    return {**told, "score": scores[0] if scores else 0.0}


FORMS: dict[str, Callable[[Given, dict[str, Any]], Any]] = {
    "token-classification": _spans,
    "masked-lm": _masks,
    "question-answering": _span_of_context,
}
