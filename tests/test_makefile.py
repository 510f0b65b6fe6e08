"""`make help` tells of every target."""

import re
import shutil
import subprocess

import pytest

from tests.paths import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()


def test_every_target_of_the_makefile_has_its_line_of_help():
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    command = ["make", "MAKEFLAGS=", "--no-print-directory", "help"]  # whatever the flags of a make around the tests
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(re.findall(r"^make (\S+) +\S", listed, re.MULTILINE)) == sorted(TARGETS)


def test_what_is_no_file_is_phony():
    rules = re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE)
    assert set(rules) == set(TARGETS)
