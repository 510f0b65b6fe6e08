"""``onion --version``: one line, and nothing heavy is loaded for it."""

import importlib.metadata
import platform
import re

import paddle
import pytest

import onion
from onion.cli import main
from onion.cli.version import WHEELS, versions


def test_it_tells_the_versions_of_onion_paddle_and_python(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    told = capsys.readouterr()
    assert (left.value.code, told.err) == (0, "")
    wheel = f"paddlepaddle(-gpu)? {re.escape(paddle.version.full_version)}"
    assert re.fullmatch(f"onion {onion.__version__}, {wheel}\\S*, Python {platform.python_version()}\n", told.out)


@pytest.mark.parametrize(
    ("here", "told"),
    [
        ({}, "no Paddle"),
        ({"paddlepaddle": "3.3.1"}, "paddlepaddle 3.3.1"),
        ({"paddlepaddle-gpu": "2.6.2"}, "paddlepaddle-gpu 2.6.2"),
        (dict.fromkeys(WHEELS, "1"), "paddlepaddle 1, paddlepaddle-gpu 1"),
    ],
)
def test_whichever_paddle_there_is(monkeypatch, here, told):
    def version(name):
        if name not in here:
            raise importlib.metadata.PackageNotFoundError(name)
        return here[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert versions() == f"onion {onion.__version__}, {told}, Python {platform.python_version()}"


def test_the_package_has_the_version_of_the_module():
    assert importlib.metadata.version("onion-paddle") == onion.__version__
