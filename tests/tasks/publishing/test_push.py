"""From a run to a hub on this machine, and back to predictions and to further trainings."""

import json
import re
import shutil

import pytest
import yaml

from onion.errors import CheckpointError, DataError, OnionError, WeightsError
from onion.models.formats.safetensors_file import read_safetensors
from onion.tasks.data.rows import decoded
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import predict_lines
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.publishing.model_card import Trained, _dataset, _settings, model_card
from onion.tasks.publishing.model_folder import _public
from onion.tasks.publishing.push import push, write
from onion.tasks.registry import get_task
from tests.models.hub_server import UPLOADS, Repository, serving_hub
from tests.tasks.helpers import films, snapshot, write_tsv

pytestmark = UPLOADS
LINES = [b"a lovely film", b"the plot is awful"]
FILES = {"README.md", "config.json", "model.safetensors", "run.json", "settings.json", "task.json"}
FILES |= {"tokenizer.json", "tokenizer_config.json"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    cache = tmp_path_factory.mktemp("huggingface") / "cache"
    with serving_hub(cache) as server:
        yield server, cache


@pytest.fixture
def hub(served, monkeypatch):
    server, cache = served
    shutil.rmtree(cache, ignore_errors=True)
    server.clear()
    monkeypatch.setenv("HF_TOKEN", server.token)
    return server


@pytest.fixture(scope="module")
def several(make_settings, films_folder, encoder_folder, tmp_path_factory):
    """The folder of a run of two tasks."""
    from onion.tasks.finetune.config_file import resolve

    folder = tmp_path_factory.mktemp("several")
    rows = [(text, "1.5" if label == "good" else "-1.5") for text, label in films(48, seed=1)]
    scores = str(write_tsv(folder / "scores.tsv", rows))
    texts = {"train": str(films_folder / "train.tsv"), "dev": str(films_folder / "dev.tsv")}
    tasks = {"films": {"task": "classification", **texts}}
    tasks["scores"] = {"task": "regression", "train": scores, "dev": scores}
    settings = {"encoder": str(encoder_folder), "passes": 1, "batch_size": 16, "max_length": 16}
    train(resolve({**settings, "tasks": tasks}), folder / "out")
    return folder / "out"


def card(hub, name):
    """The front matter and the text of a model card."""
    text = hub.repositories[name].files["README.md"].decode()
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def predicted(run, task_name=None):
    return list(predict_lines(run, LINES, task_name=task_name))


def test_what_is_pushed_predicts_the_same_and_the_run_stays(trained, hub, monkeypatch, tmp_path):
    run, _ = trained
    before = snapshot(run)
    assert push(run, "ada/films", license="apache-2.0", languages=("en",)) == f"{hub.address}/ada/films"
    assert snapshot(run) == before
    files = hub.repositories["ada/films"].files
    assert set(files) == FILES | {".gitattributes"}
    assert hub.repositories["ada/films"].messages == ["Push a model for classification"]

    predictor = Predictor.load("ada/films")
    rows = predictor.task.line_rows(line.decode() for line in LINES)
    assert [{"index": place, **each} for place, each in enumerate(predictor(rows))] == predicted(run)

    _, body = card(hub, "ada/films")  # and so does what the card says
    (snippet,) = re.findall(r"```python\n(.*?)```", body, re.DOTALL)
    printed = []
    exec(compile(snippet, "README.md", "exec"), {"print": printed.append})
    assert printed[0]["label"] in ("bad", "good")


def test_the_card_tells_of_the_training_and_not_of_the_machine(trained, hub, films_folder, encoder_folder):
    run, result = trained
    push(run, "ada/films@v1", license="apache-2.0", languages=("en", "zh"), message="a message", private=True)
    repository = hub.repositories["ada/films"]
    assert (repository.messages, repository.private) == (["a message"], True)
    repository.files = repository.older["v1"]
    front, body = card(hub, "ada/films")
    assert (front["license"], front["language"], front["library_name"]) == ("apache-2.0", ["en", "zh"], "onion")
    assert (front["pipeline_tag"], "base_model" in front) == ("text-classification", False)
    (index,) = front["model-index"]
    figures = {each["type"]: each["value"] for each in index["results"][0]["metrics"]}
    assert figures["accuracy"] == result.report["dev.accuracy"]
    assert index["name"] == "films"
    assert f"| accuracy | {figures['accuracy']:.4f} |" in body
    assert f"step {result.report['best_step']}:" in body
    for name, rows in (("train", 128), ("dev", 70)):
        digest = json.loads((run / "run.json").read_text())[f"{name}_sha256"]
        assert f"| `{name}.tsv` | {rows} | `{digest}` |" in body
    assert "| `learning_rate` | `0.006` |" in body
    assert "| `max_length` | `16` |" in body
    assert "GradientMachine(Classifier)" in body
    assert "Its labels: `bad`, `good`." in body
    text = "".join(content.decode() for name, content in repository.files.items() if name != "model.safetensors")
    for place in (run, films_folder, encoder_folder):
        assert str(place.parent) not in text
    (columns,) = {line.index("ini") for line in body.splitlines() if line.startswith("Runner  ")}
    assert all(line[columns + 4] in "↕↓·" for line in body.splitlines() if line.startswith("│╭"))


def test_what_was_trained_from_the_hub_names_its_base(trained, hub, make_settings, tmp_path):
    run, _ = trained
    push(run, "ada/films")
    front, _ = card(hub, "ada/films")
    assert not {"license", "language", "base_model"} & set(front)

    again = make_settings(encoder="ada/films", passes=1, learning_rate=1e-9)
    train(again, tmp_path / "encoder")
    push(tmp_path / "encoder", "ada/again")
    assert card(hub, "ada/again")[0]["base_model"] == "ada/films"

    head = make_settings(encoder="none", init_from="ada/films", init_head=True, passes=1, learning_rate=1e-9)
    train(head, tmp_path / "head")
    one, other = (predicted(each) for each in (run, tmp_path / "head"))
    for before, after in zip(one, other, strict=True):
        assert after["probabilities"] == pytest.approx(before["probabilities"], abs=1e-4)
    push(tmp_path / "head", "ada/head")
    assert card(hub, "ada/head")[0]["base_model"] == "ada/films"


def test_an_encoder_of_the_hub_is_no_run(encoder_folder, hub):
    files = {path.name: path.read_bytes() for path in encoder_folder.iterdir()}
    hub.repositories["ada/encoder"] = Repository(files)
    with pytest.raises(CheckpointError, match="ada/encoder holds no run of onion; give a model from onion push"):
        Predictor.load("ada/encoder")


@pytest.mark.parametrize(
    ("given", "public", "dataset"),
    [
        ("/home/ada/secret/train.tsv", "train.tsv", None),
        ("../secret/a.tsv, ~/secret/b.tsv", "a.tsv,b.tsv", None),
        ("secret/*.tsv", "*.tsv", None),
        ("hf:/home/ada/secret/data/train", "hf:train", None),
        ("hf:ada/films/plain/train", "hf:ada/films/plain/train", "ada/films"),
        ("hf:glue/mrpc/train", "hf:glue/mrpc/train", "glue"),
    ],
)
def test_data_is_told_by_name(given, public, dataset):
    assert _public({"tasks": {"one": {"train": given}}}) == {"tasks": {"one": {"train": public}}}
    assert _dataset(public) == dataset


def test_other_settings_are_told_without_folders():
    record = {"encoder": "ada/films", "init_from": "/home/ada/run", "teacher": "./runs/big", "freeze": ["encoder.*"]}
    assert _public({**record, "url": "https://example.com/a", "share": 0.5}) == {
        **{"encoder": "ada/films", "init_from": "run", "teacher": "big", "freeze": ["encoder.*"]},
        **{"url": "https://example.com/a", "share": 0.5},
    }
    kept = {"labels": ["/news/sport", "and/or"], "columns": {"text_a": "/a/b"}, "fitted": {"labels": ["/a"]}}
    assert _public(kept) == kept


def test_a_zero_is_told_and_what_is_not_set_is_not():
    given = {"weight_decay": 0.0, "stream": False, "freeze": [], "ema_decay": None, "lora_dropout": 0.0}
    assert _settings(given) == [("`weight_decay`", "`0.0`")]
    assert _settings({"lora_rank": 8, "lora_dropout": 0.0})[1] == ("`lora_dropout`", "`0.0`")


def test_a_card_without_a_test_says_so():
    about = {
        "task": get_task("regression", {}),
        "family": "bert",
        "record": {"encoder": "minilm", "train": "a.tsv", "dev": None},
    }
    told = model_card("ada/films", Trained(**about, figures={}, step=1, rows={}, drawing="", line=""))
    assert "## Figures\n\nNone: there was no dev file to test it on." in told


def test_one_of_several_tasks(several, hub):
    push(several, "ada/scores", task_name="scores")
    front, body = card(hub, "ada/scores")
    assert {each["type"] for each in front["model-index"][0]["results"][0]["metrics"]} >= {"pearson"}
    assert "| training | `scores.tsv` | 48 |" in body
    assert "| `batch_size` | `16` |" in body, "that of all tasks, since it has none of its own"
    rows = list(Predictor.load("ada/scores")(Predictor.load("ada/scores").task.line_rows(decoded(LINES))))
    assert [{"index": place, **each} for place, each in enumerate(rows)] == predicted(several, "scores")
    with pytest.raises(DataError, match="holds several tasks, 'films', 'scores'; choose one with --task"):
        push(several, "ada/films")
    assert "ada/films" not in hub.repositories


def test_files_that_have_changed_are_not_counted(make_settings, films_folder, tmp_path, hub):
    for name in ("train", "dev"):
        shutil.copy(films_folder / f"{name}.tsv", tmp_path)
    train(make_settings(train=str(tmp_path / "train.tsv"), dev="0.2", passes=1), tmp_path / "run")
    write(tmp_path / "run", tmp_path / "one", "ada/films")
    assert "| dev | `0.2` | 25 |" in (tmp_path / "one" / "README.md").read_text()
    (tmp_path / "train.tsv").unlink()
    write(tmp_path / "run", tmp_path / "two", "ada/films")
    assert "| training | `train.tsv` |  |" in (tmp_path / "two" / "README.md").read_text()
    assert read_safetensors(tmp_path / "one" / "model.safetensors").keys()


def test_a_folder_that_is_written_is_whole_or_not_there(trained, tmp_path, hub):
    run, _ = trained
    assert write(run, tmp_path / "model", "ada/films") == tmp_path / "model"
    assert {path.name for path in (tmp_path / "model").iterdir()} == FILES
    assert predicted(tmp_path / "model") == predicted(run)
    with pytest.raises(DataError, match="is not empty, and nothing is overwritten"):
        write(run, tmp_path / "model", "ada/films")
    with pytest.raises(CheckpointError, match="holds no run of onion"):
        write(tmp_path / "none", tmp_path / "new", "ada/films")
    with pytest.raises(WeightsError, match="is written OWNER/NAME"):
        write(run, tmp_path / "new", "films")
    assert {path.name for path in tmp_path.iterdir()} == {"model"}
    assert hub.requests == []


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("model.safetensors", "no weights", "damaged or not a safetensors file"),
        (
            "config.json",
            '{"model_type": "t5"}',
            "model_type must be one of bert, bow, cnn, electra, ernie, lstm, roberta, xlnet, got 't5'",
        ),
        ("task.json", "[]", "task.json is damaged, or of another version of onion"),
        ("task.json", '{"task": "sing"}', "unknown task 'sing'"),
        ("run.json", "", "run.json is missing or damaged"),
    ],
)
def test_a_model_that_somebody_has_damaged_is_refused(trained, make_settings, tmp_path, file, content, told):
    write(trained[0], tmp_path / "model", "ada/films")
    (tmp_path / "model" / file).write_text(content)
    with pytest.raises(OnionError, match=re.escape(told)):
        predicted(tmp_path / "model")
    settings = make_settings(init_from=str(tmp_path / "model"), init_head=True)
    with pytest.raises(OnionError, match=re.escape(told)):
        train(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
