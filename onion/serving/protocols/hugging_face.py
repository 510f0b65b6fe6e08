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
from onion.messages import listed, shown
from onion.serving.calls import Calls
from onion.serving.protocols.described import OBJECT, ONE_OR_MORE, SAMPLE, body
from onion.serving.protocols.rows import flag, row_of, texts
from onion.serving.protocols.text_embeddings import scores_of, vectors_of
from onion.serving.servable import CLASSIFIER, VECTORS, Servable, TaskModel
from onion.serving.served_models import ServedModel
from onion.tasks.loading import Given, texts_of
from onion.tasks.token_classification.tagged_text import JOINT

MASKED_LM = "masked-lm"

OF_VECTORS = ("normalize", "truncate", "dimensions", "prompt_name", "truncation_direction")
"""Parameters of feature extraction, which its clients send beside the inputs."""

AS_IT_IS = {"aggregation_strategy": "simple", "truncation_direction": "right"}
"""Parameters that may be given where they ask for what is done anyway."""


def hugging_face_routes(calls: Calls, chosen: Callable[[], ServedModel], path: str) -> APIRouter:
    """Return the route of a model's own address.

    Args:
        calls: answers.
        chosen: returns the model.
        path: of the address.
    """
    router = APIRouter(tags=["Hugging Face"])

    @router.post(path, openapi_extra=body({"inputs": SAMPLE}, inputs=ONE_OR_MORE, parameters=OBJECT))
    async def pipeline(request: Request) -> Response:
        asked = await calls.body(request)
        model, inputs = chosen(), asked.get("inputs")
        if model.servable.kind == VECTORS and isinstance(inputs, dict):
            parameters = _parameters(asked, model.servable, ("truncate",))
            return reply(await _similarities(calls, request, model, inputs, flag(parameters, "truncate", True)))
        parameters = _parameters(asked, model.servable, _known(model.servable))
        rows, single = _rows(inputs)
        most = _most(parameters)
        found = await calls.answer(request, model, rows, flag(parameters, "truncate", True))
        servable = found.by.servable
        if servable.kind == VECTORS:
            dimensions = parameters.get("dimensions")
            return reply(vectors_of(found.answers, flag(parameters, "normalize", False), dimensions))
        answers = [_answer(servable, row, answer) for row, answer in zip(rows, found.answers, strict=True)]
        if most is not None:
            answers = [_best(answer, most) for answer in answers]
        return reply(answers[0] if single and servable.kind != CLASSIFIER else answers)

    return router


def _known(servable: Servable) -> Sequence[str]:
    """Return the parameters that a model's pipeline has."""
    if servable.kind == VECTORS:
        return OF_VECTORS[:3]
    return ("top_k",) if servable.kind == CLASSIFIER or servable.task == MASKED_LM else ()


def _parameters(body: dict[str, Any], servable: Servable, known: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a call that are given.

    Raises:
        Refused: one would be ignored (422).
    """
    given = {} if body.get("parameters") is None else body["parameters"]
    if not isinstance(given, dict):
        raise Refused("parameters must be an object.", 422)
    if servable.kind == VECTORS:
        given = {**given, **{name: body[name] for name in OF_VECTORS if name in body}}
    given = {name: value for name, value in given.items() if value is not None and value != AS_IT_IS.get(name)}
    for name in given:
        if name not in known:
            there = f"there are {listed(known)}" if known else "there are none"
            raise Refused(f"This model has no parameter {shown(name)}; {there}.", 422)
    return given


def _most(parameters: dict[str, Any]) -> int | None:
    """Return how many answers are asked for; None: all."""
    most = parameters.get("top_k")
    if most is not None and (type(most) is not int or most < 1):
        raise Refused("top_k must be an integer from 1.", 422)
    return most


def _best(answer: list[Any], most: int) -> list[Any]:
    """Return the first answers, which are the best ones; where there are several masks, of each."""
    return [_best(each, most) for each in answer] if answer and isinstance(answer[0], list) else answer[:most]


def _rows(inputs: Any) -> tuple[list[Given], bool]:
    if isinstance(inputs, list) and inputs:
        return [row_of(each, f"inputs[{number}]") for number, each in enumerate(inputs)], False
    return [row_of(inputs, "inputs")], True


async def _similarities(
    calls: Calls, request: Request, model: ServedModel, inputs: dict[str, Any], truncate: bool
) -> list[float]:
    source, others = inputs.get("source_sentence"), texts(inputs.get("sentences"), "sentences")
    if not isinstance(source, str):
        raise Refused("source_sentence must be a text.", 422)
    found = await calls.answer(request, model, [source, *others], truncate)
    vectors = np.stack(found.answers)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    similarities: list[float] = (vectors[1:] @ vectors[0]).tolist()
    return similarities


def _answer(servable: Servable, row: Given, answer: Any) -> Any:
    """Return an answer as transformers' pipeline of the task gives it; of tasks without one, as it is."""
    if servable.kind == CLASSIFIER:
        return scores_of(answer)
    form = FORMS.get(servable.task)
    return form(servable, row, answer) if form is not None and isinstance(servable, TaskModel) else answer


def _text(row: Given) -> str:
    text = row["text_a"] if isinstance(row, dict) else row
    return text if isinstance(text, str) else ""


def _spans(servable: TaskModel, row: Given, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans of a text; the score is the mean probability of their words."""
    text = _text(row)
    if not text or JOINT in text:  # words were given, in which spans are counted as if they were joined
        text = ("" if getattr(servable.of, "characters", False) else " ").join(answer["tokens"])
    places = _places(text, answer["tokens"])
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


def _masks(servable: TaskModel, row: Given, answer: dict[str, Any]) -> Any:
    """Return the guesses of the only mask; of several masks a list for each."""
    mask = str(servable.tokenizer.tokens([servable.tokenizer.mask_id])[0])
    first, second = texts_of(row)
    parts = (first if second is None else f"{first} {second}").split(mask)
    if second is not None and len(answer["masks"]) < len(parts) - 1:  # it is not told which of them are left
        raise Refused(f"The pair would be cut, and a {mask} with it; shorten it.", 413)
    found = [
        [
            {
                "score": chance,
                "token": token,
                "token_str": word,
                "sequence": f"{mask.join(parts[: number + 1])}{word}{mask.join(parts[number + 1 :])}",
            }
            for word, token, chance in zip(each["words"], each["word_ids"], each["probabilities"], strict=True)
        ]
        for number, each in enumerate(answer["masks"])
    ]
    return found[0] if len(found) == 1 else found


def _span_of_context(servable: TaskModel, row: Given, answer: dict[str, Any]) -> dict[str, Any]:
    scores = [each["probability"] for each in answer["nbest"] if each["text"] == answer["answer"]]
    told = {"answer": answer["answer"], "start": answer["begin"], "end": answer["end"]}
    return {**told, "score": scores[0] if scores else 0.0}


FORMS: dict[str, Callable[[TaskModel, Given, dict[str, Any]], Any]] = {
    "token-classification": _spans,
    MASKED_LM: _masks,
    "question-answering": _span_of_context,
}
