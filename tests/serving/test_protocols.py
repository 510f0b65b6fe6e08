"""What clients of each protocol send, and what they get."""

import base64
import json
import re
import struct
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from onion.http.refused import Refused
from onion.serving.limits import ServingLimits
from onion.serving.protocols.hugging_face import _masks
from onion.serving.protocols.rows import row_of
from onion.serving.served_models import RESERVED
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.finetune.predictor import Predictor
from tests.patience import PATIENCE
from tests.serving.services import served

pytest.importorskip("onnxruntime")
KINDS = {
    "films": "classification",
    "several": "multilabel",
    "pairs": "matching",
    "tags": "token-classification",
    "reader": "question-answering",
    "masks": "masked-lm",
    "numbers": "regression",
    "vectors": "embedding",
}
TEXTS = ["a good film", "the plot was an awful story"]


@pytest.fixture(scope="module")
def service(folders):
    with served(
        {name: folders(kind) for name, kind in KINDS.items()}, limits=ServingLimits(texts=4, tokens=2000)
    ) as server:
        yield server


@pytest.fixture
def post(service):
    def post(path, body, **options):
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return httpx.post(f"{service.url}{path}", content=content, timeout=PATIENCE, **options)

    return post


def get(service, path):
    return httpx.get(f"{service.url}{path}", timeout=PATIENCE)


def predicted(folders, kind, *lines):
    predictor = Predictor.load(folders(kind))
    return [*predictor(predictor.task.line_rows(lines))]


# -- onion's own -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("films", {"text_a": TEXTS[0]}),
        ("several", {"text_a": TEXTS[0]}),
        ("pairs", {"text_a": TEXTS[0], "text_b": TEXTS[1]}),
        ("numbers", {"text_a": TEXTS[1]}),
        ("tags", {"text_a": TEXTS[1]}),
        ("reader", {"question": "what was it", "context": TEXTS[1]}),
        ("masks", {"text_a": "a [MASK] film"}),
    ],
)
def test_each_task_answers_what_predictions_are(name, row, post, folders):
    answer = post(f"/models/{name}/predict", {"inputs": [row, row]}).json()
    expected = predicted(folders, KINDS[name], json.dumps(row))[0]
    expected.pop("id", None)
    assert (answer["model"], answer["version"]) == (name, 1)
    assert answer["predictions"] == [expected, expected]
    assert answer["tokens"] > 0


def test_rows_may_be_texts_or_pairs(post):
    one = post("/models/films/predict", {"inputs": [TEXTS[0], {"text_a": TEXTS[0]}]}).json()["predictions"]
    assert one[0] == one[1]
    pair = post("/models/pairs/predict", {"inputs": [TEXTS, {"text_a": TEXTS[0], "text_b": TEXTS[1]}]}).json()
    assert pair["predictions"][0] == pair["predictions"][1]


def test_an_id_of_a_question_comes_back(post):
    row = {"question": "what", "context": TEXTS[0], "id": "q7"}
    assert post("/models/reader/predict", {"inputs": [row]}).json()["predictions"][0]["id"] == "q7"


def test_vectors_have_ernies_name(post, folders):
    found = post("/models/vectors/predict", {"inputs": TEXTS}).json()["predictions"]
    expected = Embedder.from_exported(folders("embedding"))(TEXTS)
    np.testing.assert_allclose([each["cls_emb"] for each in found], expected, atol=1e-6)


def test_models_are_listed(service):
    found = get(service, "/models").json()["models"]
    assert [each["name"] for each in found] == list(KINDS)
    assert get(service, "/models/tags").json()["task"] == "token-classification"


# -- text-embeddings-inference -----------------------------------------------------------------------------------------


def test_embed(post, folders):
    expected = Embedder.from_exported(folders("embedding"))(TEXTS)
    np.testing.assert_allclose(post("/embed", {"inputs": TEXTS}).json(), expected, atol=1e-6)
    one = post("/embed", {"inputs": TEXTS[0], "dimensions": 8}).json()
    assert np.linalg.norm(one[0]) == pytest.approx(1, abs=1e-6)
    assert len(one[0]) == 8
    plain = post("/embed", {"inputs": TEXTS[0], "normalize": False, "dimensions": 8}).json()
    np.testing.assert_allclose(plain[0], expected[0, :8], atol=1e-6)


def test_predict_gives_the_scores_of_all_labels_the_highest_first(post, folders):
    expected = predicted(folders, "classification", *TEXTS)
    one = post("/predict", {"inputs": TEXTS[0]}).json()
    assert {each["label"]: each["score"] for each in one} == expected[0]["probabilities"]
    assert one[0]["score"] >= one[1]["score"]
    several = post("/predict", {"inputs": [[TEXTS[0]], [TEXTS[1]]]}).json()
    assert [found[0]["label"] for found in several] == [each["label"] for each in expected]


def test_a_model_has_an_address_of_its_own(post, service):
    assert post("/several/predict", {"inputs": TEXTS[0]}).json()[0].keys() == {"score", "label"}
    assert post("/tags/predict", {"inputs": TEXTS[0]}).json()["tokens"] == ["a", "good", "film"]
    assert post("/pairs/predict", {"inputs": TEXTS}).json().keys() == {"score", "label"}
    assert get(service, "/vectors/info").json()["model_type"] == {"embedding": {"pooling": "mean"}}
    refused = post("/films/embed", {"inputs": "a"})
    assert (refused.status_code, "embedding" in refused.json()["error"]) == (404, True)


def test_rerank(post):
    texts = ["a plot", "a good film", "an awful story"]
    found = post("/rerank", {"query": "a film", "texts": texts, "return_text": True}).json()
    assert sorted(each["index"] for each in found) == [0, 1, 2]
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert all(texts[each["index"]] == each["text"] for each in found)
    alone = post("/rerank", {"query": "a film", "texts": ["a plot"]}).json()
    assert alone == [{"index": 0, "score": next(each["score"] for each in found if each["index"] == 0)}]


def test_info(service):
    told = get(service, "/info").json()
    assert told["model_id"] == "films"
    assert told["model_type"]["classifier"]["id2label"] == {"0": "bad", "1": "good"}
    assert told["max_client_batch_size"] == 4


def test_a_text_that_may_not_be_cut_is_refused(post):
    long = " ".join(["film"] * 50)
    assert post("/predict", {"inputs": long}).status_code == 200
    refused = post("/predict", {"inputs": long, "truncate": False})
    assert (refused.status_code, refused.json()["error"]) == (
        413, "Text 1: texts longer than 16 tokens would be cut; truncate is false.",
    )  # fmt: skip
    question = {"inputs": [{"question": long, "context": TEXTS[1]}], "truncate": False}
    assert "questions longer than" in post("/models/reader/predict", question).json()["error"]


@pytest.mark.parametrize(
    ("name", "row"), [("tags", "a film"), ("masks", "a [MASK] film"), ("reader", {"question": "what", "context": ""})]
)
def test_a_text_that_is_read_through_windows_is_not_cut(name, row, post):
    long = " a film" * 50
    given = {**row, "context": long} if isinstance(row, dict) else row + long
    assert post(f"/models/{name}/predict", {"inputs": [given], "truncate": False}).status_code == 200


@pytest.mark.parametrize("setting", [{"raw_scores": True}, {"truncation_direction": "Left"}, {"prompt_name": "query"}])
def test_parameters_that_would_be_ignored_are_refused(setting, post):
    of = {"/embed": {"inputs": "a"}, "/predict": {"inputs": "a"}, "/rerank": {"query": "a", "texts": ["b"]}}
    for path, body in of.items():
        refused = post(path, {**body, **setting})
        assert (refused.status_code, next(iter(setting)) in refused.json()["error"]) == (422, True)
        idle = {"raw_scores": False, "truncation_direction": "Right", "prompt_name": None}
        assert post(path, {**body, **idle}).status_code == 200


# -- Hugging Face's Inference API --------------------------------------------------------------------------------------


def test_a_models_own_address_answers_as_pipelines_do(post, folders):
    expected = predicted(folders, "classification", *TEXTS)
    [one] = post("/films", {"inputs": TEXTS[0], "parameters": {}}).json()
    assert {each["label"]: each["score"] for each in one} == expected[0]["probabilities"]
    assert post("/", {"inputs": TEXTS[0]}).json() == [one]
    assert len(post("/films", {"inputs": TEXTS}).json()) == 2


def test_spans_have_places_and_scores(post):
    text = "awful bad plot 😀 great actor"
    answer = post("/models/tags/predict", {"inputs": [text]}).json()["predictions"][0]
    found = post("/tags", {"inputs": text}).json()
    assert found
    assert [(each["entity_group"], each["start"], each["end"]) for each in found] == [
        (span["type"], span["begin"], span["end"]) for span in answer["spans"]
    ]
    assert all(text[each["start"] : each["end"]] == each["word"] and 0 < each["score"] <= 1 for each in found)


def test_masks_are_filled_in(post):
    found = post("/masks", {"inputs": "a [MASK] film"}).json()
    assert found[0].keys() == {"score", "token", "token_str", "sequence"}
    assert found[0]["sequence"] == f"a {found[0]['token_str']} film"
    first, second = post("/masks", {"inputs": "a [MASK] [MASK] film"}).json()
    assert (len(first), len(second)) == (5, 5)
    assert [each["sequence"] for each in first] == [f"a {each['token_str']} [MASK] film" for each in first]
    assert [each["sequence"] for each in second] == [f"a [MASK] {each['token_str']} film" for each in second]


@pytest.mark.parametrize("row", [["a film", "it is [MASK]"], {"text_a": "a film", "text_b": "it is [MASK]"}])
def test_the_sequence_of_a_pair_has_both_texts(row):
    answer = {"masks": [{"words": ["good"], "word_ids": [7], "probabilities": [0.9]}]}
    tokenizer = SimpleNamespace(mask_id=4, tokens=lambda ids: ["[MASK]"])
    [filled] = _masks(SimpleNamespace(tokenizer=tokenizer), row_of(row, "inputs"), answer)
    assert filled["sequence"] == "a film it is good"


def test_a_pair_that_is_cut_with_one_of_its_masks_is_refused():
    answer = {"masks": [{"words": ["good"], "word_ids": [7], "probabilities": [0.9]}]}
    tokenizer = SimpleNamespace(mask_id=4, tokens=lambda ids: ["[MASK]"])
    with pytest.raises(Refused, match=r"The pair would be cut, and a \[MASK\] with it") as refused:
        _masks(SimpleNamespace(tokenizer=tokenizer), ("a long text [MASK]", "it is [MASK]"), answer)
    assert refused.value.status == 413


def test_spans_of_words_have_places_and_scores_too(post):
    words = ["awful", "bad", "plot", "great", "actor"]
    expected = post("/tags", {"inputs": " ".join(words)}).json()
    assert expected
    assert post("/tags", {"inputs": {"text_a": words}}).json() == expected
    assert post("/tags", {"inputs": "\x02".join(words)}).json() == expected


def test_parameters_of_a_pipeline(post):
    [best] = post("/films", {"inputs": TEXTS[0], "parameters": {"top_k": 1}}).json()
    assert best == post("/films", {"inputs": TEXTS[0]}).json()[0][:1]
    assert len(post("/masks", {"inputs": "a [MASK] film", "parameters": {"top_k": 2}}).json()) == 2
    both = post("/masks", {"inputs": "a [MASK] [MASK] film", "parameters": {"top_k": 2}}).json()
    assert list(map(len, both)) == [2, 2]
    assert post("/masks", {"inputs": "a film", "parameters": {"top_k": 2}}).json() == []
    assert post("/tags", {"inputs": "a film", "parameters": {"aggregation_strategy": "simple"}}).status_code == 200


def test_parameters_of_feature_extraction_stand_beside_the_inputs(post, folders):
    vectors = Embedder.from_exported(folders("embedding"))(TEXTS)
    plain = post("/vectors", {"inputs": TEXTS, "dimensions": 8}).json()
    np.testing.assert_allclose(plain, vectors[:, :8], atol=1e-6)
    of_length_1 = post("/vectors", {"inputs": TEXTS, "dimensions": 8, "normalize": True}).json()
    np.testing.assert_allclose(np.linalg.norm(of_length_1, axis=1), 1, atol=1e-6)
    assert post("/vectors", {"inputs": " ".join(["film"] * 50), "truncate": False}).status_code == 413


def test_an_answer_is_a_part_of_the_context(post):
    row = {"question": "what was it", "context": TEXTS[1]}
    found = post("/reader", {"inputs": row, "parameters": {}}).json()
    assert TEXTS[1][found["start"] : found["end"]] == found["answer"]
    assert 0 < found["score"] <= 1


def test_sentences_are_compared(post, folders):
    vectors = Embedder.from_exported(folders("embedding"))(TEXTS)
    np.testing.assert_allclose(post("/vectors", {"inputs": TEXTS}).json(), vectors, atol=1e-6)
    found = post("/vectors", {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}).json()
    np.testing.assert_allclose(found, vectors @ vectors[0], atol=1e-6)
    assert post("/vectors", {"inputs": {"sentences": TEXTS}}).status_code == 422


# -- OpenAI ------------------------------------------------------------------------------------------------------------


def test_openai_embeddings(post, folders):
    expected = Embedder.from_exported(folders("embedding"))(TEXTS)
    answer = post("/v1/embeddings", {"input": TEXTS, "model": "vectors"}).json()
    np.testing.assert_allclose([each["embedding"] for each in answer["data"]], expected, atol=1e-6)
    assert [each["index"] for each in answer["data"]] == [0, 1]
    assert (answer["object"], answer["model"]) == ("list", "vectors")
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 4


def test_openai_clients_ask_for_base64(post, folders):
    body = {"input": TEXTS[0], "model": "vectors", "encoding_format": "base64"}
    content = base64.b64decode(post("/v1/embeddings", body).json()["data"][0]["embedding"])
    expected = Embedder.from_exported(folders("embedding"))(TEXTS[:1])
    np.testing.assert_allclose(np.frombuffer(content, "<f4"), expected[0], atol=1e-6)


def test_openai_models(service, post):
    assert [each["id"] for each in get(service, "/v1/models").json()["data"]] == list(KINDS)
    assert get(service, "/v1/models/films").json()["id"] == "films"
    shorter = post("/v1/embeddings", {"input": TEXTS, "model": "vectors", "dimensions": 8}).json()["data"]
    assert [np.linalg.norm(each["embedding"]) for each in shorter] == pytest.approx([1, 1], abs=1e-6)
    assert get(service, "/v1/models/nothing").status_code == 404
    assert post("/v1/embeddings", {"input": "a", "model": "films"}).status_code == 422


# -- Open Inference Protocol -------------------------------------------------------------------------------------------


def tensor(*texts, name="text_a"):
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": list(texts)}


def test_infer(post, folders):
    answer = post("/v2/models/films/infer", {"id": "7", "inputs": [tensor(*TEXTS, name="any")]}).json()
    expected = predicted(folders, "classification", *TEXTS)
    outputs = {each["name"]: each for each in answer["outputs"]}
    assert (answer["id"], answer["model_name"]) == ("7", "films")
    assert outputs["label"]["data"] == [each["label"] for each in expected]
    assert outputs["probabilities"]["shape"] == [2, 2]
    flat = [number for each in expected for number in each["probabilities"].values()]
    assert outputs["probabilities"]["data"] == pytest.approx(flat, abs=1e-6)
    assert [json.loads(each) for each in outputs["prediction"]["data"]] == expected


def test_infer_reads_columns_by_their_names(post):
    inputs = [tensor("what", name="question"), tensor(TEXTS[0], name="context")]
    answer = post("/v2/models/reader/infer", {"inputs": inputs, "outputs": [{"name": "prediction"}]}).json()
    assert [each["name"] for each in answer["outputs"]] == ["prediction"]
    assert "answer" in json.loads(answer["outputs"][0]["data"][0])


def test_infer_reads_binary_texts_as_tritons_clients_send_them(post):
    packed = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in TEXTS)
    given = {"name": "text_a", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(packed)}}
    told = json.dumps({"inputs": [given]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(told))}
    binary = post("/v2/models/films/infer", told + packed, headers=headers).json()
    assert binary["outputs"] == post("/v2/models/films/infer", {"inputs": [tensor(*TEXTS)]}).json()["outputs"]


def unpacked(content):
    """Texts behind their lengths."""
    found = []
    while content:
        (length,) = struct.unpack("<I", content[:4])
        found.append(content[4 : 4 + length].decode())
        content = content[4 + length :]
    return found


@pytest.mark.parametrize("all_of_them", [True, False])
def test_outputs_are_binary_where_a_client_asks_for_it(all_of_them, post):
    plain = post("/v2/models/films/infer", {"inputs": [tensor(*TEXTS)]}).json()["outputs"]
    names = ["label", "probabilities"]
    binary = {} if all_of_them else {"parameters": {"binary_data": True}}
    asked = {"inputs": [tensor(*TEXTS)], "outputs": [{"name": name, **binary} for name in names]}
    if all_of_them:
        asked["parameters"] = {"binary_data_output": True}
    response = post("/v2/models/films/infer", asked)
    length = int(response.headers["inference-header-content-length"])
    label, probabilities = json.loads(response.content[:length])["outputs"]
    sizes = [each["parameters"]["binary_data_size"] for each in (label, probabilities)]
    packed = response.content[length:]
    assert len(packed) == sum(sizes)
    wanted = {each["name"]: each["data"] for each in plain}
    assert unpacked(packed[: sizes[0]]) == wanted["label"]
    assert np.frombuffer(packed[sizes[0] :], "<f4").tolist() == pytest.approx(wanted["probabilities"])


def test_vectors_are_a_tensor(post, folders):
    answer = post("/v2/models/vectors/infer", {"inputs": [tensor(*TEXTS)]}).json()
    expected = Embedder.from_exported(folders("embedding"))(TEXTS)
    [output] = answer["outputs"]
    assert (output["name"], output["shape"]) == ("embedding", list(expected.shape))
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected, atol=1e-6)


def test_metadata_and_health(service):
    assert get(service, "/v2").json()["name"] == "onion"
    assert get(service, "/v2/health/live").json() == {"live": True}
    assert get(service, "/v2/health/ready").json() == {"ready": True}
    assert get(service, "/v2/models/films/ready").json() == {"name": "films", "ready": True}
    told = get(service, "/v2/models/films").json()
    assert get(service, f"/v2/models/films/versions/{told['versions'][0]}").json() == told
    assert get(service, "/v2/models/films/versions/1/ready").status_code == 200
    assert get(service, "/v2/models/films/versions/9/ready").status_code == 404
    told = get(service, "/v2/models/reader").json()
    assert [each["name"] for each in told["inputs"]] == ["question", "context"]


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/predict", "{", 400, "The body"),
        ("/predict", "[]", 400, "not a JSON object"),
        ("/predict", {"inputs": 5}, 422, "inputs must be a text"),
        ("/predict", {"inputs": []}, 422, "inputs must be a text"),
        ("/predict", {"inputs": "a", "truncate": "yes"}, 422, "truncate must be true or false"),
        ("/predict", {"inputs": [["a"]] * 5}, 413, "5 texts are more than 4"),
        ("/predict", {"inputs": "a" * 2_000_000}, 413, "1,048,576 bytes"),
        ("/predict?x=1", {"inputs": "a"}, 400, "Unknown parameter 'x'"),
        ("/embed", {"inputs": ["a", 5]}, 422, "a text or a list of texts"),
        ("/embed", {"inputs": "a", "dimensions": 0}, 422, "dimensions must be an integer from 1 to"),
        ("/rerank", {"texts": ["a"]}, 422, "query must be a text"),
        ("/rerank", {"query": "a", "texts": "b", "return_text": 1}, 422, "return_text must be true or false"),
        ("/v1/embeddings", {"input": [1, 2]}, 422, "input must be a text"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 422, "float or base64"),
        ("/v1/embeddings", {"input": "a", "model": "nothing"}, 404, "There is no model 'nothing'"),
        ("/v1/embeddings", {"input": "a", "model": []}, 422, "model must be the name of a model"),
        ("/films", {"inputs": "a", "parameters": []}, 422, "parameters must be an object"),
        ("/films", {"inputs": "a", "parameters": {"top_k": 0}}, 422, "top_k must be an integer from 1"),
        ("/films", {"inputs": "a", "parameters": {"function_to_apply": "none"}}, 422, "'function_to_apply'; there are"),
        ("/reader", {"inputs": {}, "parameters": {"top_k": 2}}, 422, "no parameter 'top_k'; there are none"),
        ("/vectors", {"inputs": "a", "prompt_name": "query"}, 422, "no parameter 'prompt_name'"),
        ("/vectors", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "dimensions": 8}, 422, "'dimensions'"),
        ("/rerank", {"query": "a" * 600_000, "texts": ["a", "b"]}, 413, "1,200,002 characters are more than"),
        ("/models/tags/predict", {"inputs": [{"text_a": ["film"] * 3000}]}, 413, "tokens are more than 2,000"),
        ("/models/nothing/predict", {"inputs": ["a"]}, 404, "there are 'films', 'several'"),
        ("/models/films/predict", {"inputs": "a"}, 422, "The body must be like"),
        ("/models/films/predict", {"inputs": [{"text_b": "a"}]}, 422, "Text 1: there is no 'text_a'"),
        ("/models/films/predict", {"inputs": ["a", ["a", "b"]]}, 422, "Text 2: .*text_b"),
        ("/models/tags/predict", {"inputs": ["film " * 3000]}, 413, "tokens are more than 2,000"),
        ("/models/vectors/predict", {"inputs": [{"text_b": "a"}]}, 422, "an encoder reads text_a"),
        ("/models/vectors/predict", {"inputs": [{"text_a": 5}]}, 422, "an encoder reads text_a"),
        ("/models/films/predict", {"inputs": [{"text_a": 5}]}, 422, "Text 1: .*text_a"),
        ("/models/films/predict", {"inputs": [{"text_a": ["a"]}]}, 422, "Text 1: .*text_a"),
        ("/models/reader/predict", {"inputs": [{"question": "a", "context": None}]}, 422, "Text 1: .*context"),
        ("/models/reader/predict", {"inputs": [{"question": "a", "context": "b", "id": {}}]}, 422, "Text 1: .*id"),
        ("/models/reader/predict", {"inputs": ["a"]}, 422, "there is no 'question'"),
        ("/v2/models/films/infer", {}, 400, '"inputs", a list of tensors'),
        ("/v2/models/films/infer", {"inputs": [{"datatype": "FP32"}]}, 422, "datatype BYTES"),
        ("/v2/models/films/infer", {"inputs": [tensor("a")], "outputs": [{"name": "x"}]}, 400, "no output"),
        ("/v2/models/films/infer", {"inputs": [tensor("a")], "parameters": 5}, 400, "must be an object"),
        (
            "/v2/models/films/infer",
            {"inputs": [tensor("a")], "outputs": [{"name": "label", "parameters": {"binary_data": "false"}}]},
            400,
            "binary_data true or false",
        ),
        ("/v2/models/films/infer", {"inputs": [tensor("a")], "outputs": None}, 400, "the name of an output"),
        ("/v2/models/films/infer", {"inputs": [tensor("a")], "outputs": [{"name": []}]}, 400, "the name of an output"),
        ("/v2/models/films/infer", {"inputs": [{"datatype": "BYTES", "data": [1]}]}, 422, "a list of texts"),
        ("/v2/models/films/infer", {"inputs": [{**tensor("a"), "parameters": "x"}]}, 422, "must be an object"),
        ("/v2/models/films/infer", {"inputs": [tensor("a"), tensor("b")]}, 422, "the name of another input"),
        ("/v2/models/reader/infer", {"inputs": [{"datatype": "BYTES", "data": ["a"]}]}, 422, "question, context"),
    ],
)
def test_a_mistake_has_a_status_and_a_sentence(path, body, status, message, post):
    answer = post(path, body)
    assert answer.status_code == status, answer.text
    assert re.search(message, answer.json()["error"])


@pytest.mark.parametrize("length", ["x", "-1", "99999"])
def test_a_wrong_length_of_the_json_is_refused(length, post):
    told = json.dumps({"inputs": [tensor("a")]})
    answer = post("/v2/models/films/infer", told, headers={"Inference-Header-Content-Length": length})
    assert answer.status_code == 400


@pytest.mark.parametrize("packed", [b"\1", b"\5\0\0\0abc", b"\2\0\0\0\xff\xfe"])
def test_binary_texts_that_end_too_early_are_refused(packed, post):
    given = {"name": "text_a", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": len(packed)}}
    told = json.dumps({"inputs": [given]}).encode()
    answer = post("/v2/models/films/infer", told + packed, headers={"Inference-Header-Content-Length": str(len(told))})
    assert answer.status_code == 422


# -- the description ---------------------------------------------------------------------------------------------------


def test_the_example_of_every_body_is_answered(service, post):
    paths = get(service, "/openapi.json").json()["paths"]
    described = {path: methods["post"] for path, methods in paths.items() if "post" in methods}
    assert {path for path, told in described.items() if "requestBody" not in told} == {"/models/{name}/reload"}
    for path, told in described.items():
        if "requestBody" in told:
            content = told["requestBody"]["content"]["application/json"]
            assert content["example"].keys() <= content["schema"]["properties"].keys()
            assert post(path.format(name="films", version=1), content["example"]).status_code == 200, path


def test_no_model_takes_an_address_of_the_service(service):
    paths = get(service, "/openapi.json").json()["paths"]
    assert {path.split("/")[1] for path in paths} - {""} <= set(RESERVED)
