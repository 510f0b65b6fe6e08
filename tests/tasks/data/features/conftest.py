"""A cache of its own for every test."""

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "features"
