"""onion.online: its names, and what importing them loads."""

import subprocess
import sys

import pytest

from onion import online


@pytest.mark.parametrize("name", online.__all__)
def test_each_name_is_there(name):
    assert getattr(online, name).__name__ == name


def test_no_other_name_is_there():
    with pytest.raises(AttributeError, match="no attribute 'Pipe'"):
        online.Pipe  # noqa: B018


def test_importing_it_loads_no_library():
    code = """
import sys
import onion.cli.control, onion.cli.remote, onion.http.auth
from onion.online import *
from onion.online.http import Service
RedisStream("redis://nowhere", "s"), RedisWriter("redis://nowhere", "s")
libraries = {"paddle", "river", "redis", "fastapi", "starlette", "uvicorn", "prometheus_client", "pydantic"}
print(sorted(libraries & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
