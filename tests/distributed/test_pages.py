"""docs/distributed and the files in it: they are YAML and shell, and their commands are those of launcher and onion.

There is no cluster here: what a scheduler does with them is not tested.
"""

import re
import shlex
import subprocess
import sys

import pytest
import yaml

from onion.cli.arguments import parser
from tests.paths import ROOT

PAGES = [ROOT / "docs" / "distributed.md", *sorted((ROOT / "docs" / "distributed").glob("*.md"))]
BLOCKS = [(page.name, kind, text) for page in PAGES
          for kind, text in re.findall(r"^```(sh|yaml)\n([\s\S]*?)^```$", page.read_text(), re.MULTILINE)]  # fmt: skip
LAUNCHER = "paddle.distributed.launch"
SCRIPTS = [text for _, kind, text in BLOCKS if kind == "sh"]
DOCUMENTS = [document for _, kind, text in BLOCKS if kind == "yaml" for document in yaml.safe_load_all(text)]


def containers(value):
    """Give all containers in a description of pods."""
    if isinstance(value, dict):
        yield from value.get("containers", ())
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from containers(each)


WORDS = [[*each["command"], *each.get("args", ())] for each in containers(DOCUMENTS)]
SCRIPTS += [words[2] for words in WORDS if words[:2] == ["sh", "-c"]]


def after_launcher(words):
    return words[words.index(LAUNCHER) + 1 :]


def commands():
    """Give what the launcher is started with, everywhere on the pages."""
    lines = [line for text in SCRIPTS for line in text.replace("\\\n", " ").splitlines()]
    yield from (after_launcher(shlex.split(line, comments=True)) for line in lines if LAUNCHER in line)
    yield from (after_launcher(words) for words in WORDS if LAUNCHER in words)


COMMANDS = list(commands())


def test_there_is_something_to_test():
    assert len(DOCUMENTS) == 5
    assert len(COMMANDS) >= 7


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_for_bash(script):
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_descriptions_name_what_they_are():
    for document in DOCUMENTS:
        assert document.keys() >= {"apiVersion", "kind", "metadata", "spec"}
    grace = "terminationGracePeriodSeconds"
    pods = [text for _, kind, text in BLOCKS if kind == "yaml" and LAUNCHER in text]
    assert all(f"{grace}: 60" in text for text in pods)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_launcher_and_onion_know_all_arguments(words, monkeypatch):
    from paddle.distributed.launch.context.args_envs import parse_args

    monkeypatch.delenv("PADDLE_TRAINER_ID", raising=False)
    monkeypatch.setattr(sys, "argv", ["launch", *words])
    known, unknown = parse_args()
    assert unknown == []
    if known.training_script.endswith("onion") or "command -v onion" in known.training_script:
        assert parser().parse_args(known.training_script_args).command.__name__ == "train"
    else:
        assert known.training_script.endswith(".py")
