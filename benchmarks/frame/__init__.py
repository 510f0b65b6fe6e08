"""The frame of all benchmarks. A benchmark declares its sides, their work, its figures and its goals.

Its results are a section of benchmarks/results.md (section.py), or a page of docs/ (study.py).
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
"""The folder of data sets, by default."""
