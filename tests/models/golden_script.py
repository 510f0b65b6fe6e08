"""The plain reference tokenizers of scripts/make_golden_tokenizers.py, for tests."""

import importlib.util
from functools import cache
from pathlib import Path

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "make_golden_tokenizers.py"


@cache
def references():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("make_golden_tokenizers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
