"""The examples at the end of the help."""

import shlex

import pytest

from onion.cli.arguments import parser
from onion.cli.completion import parsers
from onion.cli.examples import EXAMPLES

LINES = [line.strip() for text in EXAMPLES.values() for line in text.strip().splitlines()]


def test_every_command_has_examples():
    commands = {each.prog.removeprefix("onion").strip() for each in parsers(parser())}
    assert set(EXAMPLES) == {name for name in commands if " " not in name}
    for each in parsers(parser()):
        name = each.prog.removeprefix("onion").strip()
        assert ("examples:" in each.format_help()) == (name in EXAMPLES), name


@pytest.mark.parametrize("line", [line for line in LINES if "--help" not in line])
def test_an_example_is_understood(line):
    words = shlex.split(line.rpartition(" | ")[2].removeprefix("onion "), comments=True)
    assert callable(parser().parse_args(words).command)
