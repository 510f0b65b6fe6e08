"""Rows in the bodies of calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from onion.http.refused import Refused
from onion.serving.servable import Servable, TaskModel
from onion.tasks.loading import Given
from onion.tasks.question_answering.task import QuestionAnswering


def input_names(servable: Servable) -> list[str]:
    """Return the columns that a model reads."""
    if not isinstance(servable, TaskModel):
        return ["text_a"]
    if isinstance(servable.of, QuestionAnswering):
        return ["question", "context"]
    return ["text_a", "text_b"] if getattr(servable.of, "pairs", False) else ["text_a"]


def row_of(value: Any, place: str) -> Given:
    """Return a text, a pair (a list of two texts) or a row (an object) as a model takes it.

    Raises:
        Refused: it is none of them (422).
    """
    if isinstance(value, (str, dict)):
        return value
    if isinstance(value, list) and 1 <= len(value) <= 2 and all(isinstance(each, str) for each in value):
        return tuple(value) if len(value) == 2 else value[0]
    raise Refused(f"{place} must be a text, a list of two texts or an object.", 422)


def as_json(answer: Any) -> Any:
    """Return an answer as ``onion predict`` and ``onion embed`` write it: the vector of an encoder as ``cls_emb``."""
    return {"cls_emb": answer.tolist()} if isinstance(answer, np.ndarray) else answer


def flag(body: dict[str, Any], name: str, default: bool) -> bool:
    """Return a flag of a body.

    Raises:
        Refused: it is neither true nor false (422).
    """
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Refused(f"{name} must be true or false.", 422)
    return value


def texts(value: Any, name: str) -> list[str]:
    """Return a text or a list of texts as a list.

    Raises:
        Refused: it is none, or empty (422).
    """
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise Refused(f"{name} must be a text or a list of texts.", 422)
    return found
