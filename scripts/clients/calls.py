"""What each client asks, and what it is answered; ``__main__.py`` runs it by an interpreter that has them, not onion.

    python calls.py http://127.0.0.1:8000

The service has the models classifier, pairs, tags, masks, reader and vectors.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from typing import Any

TEXT, TAGGED, CONTEXT = "a good film", "awful bad plot 😀 great actor", "a good film was in Rome"


def openai_vectors(url: str, model: str = "vectors") -> str:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="none-needed-here")
    found = client.embeddings.create(model=model, input=[TEXT, "dull"])
    assert [each.index for each in found.data] == [0, 1]
    assert model in [each.id for each in client.models.list()]
    return f"{len(found.data)} vectors of {len(found.data[0].embedding)}, {found.usage.total_tokens} tokens"


def hub_vectors(url: str) -> str:
    client = _hub(f"{url}/vectors")
    found = client.feature_extraction(TEXT)
    same, other = client.sentence_similarity(TEXT, [TEXT, "the plot"])
    assert same > other
    also = _hub(f"{url}/vectors/embed").feature_extraction(TEXT)  # of text-embeddings-inference
    assert abs(found - also).max() < 1e-6
    return f"feature_extraction {found.shape}, sentence_similarity {same:.2f} > {other:.2f}"


def hub_tasks(url: str) -> str:
    [best, *_] = _hub(f"{url}/classifier").text_classification(TEXT)
    spans = _hub(f"{url}/tags").token_classification(TAGGED)
    assert spans
    assert all(each.word == TAGGED[each.start : each.end] for each in spans)
    [guess, *_] = _hub(f"{url}/masks").fill_mask("a [MASK] film")
    answer = _hub(f"{url}/reader").question_answering("where was it", CONTEXT)
    answer = answer[0] if isinstance(answer, list) else answer
    assert answer.answer == CONTEXT[answer.start : answer.end] != ""
    return (
        f"text_classification {best.label}, token_classification {len(spans)} spans, fill_mask {guess.token_str}, "
        f"question_answering {answer.answer}"
    )


def _hub(address: str) -> Any:
    from huggingface_hub import InferenceClient

    return InferenceClient(address)


def triton(url: str, model: str = "classifier") -> str:
    import numpy as np
    from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

    client = InferenceServerClient(url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(model)
    told = client.get_model_metadata(model)
    answers = []
    for binary in (True, False):
        given = InferInput(told["inputs"][0]["name"], [2], "BYTES")
        given.set_data_from_numpy(np.array([TEXT.encode(), b"dull"], dtype=object), binary_data=binary)
        asked = [InferRequestedOutput(name, binary_data=binary) for name in ("label", "probabilities")]
        found = client.infer(model, [given], outputs=asked)
        labels = [each.decode() if binary else each for each in found.as_numpy("label").tolist()]
        answers.append((labels, found.as_numpy("probabilities").tolist()))
    assert answers[0][0] == answers[1][0]
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-6)
    return f"infer, binary and JSON: {answers[0][0]}"


def curl(url: str) -> str:
    [best, *_] = _posted(f"{url}/classifier/predict", {"inputs": TEXT})
    ranked = _posted(f"{url}/pairs/rerank", {"query": TEXT, "texts": ["the plot", TEXT]})
    assert sorted(each["index"] for each in ranked) == [0, 1]
    assert ranked[0]["score"] >= ranked[1]["score"]
    return f"/predict {best['label']}, /rerank {[each['index'] for each in ranked]}"


def _posted(address: str, body: dict[str, Any]) -> Any:
    command = ["curl", "-sf", address, "-H", "content-type: application/json", "-d", json.dumps(body)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(url: str) -> None:
    """Call everything once; print a line for each client."""
    for library, call in (
        ("openai", openai_vectors),
        ("huggingface_hub", hub_vectors),
        ("huggingface_hub", hub_tasks),
        ("tritonclient", triton),
        ("curl", curl),
    ):
        version = "" if library == "curl" else f" {importlib.metadata.version(library)}"
        print(f"{library}{version}: {call(url)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
