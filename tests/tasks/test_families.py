"""Tasks over the families of encoders: from a folder to a training, resumed on the way, and to predictions."""

import shutil
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion.errors import CompositionError, DataError
from onion.models.auto import load_encoder, new_encoder
from onion.models.electra.config import ElectraConfig
from onion.models.hidden_states import record_hidden_states
from onion.models.xlnet.config import XLNetConfig
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.finetune.fine_tune import fine_tune, train
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.optimization import set_layerwise_rates
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.distillation import with_layers
from onion.tasks.networks.heads import SentenceHead
from onion.testing import assert_resumes_exactly
from tests.tasks.helpers import VOCAB, films, write_tsv
from tests.tasks.squad_files import squad
from tests.tasks.tagged import tagged

SPIECE = Path(__file__).parents[1] / "models" / "golden" / "xlnet_tokenizer" / "spiece.model"
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
ELECTRA = ElectraConfig(vocab_size=len(VOCAB), embedding_size=16, max_position_embeddings=48, **SIZES)
CONFIGS = {"electra": ELECTRA, "xlnet": XLNetConfig(vocab_size=700, **SIZES)}


@pytest.fixture(scope="module", params=CONFIGS)
def folder(request, tmp_path_factory):
    """A tiny encoder as it is published: its own tokenizer file, and no pooler."""
    found = tmp_path_factory.mktemp(request.param)
    paddle.seed(1)
    encoder = new_encoder(CONFIGS[request.param])
    for parameter in encoder.parameters():  # larger than new weights, so that a few steps suffice
        parameter.set_value(parameter * 5 if parameter.ndim > 1 else parameter)
    del encoder.pooler
    encoder.save_pretrained(found, "huggingface")
    if request.param == "xlnet":
        shutil.copy(SPIECE, found)
    else:
        (found / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    found = tmp_path_factory.mktemp("data")
    for name, seed in (("train", 1), ("dev", 2)):
        write_tsv(found / f"films.{name}.tsv", films(96, seed))
        write_tsv(found / f"tags.{name}.tsv", tagged(96, seed))
        squad(found / f"questions.{name}.json", *_questions(24, seed))
    return found


def _questions(count, seed):
    chance = np.random.default_rng(seed)
    for _ in range(count):
        words = [*chance.permutation(["the film", "a plot", "one actor"])]
        found = chance.random() < 0.7
        context = " was fine and ".join(words) + (" in Rome." if found else ".")
        yield context, "where was it?", [("Rome", context.index("Rome"))] if found else []


def settings_of(folder, data, task, name, ending="tsv", **more):
    usual = {"passes": 3, "batch_size": 16, "learning_rate": 3e-3, "options": {"max_length": 40}}
    files = {"train": str(data / f"{name}.train.{ending}"), "dev": str(data / f"{name}.dev.{ending}")}
    return Settings(task=task, encoder=str(folder), **files, **(usual | more))


def test_classification_learns_and_predicts(folder, data, tmp_path):
    report = train(settings_of(folder, data, "classify", "films", passes=8), tmp_path / "run", quiet=True).report
    assert report["dev.accuracy"] > 0.8
    assert evaluate(tmp_path / "run", data / "films.dev.tsv")["accuracy"] == report["dev.accuracy"]
    good, bad = predict_texts(tmp_path / "run", ["a lovely great happy film", "an awful sad plot"])
    assert (good["label"], bad["label"]) == ("good", "bad")
    assert isinstance(Predictor.load(tmp_path / "run").network.encoder, type(load_encoder(folder)))


def test_tagging_learns(folder, data, tmp_path):
    settings = settings_of(folder, data, "tag", "tags", passes=6)
    report = train(settings, tmp_path / "run", quiet=True).report
    assert report["dev.f1"] > 0.1
    assert evaluate(tmp_path / "run", data / "tags.dev.tsv")["f1"] == report["dev.f1"]


def test_reading_learns_where_there_is_no_answer(folder, data, tmp_path):
    options = {"max_length": 40, "max_query_length": 8, "doc_stride": 8, "max_answer_length": 6}
    settings = settings_of(folder, data, "read", "questions", "json", options=options, passes=6)
    report = train(settings, tmp_path / "run", quiet=True).report
    assert report["dev.f1"] > 0.5


def test_a_run_resumes_exactly(folder, data, tmp_path):
    def make(out):
        files = [data / f"films.{name}.tsv" for name in ("train", "dev")]
        options = {"max_length": 40}
        return fine_tune("classify", *files, out, encoder=str(folder), batch_size=32, passes=1, options=options)

    assert_resumes_exactly(make, tmp_path, passes=1, cuts=[2])


def test_masked_words_are_refused(folder, data, tmp_path):
    (tmp_path / "text.txt").write_text("the film was fine\na plot\n")
    settings = settings_of(folder, data, "mask", "films")
    with pytest.raises(DataError, match=r"masked-lm: (electra|xlnet) encoders have no masked LM head"):
        train(settings, tmp_path / "run", quiet=True)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_do_not_depend_on_the_padding(folder, pooling):
    embedder = Embedder.from_pretrained(folder, pooling, max_length=40)
    texts = ["the film", "a plot was a warm story and the scene is bright", "it"]
    together = embedder(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder([text])[0], vector, atol=1e-5)


def test_an_embedder_takes_a_lower_layer(folder):
    first, last = (Embedder.from_pretrained(folder, layer=layer, max_length=40)(["the film"]) for layer in (1, 2))
    assert first.shape == last.shape == (1, 32)
    assert not np.allclose(first, last, atol=1e-3)


def test_a_smaller_one_is_made_of_chosen_layers(folder):
    encoder = load_encoder(folder)
    smaller = with_layers(encoder, [2])
    assert type(smaller) is type(encoder)
    path = f"{encoder.layers_path}."
    chosen, own = smaller.state_dict(), encoder.state_dict()
    assert {name for name in chosen if name.startswith(path)} == {
        name.replace(f"{path}1.", f"{path}0.") for name in own if name.startswith(f"{path}1.")
    }
    for name, array in chosen.items():
        assert np.array_equal(array.numpy(), own[name.replace(f"{path}0.", f"{path}1.")].numpy())


def test_rates_fall_with_the_depth(folder):
    network = SentenceHead(load_encoder(folder), 2)
    set_layerwise_rates(network, 0.5)
    rates = {name: parameter.optimize_attr["learning_rate"] for name, parameter in network.named_parameters()}
    path = f"encoder.{network.encoder.layers_path}."
    assert {rates[name] for name in rates if name.startswith(f"{path}1.")} == {0.5}
    assert {rates[name] for name in rates if name.startswith(f"{path}0.")} == {0.25}
    assert {rates[name] for name in rates if "word_embedding" in name} == {0.125}
    assert {rates[name] for name in rates if "pooler" in name or "classifier" in name} == {1}


def test_only_relatives_of_bert_show_their_inside(folder):
    encoder, ids = load_encoder(folder), np.array([[5, 6, 7]])
    if encoder.config.model_type == "electra":
        with record_hidden_states(encoder) as inside:
            encoder(ids)
        assert inside.hidden[0].shape == inside.hidden[2].shape == [3, 32]
    else:
        with (
            pytest.raises(CompositionError, match="cannot be recorded of a XLNetEncoder"),
            record_hidden_states(encoder),
        ):
            pass
