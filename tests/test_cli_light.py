"""Commands that load nothing heavy: ``--help``, ``--version`` and ``draw``."""

import importlib.metadata
import platform
import re
import subprocess
import sys

import paddle
import pytest

import onion
from onion.cli import main
from onion.cli.parser import WHEELS, versions
from tests.patience import PATIENCE

HEAVY = ["paddle", "numpy", "tokenizers", "safetensors", "sentencepiece", "tqdm", "yaml"]
HEAVY += ["asyncio", "email", "http.client", "ssl", "sqlite3", "urllib.request", "multiprocessing", "unittest"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "begin"),
    [
        (["--help"], "usage: onion "),
        (["train", "--help"], "usage: onion train "),
        (["ctl", "--help"], "usage: onion ctl "),
        (["ctl", "status", "--help"], "usage: onion ctl status "),
        (["draw", "--run", "."], "Runner\n"),
    ],
)
def test_help_and_drawing_load_nothing_heavy(words, begin, tmp_path):
    (tmp_path / "onion.txt").write_text("Runner\n")
    code = f"""
import sys
from onion.cli import main
try:
    main({words})
finally:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout.startswith(begin)


def test_the_versions_of_onion_paddle_and_python(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    told = capsys.readouterr()
    assert (left.value.code, told.err) == (0, "")
    wheel = f"paddlepaddle(-gpu)? {re.escape(paddle.version.full_version)}"
    assert re.fullmatch(f"onion {onion.__version__}, {wheel}\\S*, Python {platform.python_version()}\n", told.out)
    assert importlib.metadata.version("onion-paddle") == onion.__version__


@pytest.mark.parametrize(
    ("here", "told"),
    [
        ({}, "no Paddle"),
        ({"paddlepaddle": "3.3.1"}, "paddlepaddle 3.3.1"),
        ({"paddlepaddle-gpu": "2.6.2"}, "paddlepaddle-gpu 2.6.2"),
        (dict.fromkeys(WHEELS, "1"), "paddlepaddle 1, paddlepaddle-gpu 1"),
    ],
)
def test_whichever_paddle_is_installed(monkeypatch, here, told):
    def version(name):
        if name not in here:
            raise importlib.metadata.PackageNotFoundError(name)
        return here[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert versions() == f"onion {onion.__version__}, {told}, Python {platform.python_version()}"
