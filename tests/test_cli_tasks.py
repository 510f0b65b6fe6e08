"""``onion train`` with settings from everywhere, ``onion predict`` on standard input; in processes of their own."""

import json
import os
import subprocess
import sys

import pytest

from onion.tasks.finetune.run_folder import TASK_FILE, read_json, read_record
from tests.patience import PATIENCE
from tests.tasks.helpers import films, log_rows, snapshot, tiny_encoder, write_tsv

pytestmark = pytest.mark.slow

FAST = {"learning_rate": "3e-3", "batch_size": 16, "max_length": 16, "passes": 2, "encoder": "tiny"}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an encoder, data and a config file, for processes to run in."""
    folder = tmp_path_factory.mktemp("cli")
    tiny_encoder(folder / "tiny")
    write_tsv(folder / "a.tsv", films(160, seed=1))
    write_tsv(folder / "b.tsv", films(40, seed=2))
    lines = {"task": "classification", "train": "a.tsv", "dev": "b.tsv", "label_smoothing": 0.1, **FAST}
    (folder / "fast.yaml").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    return folder


@pytest.fixture(scope="module")
def onion(place):
    """Run the command in a process of its own."""

    def run(*words, **options):
        command = [sys.executable, "-c", "import sys, onion.cli\nsys.exit(onion.cli.main())", *words]
        return subprocess.run(command, cwd=place, capture_output=True, check=False, timeout=PATIENCE, **options)

    return run


@pytest.fixture(scope="module")
def trained(onion):
    done = onion("train", "--config", "fast.yaml", "--output", "run", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout.splitlines()[-1])


def answers(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- settings ----------------------------------------------------------------------------------------------------------


def test_a_config_file_says_it_all_and_the_run_remembers(trained, place):
    record = read_record(place / "run")
    assert (record["learning_rate"], record["passes"], record["warmup_ratio"]) == (3e-3, 2, 0.1)
    assert record["options"] == {"label_smoothing": 0.1, "max_length": 16}
    assert read_json(place / "run", TASK_FILE)["label_smoothing"] == 0.1
    assert trained["step"] == 20


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
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 10
    assert b"shuffle" not in (tmp_path / "out" / "onion.txt").read_bytes()


# -- standard input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["-"], ["--input", "-"]])
def test_lines_in_lines_out(trained, onion, place, words):
    texts = [text for text, _ in films(40, seed=2)]
    found = answers(onion("predict", "--run", "run", *words, input="".join(f"{text}\n" for text in texts).encode()))
    assert [each["index"] for each in found] == list(range(40))
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


def test_files_where_the_task_has_none_are_refused_before_anything_is_read(trained, onion, tmp_path):
    done = onion("predict", "--run", "run", "--input", "none.tsv", "--files", str(tmp_path / "files"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"onion: --files: the task classification has none; its predictions are lines, see --output\n"
    assert snapshot(tmp_path) == {}


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_features_are_listed_and_deleted(trained, onion, place, tmp_path):
    env = {**os.environ, "ONION_HOME": str(tmp_path)}
    done = onion("evaluate", "--run", "run", "--input", "b.tsv", env=env)
    assert done.returncode == 0, done.stderr
    done = onion("cache", "ls", env=env)
    assert done.stderr == b""
    listed = done.stdout.decode().splitlines()
    assert len(listed) == 2
    assert listed[0].endswith("classification        b.tsv")
    assert listed[1].endswith(f"in {tmp_path / 'features'}")
    assert onion("cache", "clear", "--unused", "1", env=env).stdout.startswith(b"0.0 MB deleted")
    assert len(snapshot(tmp_path / "features")) > 1
    done = onion("cache", "clear", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert snapshot(tmp_path / "features") == {}


def test_a_setting_that_a_trained_model_has_not(trained, onion):
    done = onion("predict", "--run", "run", "--text", "a", "--set", "label_smoothing=0.2")
    assert done.returncode == 2
    assert (
        b"'label_smoothing' cannot be changed after training; of the task classification no setting can" in done.stderr
    )
