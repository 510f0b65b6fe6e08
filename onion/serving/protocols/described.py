"""The bodies of calls as OpenAPI describes them; the routes read bodies on their own, so FastAPI does not know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 1}
OBJECT = {"type": "object"}
TEXTS = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
PAIR = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
ROW = {"anyOf": [TEXT, PAIR, OBJECT]}
"""A text, a pair of texts, or an object with the columns of a file."""

ROWS = {"type": "array", "items": ROW, "minItems": 1}
ONE_OR_MORE = {"anyOf": [ROW, ROWS]}

SAMPLE = "a gripping film"


def body(example: Mapping[str, Any], **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what FastAPI adds to the description of a route, as its ``openapi_extra``.

    Args:
        example: of a body, with all that is required.
        properties: JSON schemas of all that a body may have.
    """
    schema = {"type": "object", "required": list(example), "properties": properties}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}
