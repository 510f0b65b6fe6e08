"""``onion export``, and predictions and vectors of what it wrote, where Paddle is not installed."""

import json
from functools import partial

import numpy as np
import pytest

from tests.commands import onion as run_onion
from tests.commands import place_in
from tests.fresh_python import python
from tests.tasks.test_without_paddle import NO_PADDLE

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow


FILES = ["--train", "a.tsv", "--dev", "b.tsv", "--encoder", "tiny"]
TRAIN = [
    "train",
    "--task",
    "classification",
    *FILES,
    "--passes",
    "1",
    "--max-length",
    "16",
    "--output",
    "run",
    "--quiet",
]
VECTORS = ["--encoder", "tiny", "--pooling", "mean", "--normalize", "--max-length", "16"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an encoder, data, a trained run and what is exported of both."""
    folder = place_in(tmp_path_factory.mktemp("export"))
    for words in (TRAIN, ["export", "--run", "run", "--output", "model"], ["export", *VECTORS, "--output", "vectors"]):
        done = run_onion(folder, *words)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def onion(place):
    return partial(run_onion, place)


def without_paddle(place, *words):
    """The output of a command in a process that cannot import Paddle."""
    code = (
        f"{NO_PADDLE}\nimport os\nos.chdir({str(place)!r})\nfrom onion.cli import main\nsys.exit(main({list(words)!r}))"
    )
    return python(code)[0]


def test_the_report_is_a_line_of_json(onion, place):
    done = onion("export", "--run", "run", "--int8", "dynamic", "--output", "small")
    report = json.loads(done.stdout)
    assert (report["output"], report["format"], report["int8"]) == ("small", "onnx", "dynamic")
    assert report["bytes"] == sum(
        path.stat().st_size for path in (place / "small").iterdir() if path.name != "export.json"
    )
    assert report["compared"]["rows"] == 11


@pytest.mark.parametrize("words", [["--text", "a good film", "--text", "it"], ["--input", "b.tsv"]])
def test_predictions_are_those_of_the_run(words, onion, place):
    ours = [json.loads(line) for line in onion("predict", "--run", "run", *words).stdout.splitlines()]
    theirs = [json.loads(line) for line in without_paddle(place, "predict", "--run", "model", *words).splitlines()]
    assert [each["label"] for each in ours] == [each["label"] for each in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=2e-6)


def test_a_run_itself_is_predicted_with_where_paddle_is_missing(onion, place):
    ours = json.loads(onion("predict", "--run", "run", "--text", "a good film").stdout)
    theirs = json.loads(without_paddle(place, "predict", "--run", "run", "--text", "a good film"))
    assert ours["probabilities"] == pytest.approx(theirs["probabilities"], abs=2e-6)


def test_an_exported_model_is_evaluated(onion):
    ours, theirs = (json.loads(onion("evaluate", "--run", run, "--input", "b.tsv").stdout) for run in ("run", "model"))
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_an_exported_model_is_evaluated_without_paddle(onion, place):
    ours = json.loads(onion("evaluate", "--run", "run", "--input", "b.tsv").stdout)
    theirs = json.loads(without_paddle(place, "evaluate", "--run", "model", "--input", "b.tsv", "--threads", "1"))
    assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "--run", "vectors", "--input", "b.tsv"], "vectors holds an exported encoder, which has no task"),
        (["predict", "--run", "vectors", "--text", "x"], "onion embed takes it"),
        (
            ["train", *FILES[:4], "--task", "classification", "--init-from", "model", "--output", "never"],
            "no checkpoint",
        ),
        (["push", "ada/model", "--run", "model", "--output", "never"], "made by onion export and has no checkpoint"),
        (["predict", "--run", "model", "--text", "x", "--columns", "text_a=s"], "--columns needs --input with a file"),
        (["predict", "--run", "model", "--text", "x", "--output", "o.jsonl.gz"], "o.jsonl.gz: predictions are written"),
    ],
)
def test_where_an_export_is_not_what_is_needed_it_is_told(words, message, onion, place):
    done = onion(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert message in done.stderr
    assert not (place / "never").exists()


def test_the_ending_of_the_output_is_read_in_any_case(onion, place):
    assert onion("predict", "--run", "model", "--text", "a film", "--output", "O.CSV").returncode == 0
    assert (place / "O.CSV").read_text(encoding="utf-8").startswith("text_a,label,probabilities")


def test_what_is_written_to_a_device_is_not_said_to_be_unwritten(onion):
    done = onion("predict", "--run", "model", "--text", "a film", "--output", "/dev/full")
    assert done.stderr == "onion: /dev/full: cannot be written: No space left on device.\n"


def test_vectors_are_those_of_the_encoder(onion, place):
    words = ["--input", "b.tsv", "--pooling", "mean", "--normalize"]
    assert onion("embed", "--encoder", "tiny", "--max-length", "16", *words, "--output", "ours").returncode == 0
    without_paddle(place, "embed", "--encoder", "vectors", *words, "--output", "theirs", "--quiet")
    ours, theirs = (np.load(place / name / "cls_emb.npy") for name in ("ours", "theirs"))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_vectors_of_tokens_need_the_encoder(onion):
    done = onion("embed", "--encoder", "vectors", "--input", "b.tsv", "--tokens", "--output", "nowhere")
    assert done.returncode == 2
    assert "an exported encoder gives the vectors of texts only" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "nowhere"], "holds no run of onion"),
        (["--encoder", "nowhere"], "nowhere"),
        (["--encoder", "tiny", "--task", "x"], "--vocab are for --run only"),
        (["--run", "run", "--int8", "static"], "needs a calibration file"),
        (["--run", "model"], "was made by onion export"),
        (["--run", "run", "--max-length", "7"], "--max-length is for --encoder only; a run has its own"),
        (["--run", "run", "--normalize"], "--normalize is for --encoder only"),
        (["--run", "run", "--set", "labels=1"], "cannot be changed after training"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_leaves_nothing(words, message, onion, place):
    done = onion("export", *words, "--output", "never")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (place / "never").exists()
