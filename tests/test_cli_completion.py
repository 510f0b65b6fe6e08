"""Completion as a shell asks for it, by argcomplete's protocol."""

import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from tests.test_cli_light import HEAVY

pytestmark = pytest.mark.slow
CODE = "from onion.cli import main; main()"


def ask(folder, line):
    """Return what completes a line, and the modules that were imported for it."""
    (folder / "run").mkdir()
    (folder / "films.tsv").touch()
    told = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "answer")}
    told |= {"_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = [sys.executable, "-X", "importtime", "-c", CODE]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | told, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    imported = {entry.rpartition("|")[2].strip() for entry in done.stderr.splitlines()}
    assert (done.returncode, done.stdout) == (0, "")
    return (folder / "answer").read_text().split("\n"), imported


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("onion tra", ["train"]),
        ("onion train --task class", ["classification"]),
        ("onion train --schedule ", ["linear", "cosine", "constant", "palm"]),
        ("onion train --encoder ru", ["run/"]),
        ("onion train --train fi", ["films.tsv"]),
        ("onion train --preset palm/atis", ["palm/atis-intent", "palm/atis-slots"]),
        ("onion weights get macbert", ["macbert-base-chinese", "macbert-large-chinese"]),
    ],
)
def test_a_line_is_completed_and_nothing_heavy_loaded(tmp_path, line, words):
    pytest.importorskip("argcomplete")
    answer, imported = ask(tmp_path, line)
    assert [word.rstrip() for word in answer] == words
    assert {"argcomplete", "onion.cli.arguments"} <= imported
    assert not imported & set(HEAVY)
