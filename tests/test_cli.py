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
import sysconfig
from logging import INFO, WARNING
from pathlib import Path

import pytest

from onion.checkpointing.lock import exclusive_lock
from onion.cli import Printable, main
from onion.data import files
from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES
from tests.abilities import needs_draws_again
from tests.models.hub_server import Repository, serving_hub
from tests.tasks.helpers import films, log_rows, snapshot, tiny_encoder, write_tsv

pytestmark = pytest.mark.slow

ONION = str(Path(sysconfig.get_path("scripts")) / "onion")
STEPS = 80  # of the training below: 320 texts in batches of 16, 4 times
MUCH = 1 << 21  # bytes; more than a pipe holds
TRAINING = [
    "train",
    "--task",
    "classification",
    "--train",
    "a.tsv",
    "--dev",
    "b.tsv",
    "--encoder",
    "tiny",
    "--learning-rate",
    "3e-3",
]
TRAINING += ["--max-length", "16", "--batch-size", "16", "--passes", "4", "--test-every", "5"]
LOUD, TRAINING = TRAINING, [*TRAINING, "--quiet"]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """So small a network gains nothing by more, and loses much on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an encoder and data, for processes to run in."""
    folder = tmp_path_factory.mktemp("cli")
    tiny_encoder(folder / "tiny")
    write_tsv(folder / "a.tsv", films(320, seed=1))
    write_tsv(folder / "b.tsv", films(70, seed=2))
    return folder


def onion(place, *words, before="", **options):
    """Run the command in a process of its own; ``before`` is Python that runs first, in the same process."""
    command = (
        [ONION] if not before else [sys.executable, "-c", f"{before}\nimport onion.cli\nsys.exit(onion.cli.main())"]
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*command, *words], cwd=place, text=True, encoding="utf-8", check=False, **streams)


def only_size(bytes_):
    """Python that lets no file of this process grow beyond a size, as on a full disk."""
    return f"import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_}, resource.RLIM_INFINITY))"


def last_line(text):
    return json.loads(text.splitlines()[-1])


def plain(error, *parts):
    """Whether it is one or two plain lines with these parts."""
    lines = error.splitlines()
    assert 1 <= len(lines) <= 2, error
    assert all(line.startswith(("onion", "See onion")) for line in lines), error
    assert "Traceback" not in error
    for part in parts:
        assert part in error
    return True


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


def test_help_and_drawing_need_no_paddle(place, trained):
    code = "import sys, onion.cli\ntry:\n    onion.cli.main(sys.argv[1:])\nfinally:\n    print(*sys.modules)"
    for words in (["--help"], ["train", "--help"], ["draw", "--run", "run"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=place, capture_output=True, text=True, check=True
        )
        assert done.stdout
        assert not {"paddle", "numpy", "tokenizers"} & set(done.stdout.splitlines()[-1].split())


def test_training_draws_the_onion_first_and_ends_with_a_line_of_json(trained, place):
    lines = trained.stdout.splitlines()
    assert lines[0].startswith("Runner")
    assert lines[1].startswith("╭ run_folder")
    assert "gradient_machine" in trained.stdout
    assert "\n".join(lines[:-1]) + "\n" == (place / "run" / "onion.txt").read_text(encoding="utf-8")
    report = json.loads(lines[-1])
    assert report["step"] == STEPS
    assert report["dev.accuracy"] > 0.9 > report["majority_accuracy"]


def test_evaluation_prints_one_line_with_the_accuracy_of_training(trained, place):
    done = onion(place, "evaluate", "--run", "run", "--input", "b.tsv")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert last_line(done.stdout)["accuracy"] == last_line(trained.stdout)["dev.accuracy"]


def test_the_whole_way_with_pairs_other_languages_and_another_order_of_columns(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(place)
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


def test_drawing_to_a_file(trained, place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for name in ("onion.txt", "onion.svg"):
        assert main(["draw", "--run", "run", "--output", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes() == (place / "run" / name).read_bytes()
    assert main(["draw", "--run", "run"]) == 0
    assert capsys.readouterr().out == (place / "run" / "onion.txt").read_text(encoding="utf-8")


def test_training_again_changes_nothing_but_says_the_same(trained, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    before = snapshot(place / "run")
    assert main([*TRAINING, "--output", "run"]) == 0
    assert {**last_line(capsys.readouterr().out), "seconds": 0} == {**last_line(trained.stdout), "seconds": 0}
    assert snapshot(place / "run") == before


def test_output_is_utf_8_whatever_the_terminal_speaks(trained, place):
    done = onion(place, "draw", "--run", "run", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (place / "run" / "onion.txt").read_text(encoding="utf-8")


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


def test_no_number_of_threads_is_refused_in_two_lines(place):
    done = onion(place, "predict", "--run", "run", "--text", "x", "--threads", "0")
    assert done.returncode == 2
    assert plain(done.stderr, "--threads: must be a whole number from 1, got '0'")


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
    done = onion(place, *words, before=only_size(50_000))  # the weights alone take 85 kB
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


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_interrupted_before_training_begins(place, tmp_path, number, status, word):
    config = tmp_path / "pipe.json"
    words = [*TRAINING, "--output", str(tmp_path / "out"), "--config", str(config)]
    process, pipe = start_reading(place, config, b" " * MUCH, *words)
    assert interrupted(process, pipe, number) == (status, f"onion: {word}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
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
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = onion(place, *LOUD, "--output", "never", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "onion: interrupted\n")
    assert not (place / "never").exists()


# -- streams and disks ------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves(trained, place, tmp_path):
    many = write_tsv(tmp_path / "many.tsv", films(3000, seed=5))  # more than a pipe holds
    command = f"'{ONION}' predict --run run --input '{many}' | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert last_line(done.stdout)["index"] == 0


def test_a_reader_that_left_before_the_first_word(trained, place):
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
    done = onion(place, *words, before=only_size(2000))
    assert done.returncode == 2
    assert plain(done.stderr, f"onion: {output}: cannot be written: File too large")
    assert snapshot(tmp_path) == {"pred.jsonl": b"old"}


@pytest.mark.parametrize("size", [0, 1000])
def test_no_space_before_training_begins(place, tmp_path, size):
    """Not even for the small files; the same command goes on when there is space."""
    home = {**os.environ, "HOME": str(place)}  # without one Paddle looks for a temporary folder, which needs space too
    done = onion(place, *TRAINING, "--passes", "1", "--output", str(tmp_path / "out"), before=only_size(size), env=home)
    assert done.returncode == 2
    assert plain(done.stderr, "cannot write", "File too large")
    small = {"run.json", "settings.json", "task.json", "config.json"}
    assert snapshot(tmp_path / "out").keys() <= small


def test_without_paddle(place):
    """Also where it is only a part of Paddle that is missing, the message does not lie."""
    before = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "paddle":
            raise ModuleNotFoundError("No module named 'paddle'", name="paddle")
sys.meta_path.insert(0, Nothing())
"""
    for words in ([*TRAINING, "--output", "never"], ["evaluate", "--run", "run", "--input", "b.tsv"]):
        done = onion(place, *words, before=before)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert "pip install 'onion-paddle[cpu]'" in done.stderr
    assert not (place / "never").exists()


def test_devices_are_written_to_and_not_replaced(trained, place, tmp_path, monkeypatch):
    monkeypatch.chdir(place)
    assert main(["draw", "--run", "run", "--output", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert main(["draw", "--run", "run", "--output", str(pipe)]) == 0
        assert reader.stdout.read() == (place / "run" / "onion.txt").read_bytes()
    assert pipe.is_fifo()


# -- bad input --------------------------------------------------------------------------------------------------------


def files_of(folder):
    """Bad files of every kind: name -> (what the message says, whether it needs a label)."""
    good = "text_a\tlabel\na film\tgood\nthe plot\tbad\n"
    contents = {
        "empty.tsv": b"",
        "blank.tsv": b"\n\n",
        "header.tsv": b"text_a\tlabel\n",
        "no_text.tsv": b"text\tlabel\na\tgood\n",
        "no_label.tsv": b"text_a\nfilm\n",
        "too_many.tsv": good.encode() + b"a\tgood\tmore\n",
        "too_few.tsv": good.encode() + b"a\n",
        "gap.tsv": good.encode() + b"\na\tgood\n",
        "latin.tsv": good.encode() + "über\tgood\n".encode("latin-1"),
        "utf16.tsv": good.encode("utf-16"),
        "nul.tsv": good.encode() + b"a\0\tgood\n",
        "twice.tsv": b"text_a\ttext_a\tlabel\na\tb\tgood\n",
        "quote.csv": b'text_a,label\na,good\n"b,bad\nc,bad\n',
        "array.jsonl": b'{"text_a": "a", "label": "good"}\n[1]\n',
        "broken.jsonl": b'{"text_a": "a", "label": "good"}\n{"text_a": "b", \n',
        "number.jsonl": b'{"text_a": "a", "label": "good"}\n{"text_a": 5, "label": "bad"}\n',
        "half.jsonl": b'{"text_a": "a", "label": "good"}\n{"text_a": "\\ud83d", "label": "bad"}\n',
        "some.jsonl": b'{"text_a": "a", "label": "good"}\n{"text_a": "b", "text_b": "b", "label": "bad"}\n',
        "file.txt": good.encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder.tsv").mkdir()


BAD_FILES = {
    "none.tsv": "none.tsv: there is no such file",
    "folder.tsv": "folder.tsv: this is a folder",
    "empty.tsv": "empty.tsv:1: there is no header",
    "blank.tsv": "blank.tsv:1: there is no header",
    "header.tsv": "header.tsv: there are no rows",
    "no_text.tsv": "no_text.tsv:1: the header has no column 'text_a'",
    "no_label.tsv": "no_label.tsv:1: the header has no column 'label'",
    "too_many.tsv": "too_many.tsv:4: expected 2 columns, got 3",
    "too_few.tsv": "too_few.tsv:4: expected 2 columns, got 1",
    "gap.tsv": "gap.tsv:4: expected 2 columns, got 0",
    "latin.tsv": "latin.tsv:4: byte 0xfc at offset 0 of this line is not UTF-8",
    "utf16.tsv": "utf16.tsv:1: a NUL byte",
    "nul.tsv": "nul.tsv:4: a NUL byte",
    "twice.tsv": "twice.tsv:1: the header has the column 'text_a' twice",
    "quote.csv": "quote.csv:3: broken CSV",
    "array.jsonl": "array.jsonl:2: this line is a JSON list",
    "broken.jsonl": "broken.jsonl:2: broken JSON",
    "number.jsonl": "number.jsonl:2: text_a is 5, not a text",
    "half.jsonl": "half.jsonl:2: text_a holds half of a surrogate pair",
    "some.jsonl": "some.jsonl:2: ",
    "file.txt": "file.txt: cannot tell the format",
}


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    files_of(folder)
    return folder


@pytest.fixture
def refused(place, monkeypatch, capsys, caplog):
    """Run a command in this process; check that it ends with one or two plain lines and status 2."""
    monkeypatch.chdir(place)

    def run(*words):
        caplog.clear()
        try:
            status = main(list(words))
        except SystemExit as left:
            status = left.code
        told = capsys.readouterr()
        shown = [each for each in caplog.records if each.levelno >= (INFO if each.name == "onion" else WARNING)]
        logged = [f"onion: {record.getMessage()}" for record in shown]
        assert status == 2
        assert told.out == ""
        error = "\n".join([*logged, told.err.rstrip("\n")])
        assert plain(error)
        return error

    return run


def with_option(words, name, value):
    changed = list(words)
    if name in changed:
        changed[changed.index(name) + 1] = value
        return changed
    return [*changed, name, value]


@pytest.mark.parametrize("role", ["--train", "--dev"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_to_train_with(refused, bad_files, tmp_path, role, name):
    words = with_option(TRAINING, role, str(bad_files / name))
    assert f"{bad_files}/{BAD_FILES[name]}" in refused(*words, "--output", str(tmp_path / "out"))
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_to_evaluate_and_predict(trained, refused, bad_files, tmp_path, name):
    assert f"{bad_files}/{BAD_FILES[name]}" in refused("evaluate", "--run", "run", "--input", str(bad_files / name))
    if name == "no_label.tsv":  # predict needs none
        return
    output = tmp_path / "pred.jsonl"
    words = ["predict", "--run", "run", "--input", str(bad_files / name)]
    assert f"{bad_files}/{BAD_FILES[name]}" in refused(*words)
    for before in ({}, {"pred.jsonl": b"old"}):
        for old, content in before.items():
            (tmp_path / old).write_bytes(content)
        assert f"{bad_files}/{BAD_FILES[name]}" in refused(*words, "--output", str(output))
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_never_ends_is_refused_at_once(trained, refused, tmp_path, kind):
    data = tmp_path / "a.tsv"
    os.mkfifo(data) if kind == "pipe" else data.symlink_to("/dev/zero")
    told = f"{data}: this is a {kind}"
    out = str(tmp_path / "out")
    assert told in refused(*with_option(TRAINING, "--train", str(data)), "--output", out)
    assert told in refused(*with_option(TRAINING, "--config", str(data)), "--output", out)
    assert told in refused("evaluate", "--run", "run", "--input", str(data))
    assert told in refused("predict", "--run", "run", "--input", str(data))
    assert told in refused("embed", "--encoder", "tiny", "--input", str(data), "--output", out)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]


def test_a_line_of_standard_input_that_never_ends(trained, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a film\n" + bytes(1001))))
    assert main(["predict", "--run", "run", "-"]) == 2
    assert "standard input:2: this line has more than" in capsys.readouterr().err


def test_nothing_that_is_echoed_moves_a_terminal(refused):
    assert r"none\x1b[2J.tsv: there is no such file" in refused(
        *with_option(TRAINING, "--dev", "none\x1b[2J.tsv"), "--output", "x"
    )
    record = logging.LogRecord("onion", logging.WARNING, "here", 1, "%s\x1b[2J", ("\ufeff",), None)
    assert Printable("onion: %(message)s").format(record) == r"onion: \ufeff\x1b[2J"


def test_unknown_label(trained, refused, tmp_path):
    data = write_tsv(tmp_path / "c.tsv", [("a", "good"), ("a", "bad"), ("a", "so\u2028so")])
    told = f"{data}:4: the label 'so\\u2028so' is none of those that are learned: 'bad', 'good'"
    assert told in refused(*with_option(TRAINING, "--dev", str(data)), "--output", str(tmp_path / "out"))
    assert told in refused("evaluate", "--run", "run", "--input", str(data))
    assert snapshot(tmp_path).keys() == {"c.tsv"}


def test_one_label_only(refused, tmp_path):
    data = write_tsv(tmp_path / "c.tsv", [("a", "good")])
    words = with_option(TRAINING, "--train", str(data))
    assert "all rows have the label 'good'" in refused(*words, "--output", str(tmp_path / "out"))
    assert snapshot(tmp_path).keys() == {"c.tsv"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("--max-length", "25", "onion: --max-length 25: the encoder takes 3 to 24 tokens"),
        ("--max-length", "2", "onion: --max-length 2: the encoder takes 3 to 24 tokens"),
        ("--max-length", "0", "--max-length: must be a whole number from 1, got '0'"),
        ("--max-length", "16.5", "must be a whole number from 1, got '16.5'"),
        ("--passes", "-1", "must be a whole number from 1, got '-1'"),
        ("--batch-size", "x", "must be a whole number from 1, got 'x'"),
        ("--learning-rate", "0", "must be a number above 0, got '0'"),
        ("--learning-rate", "nan", "must be a number above 0, got 'nan'"),
        ("--learning-rate", "1e999", "must be a number above 0, got '1e999'"),
        ("--warmup-ratio", "1.1", "must be a number from 0 to 1, got '1.1'"),
        ("--weight-decay", "-1", "must be a number from 0, got '-1'"),
        ("--seed", "-1", "must be a whole number from 0 to 4294967295, got '-1'"),
        ("--seed", "4294967296", "must be a whole number from 0 to 4294967295"),
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
    words = with_option(with_option(TRAINING, "--output", str(tmp_path / "out")), name, value)
    assert message in refused(*words)
    assert snapshot(place) == before
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("--learning-rate", "1e-3"), ("--seed", "2"), ("--passes", "5"), ("--dev", "a.tsv"), ("--warmup-ratio", "0")],
)
def test_a_folder_that_holds_another_run(trained, refused, place, name, value):
    before = snapshot(place)
    words = with_option(with_option(TRAINING, "--output", "run"), name, value)
    told = refused(*words)
    assert "onion: run holds another run (" in told
    assert name.removeprefix("--").replace("-", "_") in told
    assert snapshot(place) == before


def test_another_run_continues_in_a_folder_if_forced(trained, place):
    """With one more pass, here; what differs is told."""
    shutil.copytree(place / "run", place / "other")
    words = with_option(with_option(TRAINING, "--output", "other"), "--passes", "5")
    done = onion(place, *words, "--force-resume")
    assert done.returncode == 0, done.stderr
    assert "onion: continuing in other although it differs: passes 4 there, 5 here" in done.stderr
    assert last_line(done.stdout)["step"] == STEPS // 4 * 5
    again = onion(place, *words)
    assert (again.returncode, again.stderr) == (0, f"onion: resumed from step {STEPS // 4 * 5} in other\n")


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
        (lambda folder: (folder / "vocab.txt").unlink(), "holds neither tokenizer.json nor vocab.txt"),
        (lambda folder: (folder / "vocab.txt").write_text("a\nb\n"), "special tokens are missing"),
    ],
)
def test_bad_encoder(refused, place, tmp_path, harm, message):
    shutil.copytree(place / "tiny", tmp_path / "bad")
    harm(tmp_path / "bad")
    before = snapshot(tmp_path)
    words = with_option(TRAINING, "--encoder", str(tmp_path / "bad"))
    # With many texts to be cut too: not a line about them beside the error.
    assert message in refused(*with_option(words, "--max-length", "4"), "--output", str(tmp_path / "out"))
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


def test_debug_shows_where_it_happened(trained, place, monkeypatch):
    monkeypatch.chdir(place)
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
