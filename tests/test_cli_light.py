"""What people wait for before anything is done: ``--help`` loads nothing heavy, of others or of Python itself."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

HEAVY = ["paddle", "numpy", "tokenizers", "safetensors", "sentencepiece", "tqdm", "yaml"]
HEAVY += ["asyncio", "email", "http.client", "ssl", "sqlite3", "urllib.request", "multiprocessing", "unittest"]


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["ctl", "--help"], ["ctl", "status", "--help"]])
def test_help_loads_nothing_heavy(words):
    code = f"""
import sys
from onion.cli import main
try:
    main({words})
finally:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: onion {' '.join(words[:-1])}".rstrip())
    assert done.stderr.strip() == "[]"
