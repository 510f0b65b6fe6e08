"""The names of onion.online.sources."""

import subprocess
import sys

import pytest

from onion.online import sources
from onion.online.source import Intake, Source


@pytest.mark.parametrize("name", sources.__all__)
def test_each_name_is_there(name):
    assert getattr(sources, name).__name__ == name


def test_no_other_name_is_there():
    with pytest.raises(AttributeError, match="no attribute 'Pipe'"):
        sources.Pipe  # noqa: B018


def test_importing_them_all_loads_no_library():
    code = (
        "import sys\n"
        "from onion.online import sources\n"
        "[getattr(sources, name) for name in sources.__all__]\n"
        "sources.RedisStream('redis://nowhere', 's'), sources.RedisWriter('redis://nowhere', 's')\n"
        "print(sorted({'paddle', 'redis', 'fastapi', 'river'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["SpoolWriter", "RedisWriter"])
def test_writers_are_intakes(name):
    assert Intake in getattr(sources, name).__mro__


@pytest.mark.parametrize("name", ["Spool", "RedisStream", "Folder"])
def test_the_others_are_sources(name):
    assert Source in getattr(sources, name).__mro__
