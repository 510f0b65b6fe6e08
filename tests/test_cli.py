"""The command line, in processes of its own where it matters: signals, full disks, streams, what is imported."""

import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from logging import INFO, WARNING
from pathlib import Path

import pytest

from onion.checkpointing.lock import exclusive_lock
from onion.cli import Printable, main
from onion.data import files
from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES
from tests.abilities import needs_draws_again
from tests.commands import ONION, last_line, max_file_size, onion, place_in, plain
from tests.models.hub_server import UPLOADS, Repository, serving_hub
from tests.tasks.helpers import films, log_rows, snapshot, tiny_encoder, write_tsv

pytestmark = pytest.mark.slow

STEPS = 80  # of the training below: 320 texts in batches of 16, 4 times
MUCH = 1 << 21  # bytes; more than a pipe holds
LOUD = ["train", "--task", "classification", "--train", "a.tsv", "--dev", "b.tsv", "--encoder", "tiny"]
LOUD += ["--learning-rate", "3e-3", "--max-length", "16", "--batch-size", "16", "--passes", "4", "--test-every", "5"]
TRAINING = [*LOUD, "--quiet"]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return place_in(tmp_path_factory.mktemp("cli"))


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


@pytest.fixture(scope="module")
def trained(place):
    """A whole training; its folder is ``place / "run"``."""
    done = onion(place, *TRAINING, "--output", "run")
    assert (done.returncode, done.stderr) == (0, "")
    return done


def weights(out):
    return (out / f"step-{STEPS:08d}" / "gradient_machine.safetensors").read_bytes()


def ends_as_uninterrupted(done, trained, place, out):
    """Whether a training that was interrupted came to the same end, to the bit."""
    assert done.returncode == 0, done.stderr
    here, there = last_line(done.stdout), last_line(trained.stdout)
    assert {**here, "seconds": 0, "output": "run"} == {**there, "seconds": 0}
    assert weights(place / out) == weights(place / "run")
    assert log_rows(place / out) == log_rows(place / "run")
    assert folders(place / out) == folders(place / "run")
    return True


def folders(out):
    return sorted(path.name for path in out.iterdir() if path.is_dir())


# -- what it prints ---------------------------------------------------------------------------------------------------


def test_a_training_without_a_terminal_tells_on_standard_error_how_it_goes_on(place, tmp_path):
    done = onion(place, *LOUD, "--passes", "1", "--output", str(tmp_path / "out"))
    *_, last = done.stderr.splitlines()
    assert re.fullmatch(
        r"step 20/20, pass 1/1: loss=\S+ dev\.accuracy=.* learning_rate=0 .* steps/s, .* examples/s, \S+ in all", last
    )
    assert all(line.startswith("step ") for line in done.stderr.splitlines())
    assert "steps/s" not in done.stdout
    assert last_line(done.stdout)["step"] == 20


def test_training_draws_the_runner_first_and_ends_with_a_line_of_json_and_so_does_evaluation(trained, place):
    lines = trained.stdout.splitlines()
    assert lines[0].startswith("Runner")
    assert lines[1].startswith("╭ run_folder")
    assert "gradient_machine" in trained.stdout
    assert "\n".join(lines[:-1]) + "\n" == (place / "run" / "onion.txt").read_text(encoding="utf-8")
    report = json.loads(lines[-1])
    assert report["step"] == STEPS
    assert report["dev.accuracy"] > 0.9 > report["majority_accuracy"]
    done = onion(place, "evaluate", "--run", "run", "--input", "b.tsv")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert last_line(done.stdout)["accuracy"] == last_line(trained.stdout)["dev.accuracy"]


def test_the_whole_way_with_pairs_other_languages_and_another_order_of_columns(here, tmp_path, capsys):
    good, bad = "sehr gut 👍", "不好"
    rows = [{"label": label, "text_b": "über 中", "text_a": text} for text, label in films(64, 3, good, bad)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    table = "id,text_b,label,text_a\r\n"
    table += "".join(f'7,"{row["text_b"]}",{row["label"]},{row["text_a"]}\r\n' for row in rows)
    (tmp_path / "b.csv").write_text(table, encoding="utf-8-sig", newline="")
    data = ["--train", str(tmp_path / "a.jsonl"), "--dev", str(tmp_path / "b.csv")]
    settings = ["--encoder", "tiny", "--output", str(tmp_path / "out"), "--passes", "1", "--max-length", "20"]
    assert main(["train", "--task", "classification", *data, *settings]) == 0
    report = last_line(capsys.readouterr().out)
    assert main(["evaluate", "--run", str(tmp_path / "out"), "--input", str(tmp_path / "b.csv")]) == 0
    assert last_line(capsys.readouterr().out)["accuracy"] == report["dev.accuracy"]
    output = tmp_path / "pred.jsonl"
    words = ["predict", "--run", str(tmp_path / "out"), "--input", str(tmp_path / "a.jsonl")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert main([*words, "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == printed
    found = [json.loads(line) for line in printed.splitlines()]
    assert [each["index"] for each in found] == list(range(64))
    assert all(each["probabilities"].keys() == {good, bad} for each in found)
    assert all(abs(sum(each["probabilities"].values()) - 1) < 3e-6 for each in found)


def test_drawing_to_a_file_a_device_and_a_terminal_of_another_language(trained, here, tmp_path, capsys, place):
    for name in ("onion.txt", "onion.svg"):
        assert main(["draw", "--run", "run", "--output", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes() == (here / "run" / name).read_bytes()
    assert main(["draw", "--run", "run"]) == 0
    assert capsys.readouterr().out == (here / "run" / "onion.txt").read_text(encoding="utf-8")
    assert main(["draw", "--run", "run", "--output", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert main(["draw", "--run", "run", "--output", str(pipe)]) == 0
        assert reader.stdout.read() == (here / "run" / "onion.txt").read_bytes()
    assert pipe.is_fifo()
    done = onion(place, "draw", "--run", "run", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (place / "run" / "onion.txt").read_text(encoding="utf-8")


def test_training_again_changes_nothing_but_says_the_same(trained, here, capsys):
    before = snapshot(here / "run")
    assert main([*TRAINING, "--output", "run"]) == 0
    assert {**last_line(capsys.readouterr().out), "seconds": 0} == {**last_line(trained.stdout), "seconds": 0}
    assert snapshot(here / "run") == before


# -- interruptions ----------------------------------------------------------------------------------------------------

KILLED_WITHIN_A_CHECKPOINT = """
import os, signal, sys
from onion.checkpointing import checkpoint
write = checkpoint._write_file
def write_or_die(path, content):
    if path.name == "state.json" and path.parent.name.startswith("step-00000025"):
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, content)
checkpoint._write_file = write_or_die
"""

AFTER_BATCH_37 = """
import signal, sys
from onion import GradientMachine
on_batch = GradientMachine.on_batch
def on_batch_then_signal(self, state):
    on_batch(self, state)
    if state.step == 37:
        {signals}
GradientMachine.on_batch = on_batch_then_signal
"""


def signals(*names):
    """Python that sends these signals to its own thread (another could hand one on late), all together, in step 38."""
    sent = "; ".join(f"signal.raise_signal(signal.{name})" for name in names)
    blocked = f"signal.pthread_sigmask(signal.SIG_BLOCK, [{', '.join(f'signal.{name}' for name in names)}])"
    return AFTER_BATCH_37.format(signals=f"{blocked}; {sent}; signal.pthread_sigmask(signal.SIG_SETMASK, [])")


@needs_draws_again
def test_a_training_goes_on_with_another_number_of_threads_to_the_same_bits(place):
    """As on another machine; batches are large enough to be parted."""
    words = [*TRAINING, "--batch-size", "80", "--passes", "10"]  # 40 steps
    whole = onion(place, *words, "--output", "whole", "--threads", "1")
    assert (whole.returncode, whole.stderr) == (0, "")
    done = onion(place, *words, "--output", "moved", "--threads", "1", before=signals("SIGTERM"))
    assert done.returncode == 143, done.stderr
    done = onion(place, *words, "--output", "moved", "--threads", "3")
    assert (done.returncode, done.stderr) == (0, "onion: resumed from step 38 in moved\n")
    last = Path("step-00000040", "gradient_machine.safetensors")
    assert (place / "moved" / last).read_bytes() == (place / "whole" / last).read_bytes()
    assert log_rows(place / "moved") == log_rows(place / "whole")


@needs_draws_again
def test_killed_then_terminated_then_finished_gives_the_same_bits(trained, place):
    words = [*TRAINING, "--output", "killed"]
    done = onion(place, *words, before=KILLED_WITHIN_A_CHECKPOINT)
    assert done.returncode == -signal.SIGKILL
    assert folders(place / "killed")[0] != "step-00000025"
    assert "step-00000025.partial" in folders(place / "killed")

    done = onion(place, *words, before=signals("SIGTERM"))
    assert done.returncode == 143
    assert "resumed from step 20" in done.stderr
    assert "stopped at step 38; the same command resumes it" in done.stderr
    assert plain(done.stderr)
    assert last_line(done.stdout)["step"] == 38
    assert folders(place / "killed")[-1] == "step-00000038"

    done = onion(place, *words)
    assert done.stderr == "onion: resumed from step 38 in killed\n"
    assert ends_as_uninterrupted(done, trained, place, "killed")


TERMINAL = """
import fcntl, os, struct, sys, termios
os.setsid()
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""


def read_until(descriptor, wanted):
    """Read from a terminal until something shows; None: until the other side is closed."""
    seen = b""
    while wanted is None or wanted not in seen:
        try:
            block = os.read(descriptor, 4096)
        except OSError:  # Linux' way to say that nobody has the terminal open any more
            block = b""
        if not block:
            assert wanted is None, seen
            break
        seen += block
    return seen.decode()


@needs_draws_again
def test_disk_full_then_ctrl_c_at_a_terminal_then_finished_gives_the_same_bits(trained, place):
    words = [*TRAINING, "--output", "full"]
    done = onion(place, *words, before=max_file_size(50_000))  # the weights alone take 85 kB
    assert done.returncode == 2
    assert plain(done.stderr, "onion: cannot write the checkpoint full/step-00000005: File too large.")
    assert folders(place / "full") == []
    assert not list((place / "full").glob("*partial*"))

    ours, theirs = os.openpty()
    command = [sys.executable, "-c", TERMINAL, ONION, *LOUD, "--output", "full"]
    with subprocess.Popen(command, cwd=place, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        seen = read_until(ours, b"loss=")  # the progress bar
        os.write(ours, b"\x03")
        seen += read_until(ours, None)
        printed = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 130
    assert "pass 1" in seen
    assert "Traceback" not in seen
    stopped = last_line(printed)["step"]
    assert 0 < stopped < STEPS
    assert f"onion: stopped at step {stopped}; the same command resumes it" in seen

    done = onion(place, *words)
    assert done.stderr == f"onion: resumed from step {stopped} in full\n"
    assert ends_as_uninterrupted(done, trained, place, "full")


def test_a_second_signal_leaves_at_once_and_what_was_saved_stays_whole(trained, place):
    done = onion(place, *TRAINING, "--output", "twice", before=signals("SIGINT", "SIGTERM"))
    assert (done.returncode, done.stderr) == (143, "")
    assert folders(place / "twice")[-1] == "step-00000035"
    done = onion(place, "evaluate", "--run", "twice", "--input", "b.tsv")
    assert done.returncode == 0, done.stderr


def start_reading(place, name, content, *words):
    """Start a command that reads standard input under a name, and wait until it does."""
    name.symlink_to("/dev/stdin")
    theirs, ours = os.pipe()
    streams = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([ONION, *words], cwd=place, text=True, **streams)
    os.close(theirs)
    pipe = os.fdopen(ours, "wb", buffering=0)
    while content:
        content = content[pipe.write(content) :]  # more than a pipe holds: the other side has begun to read
    return process, pipe


def interrupted(process, pipe, number):
    """Send a signal to a command that reads a pipe; return its status and what it said."""
    process.send_signal(number)
    pipe.close()  # Python answers a signal that comes just before a read when the read ends, which could be never
    _, error = process.communicate()
    return process.returncode, error


INTERRUPTS = pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)


@INTERRUPTS
def test_interrupted_before_training_begins(place, tmp_path, number, status, word):
    config = tmp_path / "pipe.json"
    words = [*TRAINING, "--output", str(tmp_path / "out"), "--config", str(config)]
    process, pipe = start_reading(place, config, b" " * MUCH, *words)
    assert interrupted(process, pipe, number) == (status, f"onion: {word}\n")
    assert not (tmp_path / "out").exists()


@INTERRUPTS
def test_interrupted_prediction_leaves_the_old_output(trained, place, tmp_path, number, status, word):
    output, data = tmp_path / "out" / "pred.jsonl", tmp_path / "pipe.tsv"
    rows = b"text_a\n" + (b"film " * 500 + b"\n") * (MUCH // 2500)  # fewer than are read before the first is answered
    output.parent.mkdir()
    output.write_text("old")
    words = ["predict", "--run", "run", "--input", str(data), "--output", str(output)]
    process, pipe = start_reading(place, data, rows, *words)
    assert interrupted(process, pipe, number) == (status, f"onion: {word}\n")
    assert snapshot(tmp_path / "out") == {"pred.jsonl": b"old"}


def test_interrupted_while_paddle_loads(place, tmp_path):
    (tmp_path / "paddle.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)")
    done = onion(place, *LOUD, "--output", "never", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "onion: interrupted\n")
    assert not (place / "never").exists()


# -- streams and disks ------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_or_had_left_before_the_first_word(trained, place, tmp_path):
    many = write_tsv(tmp_path / "many.tsv", films(3000, seed=5))  # more than a pipe holds
    command = f"'{ONION}' predict --run run --input '{many}' | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert last_line(done.stdout)["index"] == 0
    ours, theirs = os.pipe()
    os.close(ours)
    done = onion(place, "draw", "--run", "run", stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
@pytest.mark.parametrize("words", [["draw", "--run", "run"], ["predict", "--run", "run", "--input", "b.tsv"]])
def test_no_space_under_standard_output(trained, place, words):
    with Path("/dev/full").open("w") as full:
        done = onion(place, *words, stdout=full)
    assert done.returncode == 2
    assert plain(done.stderr, "No space left on device")


def test_no_space_for_predictions_leaves_the_old_ones(trained, place, tmp_path):
    output = tmp_path / "pred.jsonl"
    output.write_text("old")
    words = ["predict", "--run", "run", "--input", "b.tsv", "--output", str(output)]
    done = onion(place, *words, before=max_file_size(2000))
    assert done.returncode == 2
    assert plain(done.stderr, f"onion: {output}: cannot be written: File too large")
    assert snapshot(tmp_path) == {"pred.jsonl": b"old"}


@pytest.mark.parametrize("size", [0, 1000])
def test_no_space_before_training_begins(place, tmp_path, size):
    """Not even for the small files; the same command goes on when there is space."""
    words = [*TRAINING, "--passes", "1", "--output", str(tmp_path / "out")]
    home = {"HOME": str(place)}  # without one Paddle looks for a temporary folder, which needs space too
    done = onion(place, *words, before=max_file_size(size), env=home)
    assert done.returncode == 2
    assert plain(done.stderr, "cannot write", "File too large")
    assert snapshot(tmp_path / "out").keys() <= {"run.json", "settings.json", "task.json", "config.json"}


def test_without_paddle(place, tmp_path):
    """Also where it is only a part of Paddle that is missing, the message does not lie."""
    (tmp_path / "paddle.py").write_text("raise ModuleNotFoundError(\"No module named 'paddle'\", name='paddle')")
    for words in ([*TRAINING, "--output", "never"], ["evaluate", "--run", "run", "--input", "b.tsv"]):
        done = onion(place, *words, env={"PYTHONPATH": str(tmp_path)})
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert "pip install 'onion-paddle[cpu]'" in done.stderr
    assert not (place / "never").exists()


# -- bad input --------------------------------------------------------------------------------------------------------


GOOD_ROWS = b"text_a\tlabel\na film\tgood\nthe plot\tbad\n"
GOOD_JSON = b'{"text_a": "a", "label": "good"}\n'
BAD_FILES = {
    "none.tsv": (None, ": there is no such file"),
    "folder.tsv": (None, ": this is a folder"),
    "empty.tsv": (b"", ":1: there is no header"),
    "blank.tsv": (b"\n\n", ":1: there is no header"),
    "header.tsv": (b"text_a\tlabel\n", ": there are no rows"),
    "no_text.tsv": (b"text\tlabel\na\tgood\n", ":1: the header has no column 'text_a'"),
    "no_label.tsv": (b"text_a\nfilm\n", ":1: the header has no column 'label'"),
    "too_many.tsv": (GOOD_ROWS + b"a\tgood\tmore\n", ":4: expected 2 columns, got 3"),
    "too_few.tsv": (GOOD_ROWS + b"a\n", ":4: expected 2 columns, got 1"),
    "gap.tsv": (GOOD_ROWS + b"\na\tgood\n", ":4: expected 2 columns, got 0"),
    "latin.tsv": (GOOD_ROWS + "über\tgood\n".encode("latin-1"), ":4: byte 0xfc at offset 0 of this line is not UTF-8"),
    "utf16.tsv": (GOOD_ROWS.decode().encode("utf-16"), ":1: a NUL byte"),
    "nul.tsv": (GOOD_ROWS + b"a\0\tgood\n", ":4: a NUL byte"),
    "twice.tsv": (b"text_a\ttext_a\tlabel\na\tb\tgood\n", ":1: the header has the column 'text_a' twice"),
    "quote.csv": (b'text_a,label\na,good\n"b,bad\nc,bad\n', ":3: broken CSV"),
    "array.jsonl": (GOOD_JSON + b"[1]\n", ":2: this line is a JSON list"),
    "broken.jsonl": (GOOD_JSON + b'{"text_a": "b", \n', ":2: broken JSON"),
    "number.jsonl": (GOOD_JSON + b'{"text_a": 5, "label": "bad"}\n', ":2: text_a is 5, not a string"),
    "half.jsonl": (GOOD_JSON + b'{"text_a": "\\ud83d", "label": "bad"}\n', ":2: text_a has an unpaired surrogate"),
    "some.jsonl": (GOOD_JSON + b'{"text_a": "b", "text_b": "b", "label": "bad"}\n', ":2: "),
    "file.txt": (GOOD_ROWS, ": cannot tell the format"),
}
"""Name -> content, what the message says behind the name."""


@pytest.fixture(params=BAD_FILES)
def bad_file(tmp_path_factory, request):
    """A bad file, and the message about it."""
    content, told = BAD_FILES[request.param]
    path = tmp_path_factory.mktemp("bad") / request.param
    if content is not None:
        path.write_bytes(content)
    elif "folder" in told:
        path.mkdir()
    return path, f"{path}{told}"


@pytest.fixture
def refused(here, capsys, caplog):
    """Run a command in this process; check that it ends with one or two plain lines and status 2."""

    def run(*words):
        caplog.clear()
        try:
            status = main(list(map(str, words)))
        except SystemExit as left:
            status = left.code
        told = capsys.readouterr()
        shown = [each for each in caplog.records if each.levelno >= (INFO if each.name == "onion" else WARNING)]
        logged = [f"onion: {record.getMessage()}" for record in shown]
        assert (status, told.out) == (2, "")
        error = "\n".join([*logged, told.err.rstrip("\n")])
        assert plain(error)
        return error

    return run


def with_options(words, *options):
    """Set options of a command: names and values in turn."""
    changed = list(words)
    for name, value in zip(options[::2], map(str, options[1::2]), strict=True):
        if name in changed:
            changed[changed.index(name) + 1] = value
        else:
            changed += [name, value]
    return changed


@pytest.mark.parametrize("role", ["--train", "--dev"])
def test_bad_file_to_train_with(refused, bad_file, tmp_path, role):
    path, told = bad_file
    assert told in refused(*with_options(TRAINING, role, path, "--output", tmp_path / "out"))
    assert snapshot(tmp_path) == {}


def test_bad_file_to_evaluate_and_predict(trained, refused, bad_file, tmp_path):
    path, told = bad_file
    assert told in refused("evaluate", "--run", "run", "--input", path)
    if path.name == "no_label.tsv":  # predict needs none
        return
    output = tmp_path / "pred.jsonl"
    words = ["predict", "--run", "run", "--input", path]
    assert told in refused(*words)
    assert told in refused(*words, "--output", output)
    assert snapshot(tmp_path) == {}
    output.write_bytes(b"old")
    assert told in refused(*words, "--output", output)
    assert snapshot(tmp_path) == {"pred.jsonl": b"old"}


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_never_ends_is_refused_at_once(trained, refused, tmp_path, kind):
    data, out = tmp_path / "a.tsv", tmp_path / "out"
    os.mkfifo(data) if kind == "pipe" else data.symlink_to("/dev/zero")
    for words in (
        with_options(TRAINING, "--train", data, "--output", out),
        with_options(TRAINING, "--config", data, "--output", out),
        ["evaluate", "--run", "run", "--input", data],
        ["predict", "--run", "run", "--input", data],
        ["embed", "--encoder", "tiny", "--input", data, "--output", out],
    ):
        assert f"{data}: this is a {kind}" in refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]


def test_a_line_of_standard_input_that_never_ends(trained, refused, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a film\n" + bytes(1001))))
    assert "standard input:2: this line has more than" in refused("predict", "--run", "run", "-")


def test_a_file_that_is_not_behind_its_flag_is_told_where_it_goes(refused):
    told = refused("predict", "--run", "run", "films.txt")
    assert "argument -: got 'films.txt'; give a file by --input, and a text by --text" in told


def test_nothing_that_is_echoed_moves_a_terminal(refused):
    told = refused(*with_options(TRAINING, "--dev", "none\x1b[2J.tsv", "--output", "x"))
    assert r"none\x1b[2J.tsv: there is no such file" in told
    record = logging.LogRecord("onion", logging.WARNING, "here", 1, "%s\x1b[2J", ("\ufeff",), None)
    assert Printable("onion: %(message)s").format(record) == r"onion: \ufeff\x1b[2J"


def test_unknown_label_and_one_label_only(trained, refused, tmp_path):
    data = write_tsv(tmp_path / "c.tsv", [("a", "good"), ("a", "bad"), ("a", "so\u2028so")])
    told = f"{data}:4: the label 'so\\u2028so' is unknown; the training file has 'bad', 'good'"
    assert told in refused(*with_options(TRAINING, "--dev", data, "--output", tmp_path / "out"))
    assert told in refused("evaluate", "--run", "run", "--input", data)
    assert snapshot(tmp_path).keys() == {"c.tsv"}
    data = write_tsv(tmp_path / "c.tsv", [("a", "good")])
    told = refused(*with_options(TRAINING, "--train", data, "--output", tmp_path / "out"))
    assert "all rows have the label 'good'" in told
    assert snapshot(tmp_path).keys() == {"c.tsv"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("--max-length", "25", "onion: --max-length 25: the encoder takes 3 to 24 tokens"),
        ("--max-length", "2", "onion: --max-length 2: the encoder takes 3 to 24 tokens"),
        ("--max-length", "0", "--max-length: must be an integer >= 1, got '0'"),
        ("--max-length", "16.5", "must be an integer >= 1, got '16.5'"),
        ("--passes", "-1", "must be an integer >= 1, got '-1'"),
        ("--threads", "0", "--threads: must be an integer >= 1, got '0'"),
        ("--batch-size", "x", "must be an integer >= 1, got 'x'"),
        ("--learning-rate", "0", "must be a number > 0, got '0'"),
        ("--learning-rate", "nan", "must be a number > 0, got 'nan'"),
        ("--learning-rate", "1e999", "must be a number > 0, got '1e999'"),
        ("--warmup-ratio", "1.1", "must be a number from 0 to 1, got '1.1'"),
        ("--weight-decay", "-1", "must be a number >= 0, got '-1'"),
        ("--seed", "-1", "must be an integer from 0 to 4294967295, got '-1'"),
        ("--seed", "4294967296", "must be an integer from 0 to 4294967295"),
        ("--task", "translate", "unknown task 'translate'; the tasks are classification"),
        ("--encoder", "nobody", "nobody: neither a folder nor a known model"),
        ("--encoder", "run", "run/model.safetensors: no such file"),
        ("--output", "a.tsv", "cannot write a.tsv/run.json: "),
        ("--output", "x" * 300, "File name too long"),
        ("--output", "tiny", "tiny holds config.json, but no run of onion"),
        ("--nothing", "1", "unrecognized arguments: --nothing"),
        ("--dev", "b\udcff.tsv", "is not UTF-8"),
    ],
)
def test_bad_settings(trained, refused, place, tmp_path, name, value, message):
    before = snapshot(place)
    assert message in refused(*with_options(TRAINING, "--output", tmp_path / "out", name, value))
    assert snapshot(place) == before
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("--learning-rate", "1e-3"), ("--seed", "2"), ("--passes", "5"), ("--dev", "a.tsv"), ("--warmup-ratio", "0")],
)
def test_a_folder_that_holds_another_run(trained, refused, place, name, value):
    before = snapshot(place)
    told = refused(*with_options(TRAINING, "--output", "run", name, value))
    assert "onion: run holds another run (" in told
    assert name.removeprefix("--").replace("-", "_") in told
    assert snapshot(place) == before


def test_another_run_continues_in_a_folder_if_forced(trained, place):
    shutil.copytree(place / "run", place / "other")
    words = with_options(TRAINING, "--output", "other", "--passes", "5")
    done = onion(place, *words, "--force-resume")
    assert done.returncode == 0, done.stderr
    assert "onion: continuing in other although it differs: passes 4 there, 5 here" in done.stderr
    assert last_line(done.stdout)["step"] == STEPS // 4 * 5
    again = onion(place, *words)
    told = f"onion: resumed from step {STEPS // 4 * 5} in other; it has all that is asked for, so nothing is trained\n"
    assert (again.returncode, again.stderr) == (0, told)


def test_the_same_name_with_other_data_is_another_run(trained, refused, place):
    original = (place / "a.tsv").read_bytes()
    write_tsv(place / "a.tsv", films(320, seed=9))
    try:
        before = snapshot(place)
        assert "run holds another run (the train file has other content)" in refused(*TRAINING, "--output", "run")
        assert snapshot(place) == before
    finally:
        (place / "a.tsv").write_bytes(original)


def test_a_folder_that_another_process_trains_in(trained, refused, place):
    before = snapshot(place)
    with exclusive_lock(place / "run", object()):
        assert "run is in use by another run" in refused(*TRAINING, "--output", "run")
    assert snapshot(place) == before


def narrow(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (narrow, "the weights do not fit the config: misshapen: "),
        (cut, "model.safetensors: damaged or not a safetensors file"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors: no such file"),
        (lambda folder: (folder / "config.json").unlink(), "config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: not a JSON file"),
        (lambda folder: (folder / "vocab.txt").unlink(), "contains neither tokenizer.json nor vocab.txt"),
        (lambda folder: (folder / "vocab.txt").write_text("a\nb\n"), "special tokens are missing"),
    ],
)
def test_bad_encoder(refused, place, tmp_path, harm, message):
    shutil.copytree(place / "tiny", tmp_path / "bad")
    harm(tmp_path / "bad")
    before = snapshot(tmp_path)
    # With many texts to be cut too: not a line about them beside the error.
    words = with_options(TRAINING, "--encoder", tmp_path / "bad", "--max-length", "4", "--output", tmp_path / "out")
    assert message in refused(*words)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", ["evaluate", "predict", "draw"])
@pytest.mark.parametrize("folder", ["none", "a.tsv", "tiny"])
def test_a_folder_without_a_run(refused, command, folder):
    data = {"evaluate": ["--input", "b.tsv"], "predict": ["--text", "a"], "draw": []}[command]
    assert f"onion: {folder} holds no run of onion" in refused(command, "--run", folder, *data)


@pytest.mark.parametrize("output", ["none/pred.jsonl", "tiny", "x" * 300, "a.tsv/pred.jsonl"])
def test_an_output_that_cannot_be_written(trained, refused, place, output):
    before = snapshot(place)
    assert "onion: " in refused("predict", "--run", "run", "--text", "a", "--output", output)
    assert snapshot(place) == before


@pytest.mark.parametrize("words", [[], ["train"], ["predict", "--run", "run"], ["sing"], ["weights", "get", "nobody"]])
def test_words_that_make_no_command(refused, words):
    refused(*words)


def test_debug_shows_where_it_happened(trained, here):
    with pytest.raises(Exception, match="there is no such file"):
        main(["evaluate", "--run", "run", "--input", "none.tsv", "--debug"])


def test_cut_texts_are_told_once_a_file(trained, place, tmp_path):
    data = write_tsv(tmp_path / "long.tsv", [("lovely " * 40, "good"), ("a", "bad"), ("sad " * 17, "bad")])
    told = f"onion: {data}: texts longer than 16 tokens, cut: 2\n"
    done = onion(place, "predict", "--run", "run", "--input", str(data))
    assert (done.returncode, done.stderr) == (0, told)
    assert len(done.stdout.splitlines()) == 3


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A hub with the repository a/bert, and empty caches."""
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    with serving_hub(tmp_path / "cache") as server:
        files = {path.name: path.read_bytes() for path in tiny_encoder(tmp_path / "bert").iterdir()}
        server.repositories["a/bert"] = Repository(files)
        yield server


def listed(place):
    done = onion(place, "weights", "ls")
    assert (done.returncode, done.stderr) == (0, "")
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def test_weights_come_from_the_hub_and_are_trained_without_it(served, place, tmp_path):
    done = onion(place, "weights", "get", "a/bert")
    folder = Path(done.stdout.rstrip("\n"))
    assert (done.returncode, done.stderr) == (0, "")
    assert folder.is_relative_to(tmp_path / "cache" / "hub")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.txt"]
    asked = len(served.requests)
    words = [word if word != "tiny" else "a/bert" for word in TRAINING]
    done = onion(place, *words, "--passes", "1", "--out", tmp_path / "run")
    assert (done.returncode, len(served.requests)) == (0, asked), done.stderr


def test_the_list_of_weights_says_what_is_here(served, place):
    served.repositories["google-bert/bert-base-uncased"] = served.repositories["a/bert"]
    rows = listed(place)
    assert rows["NAME"] == ["HERE", "SOURCE"]
    assert set(rows) - {"NAME"} == {*SOURCES, *REPOSITORIES, *ALIASES}
    assert rows["bert-base-uncased"] == ["no", "huggingface.co/google-bert/bert-base-uncased"]
    assert rows["ernie-1.0"] == ["no", "bj.bcebos.com", "(PaddleNLP)"]
    assert onion(place, "weights", "get", "bert-base-uncased").returncode == 0
    rows = listed(place)
    assert (rows["bert-base-uncased"][0], rows["minilm"][0]) == ("yes", "no")


def test_weights_that_cannot_be_fetched(served, refused):
    told = refused("weights", "get", "a/none")
    assert told.startswith(f"onion: {served.address}/a/none does not exist")
    assert "nobody: neither a folder nor a known model" in refused("weights", "get", "nobody")


# -- pushing -----------------------------------------------------------------------------------------------------------


@UPLOADS
def test_a_model_is_pushed_and_used_by_its_name(trained, served, here, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", served.token)
    before = snapshot(here)
    words = ["--license", "mit", "--language", "en", "--private"]
    assert main(["push", "ada/films", "--run", "run", *words]) == 0
    assert capsys.readouterr() == (f"{served.address}/ada/films\n", "")
    assert snapshot(here) == before
    assert b"license: mit" in served.repositories["ada/films"].files["README.md"]
    for command in ("predict", "evaluate"):
        answers = []
        for run in ("ada/films", "run"):
            assert main([command, "--run", run, "--input", "b.tsv"]) == 0
            answers.append(capsys.readouterr().out)
        assert answers[0] == answers[1]


def test_a_push_that_is_refused(trained, served, refused, monkeypatch, tmp_path):
    assert "ada/films cannot be uploaded to without a token" in refused("push", "ada/films", "--run", "run")
    monkeypatch.setenv("HF_TOKEN", served.token)
    assert "films: a repository of Hugging Face's hub is written OWNER/NAME" in refused("push", "films", "--run", "run")
    assert "tiny holds no run of onion" in refused("push", "ada/films", "--run", "tiny")
    assert "run holds one task; leave it out" in refused("push", "ada/films", "--run", "run", "--task", "films")
    assert "(HTTP 403)" in refused("push", "eve/films", "--run", "run")
    told = refused("predict", "--run", "ada/none", "--text", "a")
    assert told.startswith(f"onion: {served.address}/ada/none does not exist, nor does a folder ada/none")
    assert served.repositories.keys() == {"a/bert"}
    assert "cannot create a folder there" in refused("push", "ada/films", "--run", "run", "--output", "a.tsv")
