"""Where the repository is, and the data sets beside it, which tests skip without."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
