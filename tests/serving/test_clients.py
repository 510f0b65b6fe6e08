"""huggingface_hub's InferenceClient, unchanged, at a service: every method that the guide names."""

import numpy as np
import pytest
from huggingface_hub import InferenceClient

from onion.serving.limits import ServingLimits
from onion.tasks.export.export import export
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.settings import Settings
from tests.onions.material import encoder, files
from tests.patience import PATIENCE
from tests.serving.services import served

pytest.importorskip("onnxruntime")

KINDS = {
    "films": "classification",
    "masks": "masked-lm",
    "reader": "question-answering",
    "vectors": "embedding",
}


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """The folder of a model that finds spans, which takes more passes than those of other tests have."""
    learn, dev = map(str, files("token-classification"))
    given = {"passes": 30, "batch_size": 4, "learning_rate": 3e-3, "options": {"max_length": 16}}
    folder = tmp_path_factory.mktemp("tagger")
    settings = Settings(task="token-classification", encoder=str(encoder()), train=learn, dev=dev, **given)
    train(settings, folder / "run", quiet=True)
    export(folder / "run", folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def client(folders, tagger):
    """Return a client of a model by its name."""
    models = {**{name: folders(kind) for name, kind in KINDS.items()}, "tags": tagger}
    with served(models, limits=ServingLimits()) as server:
        yield lambda name: InferenceClient(f"{server.url}/{name}", timeout=PATIENCE)


def test_text_classification(client):
    found = client("films").text_classification("a good film")
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert sum(each.score for each in found) == pytest.approx(1, abs=1e-5)


def test_token_classification(client):
    text = "awful bad plot 😀 great actor"
    found = client("tags").token_classification(text)
    assert found
    for each in found:
        assert each.word == text[each.start : each.end]
        assert each.entity_group
        assert 0 < each.score <= 1


def test_fill_mask(client):
    found = client("masks").fill_mask("a [MASK] film")
    assert len(found) == 5
    assert {each.sequence for each in found} == {f"a {each.token_str} film" for each in found}
    assert found[0].score >= found[-1].score > 0


def test_question_answering(client):
    context = "a good film was in Rome"
    found = client("reader").question_answering("where was it", context)
    [answer] = found if isinstance(found, list) else [found]
    assert answer.answer == context[answer.start : answer.end] != ""


def test_feature_extraction_and_sentence_similarity(client):
    vectors = client("vectors")
    one, other = (np.asarray(vectors.feature_extraction(text))[0] for text in ("a good film", "the plot"))
    same, apart = vectors.sentence_similarity("a good film", ["a good film", "the plot"])
    assert same == pytest.approx(1, abs=1e-5)
    assert apart == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), abs=1e-5)
