"""A run, an export or an encoder as a function of texts."""

from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import numpy as np
import pytest

import onion
from onion.errors import DataError, OnionError
from onion.tasks import loading
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.export.export import export
from onion.tasks.export.export_encoder import export_encoder
from onion.tasks.finetune.predictor import Predictor
from tests.onions.material import encoder
from tests.tasks.export.conftest import run_of  # noqa: F401  a fixture
from tests.tasks.helpers import films

pytest.importorskip("onnxruntime")

TEXTS = [text for text, _ in films(40, seed=3)]


@pytest.fixture(scope="module")
def folder(trained):
    return trained[0]


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("exported") / "model"
    export(folder, place)
    return place


@pytest.mark.parametrize("engine", ["paddle", "onnx"])
def test_a_run_answers_a_text_or_several(engine, folder):
    model = onion.load(folder, engine=engine)
    predictor = Predictor.load(folder)
    expected = list(predictor(predictor.task.text_rows(TEXTS)))
    found = model(TEXTS)
    assert [each["label"] for each in found] == [each["label"] for each in expected]
    one = model(TEXTS[0])
    assert one["probabilities"] == pytest.approx(expected[0]["probabilities"], abs=2e-6)
    assert model({"text_a": TEXTS[0]}) == one
    assert model([]) == []


def test_an_export_answers_many_callers_each_its_own_text(exported):
    model = onion.load(exported, threads=1)
    expected = {text: model(text) for text in TEXTS}
    asked = TEXTS * 10
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(model, asked)) == [expected[text] for text in asked]


def test_paddle_answers_many_callers_too(folder):
    model = onion.load(folder, engine="paddle")
    expected = [model(text) for text in TEXTS[:10]]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(model, TEXTS[:10] * 3)) == expected * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "'int' object is not iterable"),
        ([5], "text 1: 5 is no text, no pair of texts"),
        (["a film", ("a", "b", "c")], "text 2: .* is no text, no pair"),
        (["a film", {"text_b": "x"}], "text 2: there is no 'text_a' in this object"),
        ([("a film", "a plot")], "text 1: .*text_b"),
        ([{"text_a": {1, 2}}], "text 1: .*not JSON serializable"),
        (np.array([["a film", "a plot"]]), "a table is no list of rows"),
    ],
)
def test_what_is_no_row_is_named(given, message, exported):
    with pytest.raises((DataError, TypeError), match=message):
        onion.load(exported)(given)


def test_any_mapping_is_a_row(exported):
    model = onion.load(exported)
    assert model(MappingProxyType({"text_a": "a film"})) == model("a film")


def test_a_tagger_reads_no_pair(run_of):  # noqa: F811
    model = onion.load(run_of("token-classification"))
    assert model("a film")["tokens"] == ["a", "film"]
    with pytest.raises(DataError, match="text 1: the task token-classification reads one text, not a pair"):
        model(("a film", "a plot"))


def test_paddle_computes_on_the_threads_that_are_asked_for(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(loading, "use_threads", asked.append)
    onion.load(folder, engine="paddle", threads=1)
    onion.load(encoder(), threads=1, max_length=12)
    onion.load(folder, engine="onnx", threads=1)
    assert asked == [1, 1]
    for wrong in (0, -3, "2"):
        with pytest.raises(DataError, match="threads"):
            onion.load(folder, threads=wrong)


def test_settings_are_those_of_the_task(folder):
    with pytest.raises(DataError, match="cannot be changed after training"):
        onion.load(folder, labels=["a"])
    with pytest.raises(DataError, match="engine 'openvino': must be one of paddle, onnx"):
        onion.load(folder, engine="openvino")


def test_an_encoder_gives_vectors(tmp_path):
    settings = {"pooling": "mean", "normalize": True, "max_length": 12}
    own = Embedder.from_pretrained(encoder(), **settings)(TEXTS)
    model = onion.load(encoder(), **settings)
    np.testing.assert_allclose(model(TEXTS), own, atol=1e-5)
    assert model(TEXTS[0]).shape == own[0].shape
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    assert model(pairs).shape == own.shape
    export_encoder(encoder(), tmp_path / "model", pooling="mean", normalize=True, max_length=12)
    exported = onion.load(tmp_path / "model")
    np.testing.assert_allclose(exported(TEXTS), own, atol=1e-5)
    np.testing.assert_allclose(exported(pairs), model(pairs), atol=1e-5)
    for rows, told in (
        (["a film", ("a", "b")], "texts and pairs"),
        (["a film", ("a", "b", "c")], "text 2: .* is no pair of texts"),
        ([("a",)], "text 1: .* is no pair of texts"),
        ([5], "text 1: an encoder reads text_a"),
    ):
        with pytest.raises(DataError, match=told):
            exported(rows)
    assert np.array_equal(exported({"text_a": TEXTS[0]}), exported(TEXTS[0]))
    assert np.array_equal(exported({"text_a": "a", "text_b": "b"}), exported(("a", "b")))
    for wrong, told in (
        ({"engine": "paddle"}, "is an encoder for the engine onnx"),
        ({"task": "films"}, "is an encoder, which has no task"),
        ({"poling": "mean"}, "unknown setting 'poling'; an encoder has pooling"),
    ):
        with pytest.raises(DataError, match=told):
            onion.load(tmp_path / "model", **wrong)


def test_an_encoder_has_no_task():
    with pytest.raises(DataError, match="is an encoder, which has no task"):
        onion.load(encoder(), task="films")
    with pytest.raises(DataError, match="onion export --encoder makes one of it"):
        onion.load(encoder(), engine="onnx")


def test_a_name_that_is_not_known_is_an_error():
    with pytest.raises(OnionError, match="nowhere"):
        onion.load("nowhere")
