"""Bodies that nobody meant: every route answers them, with a sentence, and goes on."""

import json

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.serving.limits import ServingLimits
from tests.serving.services import served

pytest.importorskip("onnxruntime")

KINDS = {"films": "classification", "reader": "question-answering", "masks": "masked-lm", "vectors": "embedding"}
ROUTES = [
    *(f"/models/{name}/predict" for name in KINDS),
    "/models/vectors/embed",
    "/predict",
    "/embed",
    "/rerank",
    "/films/predict",
    "/vectors/predict",
    "/v1/embeddings",
    "/v2/models/films/infer",
    "/v2/models/vectors/infer",
    "/",
    "/models/films",
]
KEYS = [
    *("inputs", "input", "model", "text", "texts", "query", "text_a", "text_b", "question", "context", "truncate"),
    *(
        "parameters",
        "name",
        "shape",
        "datatype",
        "data",
        "id",
        "outputs",
        "encoding_format",
        "dimensions",
        "raw_scores",
    ),
    *("return_text", "normalize", "top_k", "binary_data_size", "user", "probabilities"),
]
WORDS = st.sampled_from(["BYTES", "FP32", "base64", "float", "films", "vectors", "a film", "[MASK]", "", "\x00", "😀"])
NUMBERS = st.sampled_from([0, 1, -1, 0.5, 2**63, 10**30, True])
VALUES = st.recursive(
    st.none() | NUMBERS | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
BODIES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4) | VALUES
REFUSED = {400, 404, 405, 409, 413, 415, 422, 424, 501}


@pytest.fixture(scope="module")
def ask(folders):
    limits = ServingLimits(texts=4, tokens=2000)
    models = {name: folders(kind) for name, kind in KINDS.items()}
    with served(models, limits=limits) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client.post
        film = client.post("/models/films/predict", json={"inputs": ["a film"]})
        assert film.status_code == 200  # nothing of all that has harmed it


@pytest.mark.parametrize("route", ROUTES)
def test_every_body_is_answered_or_refused_in_a_sentence(route, ask):
    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(BODIES)
    def check(body):
        answer = ask(route, content=json.dumps(body))
        assert answer.status_code == 200 or answer.status_code in REFUSED, (body, answer.text)
        if answer.status_code != 200:
            assert len(str(answer.json()["error"])) > 5, (body, answer.text)

    check()


@pytest.mark.parametrize("route", ROUTES)
def test_bytes_that_are_no_json_are_refused(route, ask):
    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(st.binary(max_size=40), st.sampled_from([None, "5", "-1", "x"]))
    def check(body, header):
        headers = {} if header is None else {"inference-header-content-length": header}
        answer = ask(route, content=body, headers=headers)
        assert answer.status_code == 200 or answer.status_code in REFUSED, (body, answer.text)

    check()
