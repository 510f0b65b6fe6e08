"""The Open Inference Protocol, version 2, over REST: texts as BYTES.

Source: https://github.com/kserve/open-inference-protocol. Inputs and outputs may be JSON or, as Triton's clients send
and ask for them, binary behind the JSON (https://github.com/triton-inference-server/server,
``protocol/extension_binary_data.md``).
"""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
import json
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from onion import __version__
from onion.http.messages import JsonError, loads, read_body, reply
from onion.http.refused import Refused
from onion.messages import shown
from onion.serving.calls import Calls
from onion.serving.protocols.described import OBJECT, SAMPLE, TEXT, body
from onion.serving.protocols.rows import input_names
from onion.serving.protocols.tensors import Output, written
from onion.serving.servable import CLASSIFIER, VECTORS, Servable
from onion.serving.served_models import Loaded, ServedModel, ServedModels

JSON_LENGTH = "inference-header-content-length"
"""The header with the number of bytes of the JSON, behind which binary inputs follow."""


TENSORS = {"type": "array", "items": OBJECT}

BODY = body(
    {"inputs": [{"name": "text_a", "shape": [1], "datatype": "BYTES", "data": [SAMPLE]}]},
    inputs=TENSORS,
    outputs=TENSORS,
    parameters=OBJECT,
    id=TEXT,
)


def open_inference_routes(calls: Calls, ready: Any) -> APIRouter:
    """Return the routes; ``ready`` returns whether calls are taken."""
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    @router.get("")
    async def server() -> Response:
        return reply({"name": "onion", "version": __version__, "extensions": ["binary_tensor_data"]})

    @router.get("/health/live")
    async def live() -> Response:
        return reply({"live": True})

    @router.get("/health/ready")
    async def is_ready() -> Response:
        return reply({"ready": ready()}, 200 if ready() else 503)

    @router.get("/models/{name}")
    @router.get("/models/{name}/versions/{version}")
    async def metadata(name: str, version: str | None = None) -> Response:
        return reply(_metadata(_chosen(calls.models, name, version)))

    @router.get("/models/{name}/ready")
    @router.get("/models/{name}/versions/{version}/ready")
    async def model_ready(name: str, version: str | None = None) -> Response:
        model = _chosen(calls.models, name, version)
        return reply({"name": model.name, "ready": ready()}, 200 if ready() else 503)

    @router.post("/models/{name}/infer", openapi_extra=BODY)
    @router.post("/models/{name}/versions/{version}/infer", openapi_extra=BODY)
    async def infer(name: str, request: Request, version: str | None = None) -> Response:
        model = _chosen(calls.models, name, version)
        asked, binary = await _read(request, calls.limits.body)
        columns = _columns(asked, binary, input_names(model.servable))
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        found = await calls.answer(request, model, [_row(each) for each in rows])
        _check_version(name, version, found.by)  # it may have been exchanged while the body arrived
        answer = {"model_name": model.name, "model_version": str(found.by.version)}
        given = {"id": asked["id"]} if "id" in asked else {}
        content, length = written({**given, **answer}, _asked(asked, _outputs(found.by.servable, found.answers)))
        if length is None:
            return Response(content, media_type="application/json")
        return Response(content, media_type="application/octet-stream", headers={JSON_LENGTH: str(length)})

    return router


def _chosen(models: ServedModels, name: str, version: str | None) -> ServedModel:
    """Return a model, if the version that a call names is the one that answers now.

    Raises:
        Refused: there is no such model, or no longer this version of it (404).
    """
    model = models[name]
    _check_version(name, version, model.now)
    return model


def _check_version(name: str, version: str | None, loaded: Loaded) -> None:
    if version not in (None, str(loaded.version)):
        raise Refused(f"{name} has the version {loaded.version} only, not {shown(version)}.", 404)


def _metadata(model: ServedModel) -> dict[str, Any]:
    loaded, outputs = model.now, [("prediction", "BYTES", [-1])]
    if loaded.servable.kind == VECTORS:
        outputs = [("embedding", "FP32", [-1, getattr(loaded.servable, "width", -1)])]
    elif loaded.servable.kind == CLASSIFIER:
        outputs += [("label", "BYTES", [-1]), ("probabilities", "FP32", [-1, -1])]
    inputs = [(name, "BYTES", [-1]) for name in input_names(loaded.servable)]
    tell = [{"name": name, "datatype": kind, "shape": shape} for name, kind, shape in inputs]
    give = [{"name": name, "datatype": kind, "shape": shape} for name, kind, shape in outputs]
    return {"name": model.name, "versions": [str(loaded.version)], "platform": "onion", "inputs": tell, "outputs": give}


async def _read(request: Request, limit: int) -> tuple[dict[str, Any], bytes]:
    """Return the JSON of a call and the bytes behind it."""
    content = await read_body(request, limit)
    told = request.headers.get(JSON_LENGTH, str(len(content)))
    length = int(told) if told.isdecimal() and len(told) < 12 else -1
    if not 0 <= length <= len(content):
        raise Refused(f"{JSON_LENGTH} must be a number of bytes of the body.", 400)
    try:
        body = loads(content[:length])
    except JsonError as error:
        raise Refused(f"The body: {error}.") from None
    if not isinstance(body, dict) or not isinstance(body.get("inputs"), list):
        raise Refused('The body must be an object with "inputs", a list of tensors.')
    outputs = body.get("outputs", [])
    if not isinstance(outputs, list) or not all(_has_name(each) for each in outputs):
        raise Refused('"outputs" must be a list of objects, each with the name of an output.')
    return body, content[length:]


def _has_name(output: Any) -> bool:
    return isinstance(output, dict) and isinstance(output.get("name"), str)


def _columns(body: dict[str, Any], binary: bytes, names: list[str]) -> dict[str, list[str]]:
    """Return the texts of each input; one input alone may have any name."""
    inputs, found = body["inputs"], {}
    for number, each in enumerate(inputs):
        if not isinstance(each, dict) or each.get("datatype") != "BYTES":
            raise Refused(f"inputs[{number}] must be a tensor of the datatype BYTES.", 422)
        data, binary = _data(each, binary, number)
        name = names[0] if len(inputs) == len(names) == 1 else str(each.get("name"))
        if name in found:
            raise Refused(f"inputs[{number}] has the name of another input.", 422)
        found[name] = data
    if set(found) != set(names):
        raise Refused(f"This model reads the inputs {', '.join(names)}.", 422)
    if len({len(data) for data in found.values()}) != 1 or not next(iter(found.values())):
        raise Refused("All inputs must have the same number of texts, at least one.", 422)
    return found


def _data(tensor: dict[str, Any], binary: bytes, number: int) -> tuple[list[str], bytes]:
    """Return the texts of a tensor, and the bytes that are left for the others."""
    parameters = {} if tensor.get("parameters") is None else tensor["parameters"]
    if not isinstance(parameters, dict):
        raise Refused(f"parameters of inputs[{number}] must be an object.", 422)
    size = parameters.get("binary_data_size") if "data" not in tensor else None
    if type(size) is int and 0 <= size <= len(binary):
        return _unpacked(binary[:size], number), binary[size:]
    data = tensor.get("data")
    flat = (
        [text for row in data for text in (row if isinstance(row, list) else [row])] if isinstance(data, list) else []
    )
    if not flat or not all(isinstance(text, str) for text in flat):
        raise Refused(f"inputs[{number}] must have data, a list of texts.", 422)
    return flat, binary


def _unpacked(content: bytes, number: int) -> list[str]:
    """Return texts that stand behind their lengths, four bytes each."""
    found, place = [], 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 4], "little")
        part = content[place + 4 : place + 4 + length]
        if len(part) < length or place + 4 > len(content):
            raise Refused(f"inputs[{number}] ends within a text.", 422)
        try:
            found.append(part.decode())
        except UnicodeDecodeError:
            raise Refused(f"inputs[{number}] has a text that is not UTF-8.", 422) from None
        place += 4 + length
    return found


def _row(cells: dict[str, str]) -> Any:
    return cells["text_a"] if list(cells) == ["text_a"] else cells


def _outputs(servable: Servable, answers: list[Any]) -> list[Output]:
    if servable.kind == VECTORS:
        return [Output("embedding", np.stack(answers))]
    outputs = [Output("prediction", [json.dumps(each, ensure_ascii=False) for each in answers])]
    if servable.kind == CLASSIFIER:
        outputs.append(Output("label", [_label(each) for each in answers]))
        outputs.append(Output("probabilities", np.array([[*each["probabilities"].values()] for each in answers])))
    return outputs


def _asked(body: dict[str, Any], outputs: list[Output]) -> list[Output]:
    """Return the outputs that a call asks for, by default all, each in the form in which it wants it."""
    every = _switch(body, "binary_data_output", False)
    wanted = {each["name"]: _switch(each, "binary_data", every) for each in body.get("outputs", ())}
    there = {each.name: each for each in outputs}
    for name in wanted:
        if name not in there:
            raise Refused(f"This model has no output {shown(name)}; it has {', '.join(there)}.")
    return [
        Output(name, each.values, wanted.get(name, every)) for name, each in there.items() if name in (wanted or there)
    ]


def _switch(value: dict[str, Any], name: str, default: bool) -> bool:
    """Return a parameter of a call or of an output that is true or false."""
    found = value.get("parameters") or {}
    if not isinstance(found, dict) or not isinstance(found.get(name, default), bool):
        raise Refused(f'"parameters" must be an object, and {name} true or false.')
    return bool(found.get(name, default))


def _label(answer: dict[str, Any]) -> str:
    return answer["label"] if "label" in answer else ",".join(answer["labels"])
