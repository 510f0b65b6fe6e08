"""Settings of ``onion train``, standard input of ``onion predict``, and ``onion embed``; in processes of their own."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from onion.tasks.finetune.run_files import TASK_FILE, read_json
from onion.tasks.finetune.run_folder import read_record
from tests.commands import max_file_size, place_in, plain
from tests.commands import onion as run_onion
from tests.patience import PATIENCE
from tests.tasks.helpers import HIDDEN, films, log_rows, snapshot, write_tsv

pytestmark = pytest.mark.slow

FAST = {"learning_rate": "3e-3", "batch_size": 16, "max_length": 16, "passes": 2, "encoder": "tiny"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an encoder, data and a config file."""
    folder = place_in(tmp_path_factory.mktemp("cli"))
    lines = {"task": "classification", "train": "a.tsv", "dev": "b.tsv", "label_smoothing": 0.1, **FAST}
    (folder / "fast.yaml").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    return folder


@pytest.fixture(scope="module")
def onion(place):
    """Run a command, with bytes for its streams."""
    return partial(run_onion, place, encoding=None)


@pytest.fixture(scope="module")
def trained(onion):
    done = onion("train", "--config", "fast.yaml", "--output", "run", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout.splitlines()[-1])


def answers(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_config_file_says_it_all_and_the_run_remembers(trained, place):
    record = read_record(place / "run")
    assert (record["learning_rate"], record["passes"], record["warmup_ratio"]) == (3e-3, 2, 0.1)
    assert record["options"] == {"label_smoothing": 0.1, "max_length": 16}
    assert read_json(place / "run", TASK_FILE)["label_smoothing"] == 0.1
    assert trained["step"] == 40


def test_flags_win_over_the_file_and_the_file_over_the_preset(onion, place, tmp_path):
    words = ["--preset", "ernie/lcqmc", "--config", "fast.yaml", "--passes", "1", "--set", "label_smoothing=0.2"]
    done = onion(
        "train", *words, "--task", "classify", "--set", 'class_weights={"bad": 2}', "--output", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stderr
    record = read_record(tmp_path / "out")
    assert record["task"] == "classification"  # whose alias was given
    assert (record["passes"], record["batch_size"], record["warmup_ratio"], record["weight_decay"]) == (1, 16, 0.0, 0.0)
    assert record["options"] == {"label_smoothing": 0.2, "max_length": 16, "class_weights": {"bad": 2}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "colour=red"], "unknown setting 'colour'; the task classification has max_length, "),
        (["--set", "colour"], "must be NAME=VALUE, got 'colour'"),
        (["--set", "label_smoothing=2"], "label_smoothing"),
        (["--preset", "ernie/none"], "unknown preset 'ernie/none'; the presets are ernie/bq"),
        (["--config", "none.yaml"], "none.yaml: there is no such file"),
        (["--task", "sing"], "unknown task 'sing'; the tasks are classification"),
        (["--set", "passes=1", "--passes", "2"], "passes is set twice, by --passes and by --set; remove one of them"),
        (["--set", "stride=1", "--set", "stride=2"], "stride is set twice, by --set and by --set"),
        (["--init-head"], "init_head needs init_from, the training to load the head from"),
        (["--init-from", "tiny"], "tiny: neither a folder of onion train nor a checkpoint in one"),
    ],
)
def test_settings_that_do_not_do_leave_nothing(onion, place, tmp_path, words, told):
    done = onion("train", "--config", "fast.yaml", *words, "--output", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert snapshot(tmp_path) == {}


def test_weights_learned_elsewhere(trained, onion, place, tmp_path):
    words = ["--init-from", "run", "--init-head", "--passes", "1", "--learning-rate", "1e-9", "--test-every", "1"]
    done = onion("train", "--config", "fast.yaml", *words, "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert log_rows(tmp_path / "out")[0]["dev.accuracy"] == trained["dev.accuracy"]


def test_a_stream_is_learned_in_the_order_of_its_file(onion, tmp_path):
    done = onion("train", "--config", "fast.yaml", "--stream", "--passes", "1", "--output", str(tmp_path / "out"))
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 20
    assert b"shuffle" not in (tmp_path / "out" / "onion.txt").read_bytes()


@pytest.mark.parametrize("words", [["-"], ["--input", "-"]])
def test_lines_in_lines_out(trained, onion, words):
    texts = "".join(f"{text}\n" for text, _ in films(70, seed=2))
    found = answers(onion("predict", "--run", "run", *words, input=texts.encode()))
    assert [each["index"] for each in found] == list(range(70))
    filed = answers(onion("predict", "--run", "run", "--input", "b.tsv"))
    for one, other in zip(found, filed, strict=True):
        assert one["label"] == other["label"]
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"a \xff film", "standard input:2: byte 3 of this line is not UTF-8"),
        (b"a\tb", "standard input:2: 2 tab-separated cells; this model reads text_a"),
        (b"{a}", "standard input:2: starts with '{' but is not a JSON object"),
        (b'{"text_a": 1}', "standard input:2: text_a is 1, not a string"),
    ],
)
def test_lines_that_do_not_do(trained, onion, line, told):
    done = onion("predict", "--run", "run", "-", input=b"a film\n" + line + b"\n")
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"onion: {told}")


def test_nothing_in_nothing_out(trained, onion):
    done = onion("predict", "--run", "run", "-", input=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_person_who_types_is_answered_line_by_line(trained, place):
    import pty

    ours, theirs = pty.openpty()
    code = "import sys, onion.cli\nsys.exit(onion.cli.main(['predict', '--run', 'run', '-']))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=place, stdin=theirs, stdout=subprocess.PIPE) as running:
        os.close(theirs)
        for index, text in enumerate(["a lovely film", "an awful plot"]):
            os.write(ours, f"{text}\n".encode())
            assert json.loads(running.stdout.readline())["index"] == index  # before the next line is typed
        os.write(ours, b"\x04")  # end of the input
        assert running.stdout.read() == b""
        assert running.wait(timeout=PATIENCE) == 0
    os.close(ours)


@pytest.fixture(scope="module")
def reviews(place):
    """A table as people have it: other names, an id, commas in the texts."""
    rows = "".join(f'{number},"{text}, and so on",{label}\n' for number, (text, label) in enumerate(films(30, seed=3)))
    (place / "reviews.csv").write_text(f"id,sentence,Sentiment\n{rows}")
    return "reviews.csv", "--columns", "text_a=sentence,label=Sentiment"


def test_a_table_of_ones_own_in_and_out(trained, onion, reviews, place, tmp_path):
    words = ["--carry", "id,text_a,label", "--output", str(tmp_path / "predictions.csv")]
    done = onion("predict", "--run", "run", "--input", *reviews, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with (tmp_path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    names = ["index", "id", "text_a", "input.label", "label", "probabilities.bad", "probabilities.good"]
    assert [list(row) for row in found] == [names] * 30
    assert [(row["id"], row["text_a"], row["input.label"]) for row in found] == [
        (str(number), f"{text}, and so on", label) for number, (text, label) in enumerate(films(30, seed=3))
    ]


def test_a_report_of_an_evaluation(trained, onion, reviews, tmp_path):
    words = ["evaluate", "--run", "run", "--input", *reviews, "--report", tmp_path / "report"]
    (figures,) = answers(onion(*words))
    assert read_json(tmp_path / "report", "report.json")["figures"] == figures
    names = {"report.json", "per_class.csv", "confusion_matrix.csv", "confusion_matrix.svg", "errors.csv"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == names
    assert answers(onion(*words)) == [figures]  # it replaces its own report
    done = onion(*words[:-1], "run")
    told = b"onion: run: is not empty, and nothing is overwritten; choose a new folder.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--input", "reviews.csv", "--columns", "text_a=Sentence"], "reviews.csv:2: there is no column 'Sentence'"),
        (["--input", "reviews.csv", "--columns", "text_a"], "--columns"),
        (["--text", "a film", "--carry", "id"], "--carry needs --input with a file, which has columns"),
        (["--input", "b.tsv", "--carry", "id"], "b.tsv:1: the header has no column 'id'; it has 'text_a', 'label'"),
    ],
)
def test_columns_that_are_not_there(trained, reviews, onion, tmp_path, words, told):
    done = onion("predict", "--run", "run", *words, "--output", tmp_path / "out.csv")
    assert (done.returncode, done.stdout) == (2, b"")
    assert plain(done.stderr.decode(), told)
    assert snapshot(tmp_path) == {}


def test_files_where_the_task_has_none_are_refused_before_anything_is_read(trained, onion, tmp_path):
    done = onion("predict", "--run", "run", "--input", "none.tsv", "--files", str(tmp_path / "files"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"onion: --files: the task classification has none; its predictions are lines, see --output\n"
    assert snapshot(tmp_path) == {}


def test_features_are_listed_and_deleted(trained, onion, tmp_path):
    env = {"ONION_HOME": str(tmp_path)}
    done = onion("evaluate", "--run", "run", "--input", "b.tsv", env=env)
    assert done.returncode == 0, done.stderr
    done = onion("cache", "ls", env=env)
    assert done.stderr == b""
    first, last = done.stdout.decode().splitlines()
    assert first.endswith("classification        b.tsv")
    assert last.endswith(f"in {tmp_path / 'features'}")
    assert onion("cache", "clear", "--unused", "1", env=env).stdout.startswith(b"0.0 MB deleted")
    assert len(snapshot(tmp_path / "features")) > 1
    done = onion("cache", "clear", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert snapshot(tmp_path / "features") == {}


def test_a_setting_that_a_trained_model_has_not(trained, onion):
    done = onion("predict", "--run", "run", "--text", "a", "--set", "label_smoothing=0.2")
    told = b"'label_smoothing' cannot be changed after training; of the task classification no setting can"
    assert (done.returncode, told in done.stderr) == (2, True)


TINY = ["embed", "--encoder", "tiny", "--max-length", "24", "--quiet"]
STOPPED = """
import os, signal
from onion.cli.commands import start_paddle
start_paddle()  # it loads Paddle without Paddle's warnings
from onion.tasks.networks.pooled_encoder import PooledEncoder
forward, done = PooledEncoder.forward, []
def stop(self, batch):
    done.append(batch)
    if len(done) == 3:
        os.kill(os.getpid(), signal.{})
    return forward(self, batch)
PooledEncoder.forward = stop
"""


def test_embed_writes_files_and_prints_a_line_of_json(place):
    words = ["--pooling", "mean", "--normalize", "--tokens", "--layer", "1", "--batch-size", "16"]
    done = run_onion(place, *TINY, "--input", "a.tsv", "--output", "whole", *words)
    assert (done.returncode, done.stderr) == (0, "")
    lengths = np.load(place / "whole" / "lengths.npy")
    total = int(lengths.sum())
    assert json.loads(done.stdout) == {"rows": 320, "tokens": total, "hidden": HIDDEN, "output": "whole"}
    assert np.load(place / "whole" / "top_layer_emb.npy", mmap_mode="r").shape == (total, HIDDEN)
    vectors = np.load(place / "whole" / "cls_emb.npy")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(320), atol=1e-5)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--input", "none.tsv", "--output", "o"], ["none.tsv: there is no such file"]),
        (["--input", "a.tsv", "--output", "tiny"], ["tiny: is not empty", "choose a new folder"]),
        (["--input", "a.tsv", "--output", "o", "--layer", "3"], ["layer 3", "layers 1 to 2"]),
        (["--input", "a.tsv", "--output", "o", "--layer", "0"], ["--layer", "'0'"]),
        (["--input", "a.tsv", "--output", "o", "--pooling", "max"], ["--pooling", "cls", "mean", "pooler"]),
        (["--input", "a.tsv", "--output", "o", "--max-length", "25"], ["--max-length 25", "3 to 24 tokens"]),
        (["--input", "a.tsv", "--output", "o", "--encoder", "none"], ["none: neither a folder nor a known model"]),
        (["--input", "a.tsv"], ["--output"]),
    ],
)
def test_mistakes_are_told_in_plain_lines_and_change_nothing(place, words, parts):
    before = snapshot(place)
    done = run_onion(place, *TINY, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert plain(done.stderr, *parts)
    assert snapshot(place) == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_nothing(place, name):
    before = snapshot(place)
    words = ["--input", "a.tsv", "--output", "new/o", "--tokens", "--batch-size", "16"]
    done = run_onion(place, *TINY, *words, before=STOPPED.format(name))
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.Signals[name], "", f"onion: {said}\n")
    assert snapshot(place) == before


def test_a_full_disk_leaves_nothing(place):
    before = snapshot(place)
    done = run_onion(place, *TINY, "--input", "a.tsv", "--output", "o", "--tokens", before=max_file_size(8192))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "onion: o: cannot be written: File too large; nothing was written.\n"
    assert snapshot(place) == before


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_with_the_input(place):
    # Not ru_maxrss: Linux starts a process's at what its parent, the tests, had.
    tell = "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    chance = random.Random(1)
    most = []
    for rows in (2_000, 20_000):
        texts = [" ".join(chance.choices(["film", "lovely", "was"], k=chance.randrange(1, 400))) for _ in range(rows)]
        data = write_tsv(place / f"{rows}.tsv", [(text,) for text in texts], ("text_a",))
        words = ["--input", data.name, "--output", f"{rows}", "--tokens", "--batch-size", "16"]
        done = run_onion(place, *TINY, *words, after=tell)
        assert done.returncode == 0, done.stderr
        report, peak = done.stdout.splitlines()
        most.append(int(peak) * 1024)
    # The larger one reads 20 MB of text and writes 60 MB of vectors.
    assert data.stat().st_size + (place / f"{rows}" / "top_layer_emb.npy").stat().st_size > 70_000_000
    assert json.loads(report)["rows"] == 20_000
    assert abs(most[1] - most[0]) < 15_000_000
