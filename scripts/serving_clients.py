"""Real clients, unchanged, at a service: run with the Python of an environment that has them.

    python scripts/serving_clients.py http://127.0.0.1:8000 --classifier films --vectors vectors [--reranker pairs]

It needs openai, huggingface_hub and tritonclient[http], and no onion. Each line tells what a client was answered.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys

TEXT = "a gripping film"


def openai_vectors(url: str, model: str) -> str:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="none-needed-here")
    found = client.embeddings.create(model=model, input=[TEXT, "dull"])
    assert [each.index for each in found.data] == [0, 1]
    assert model in [each.id for each in client.models.list()]
    return f"{len(found.data)} vectors of {len(found.data[0].embedding)}, {found.usage.total_tokens} tokens"


def hub_vectors(url: str, model: str) -> str:
    from huggingface_hub import InferenceClient

    client = InferenceClient(f"{url}/{model}")
    found = client.feature_extraction(TEXT)
    near, far = client.sentence_similarity(TEXT, ["a thrilling movie", "the price of fish"])
    assert near > far
    also = InferenceClient(f"{url}/{model}/embed").feature_extraction(TEXT)  # of text-embeddings-inference
    assert abs(found - also).max() < 1e-6
    return f"feature_extraction {found.shape}, sentence_similarity {near:.2f} > {far:.2f}"


def hub_classes(url: str, model: str) -> str:
    from huggingface_hub import InferenceClient

    found = InferenceClient(f"{url}/{model}").text_classification(TEXT)
    return f"text_classification {found[0].label} {found[0].score:.4f}"


def triton(url: str, model: str) -> str:
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


def curl(url: str, model: str) -> str:
    command = ["curl", "-sf", f"{url}/{model}/predict", "-H", "content-type: application/json"]
    done = subprocess.run([*command, "-d", f'{{"inputs": "{TEXT}"}}'], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> int:
    """Call everything once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--classifier", required=True)
    parser.add_argument("--vectors", required=True)
    given = parser.parse_args()
    for library, call, model in (
        ("openai", openai_vectors, given.vectors),
        ("huggingface_hub", hub_vectors, given.vectors),
        ("huggingface_hub", hub_classes, given.classifier),
        ("tritonclient", triton, given.classifier),
        ("curl", curl, given.classifier),
    ):
        version = "" if library == "curl" else importlib.metadata.version(library)
        print(f"{library} {version}: {call(given.url, model)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
