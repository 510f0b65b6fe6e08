"""The plain reference tokenizers of scripts/make_golden_tokenizers.py, for tests."""

import importlib.util
from functools import cache

from tests.paths import ROOT

SCRIPT = ROOT / "scripts" / "make_golden_tokenizers.py"


@cache
def references():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("make_golden_tokenizers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
