"""``onion corpus build | ls``."""

import json

import pytest

from onion.cli import main
from onion.cli.arguments import parser
from onion.cli.completion import parsers
from onion.tasks.pretraining.corpus.segmentation.segmenter import ENTITIES, NO_ENTITIES, WORDS
from tests.commands import last_line, onion, plain
from tests.tasks.pretraining.corpus.texts import build, place_in, sums

SIGNALLED = """
import os, signal
from onion.checkpointing import atomic_files

class Files(atomic_files.Files):
    left = 30

    def write(self, file, content):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.{name})
        super().write(file, content)

atomic_files._files = Files()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = place_in(tmp_path_factory.mktemp("texts"))
    build(found).run(found / "whole")
    return found


def words_of(place, output, *more):
    inputs = place / "a.txt", place / "b.txt"
    return "corpus", "build", *inputs, "--tokenizer", place / "tiny", "--shard-tokens", 500, "--output", output, *more


def call(capsys, *words):
    status = main([str(word) for word in words])
    return status, capsys.readouterr()


def test_build_and_ls(place, capsys):
    status, told = call(capsys, *words_of(place, place / "made", "--workers", 1, "--language", "en"))
    assert (status, told.err) == (0, "")
    report = last_line(told.out)
    assert report["corpus"] == str(place / "made")
    assert (report["documents"], report["language"], report["inputs"]) == (90, "en", ["a.txt", "b.txt"])
    status, told = call(capsys, "corpus", "ls", place / "whole", place / "made", "--verify")
    head, *rows = told.out.splitlines()
    assert (status, len(rows)) == (0, 2)
    assert head.split()[:4] == ["TOKENS", "DOCUMENTS", "SENTENCES", "UNKNOWN"]
    assert rows[1].split()[:2] == [f"{report['tokens']:,}", "90"]
    assert rows[1].endswith(str(place / "made"))
    status, told = call(capsys, "corpus", "ls", place / "made", "--json")
    assert json.loads(told.out) == report


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status", "told"), [("SIGTERM", 143, "terminated"), ("SIGINT", 130, "interrupted")])
def test_a_build_that_is_ended_by_a_signal_goes_on(place, name, status, told):
    words = words_of(place, name, "--workers", 2)
    done = onion(place, *words, before=SIGNALLED.format(name=name))
    assert (done.returncode, done.stderr) == (status, f"onion: {told}\n")
    listed = onion(place, "corpus", "ls", name, "--verify")
    assert "build not ended" in listed.stdout
    shard = place / name / "shard-00000.flags"
    content = shard.read_bytes()
    shard.write_bytes(content[::-1])
    damaged = onion(place, "corpus", "ls", name, "--verify")
    assert damaged.returncode == 2
    plain(damaged.stderr, "shard-00000.flags")
    shard.write_bytes(content)
    refused = onion(place, "corpus", "build", "a.txt", "--tokenizer", "tiny", "--output", name)
    assert refused.returncode == 2
    plain(refused.stderr, "holds another corpus (shard tokens, inputs); choose a new folder")
    again = onion(place, *words)
    assert (again.returncode, again.stderr) == (0, "")
    assert sums(place / name) == sums(place / "whole")


def test_mistakes_are_told(place, capsys):
    wrong = {
        ("ls", "nothing"): "nothing/manifest.json: there is no such file",
        ("build", "a.csv", "--tokenizer", place / "tiny", "--output", "new"): "a.csv: there is no such file; check",
        ("build", "a.txt", "--tokenizer", "none", "--output", "new"): "none: neither a folder nor a known model",
    }
    for words, message in wrong.items():
        status, told = call(capsys, "corpus", *words)
        assert status == 2
        plain(told.err, message)


def test_the_flags_know_every_segmenter():
    build_words = next(each for each in parsers(parser()) if each.prog == "onion corpus build")
    choices = {action.dest: action.choices for action in build_words._actions}
    assert set(choices["segmenter"]) == set(WORDS)
    assert set(choices["entities"]) == {NO_ENTITIES, *ENTITIES}
