"""The frame of all benchmarks. A benchmark declares its sides, their work, its figures and its goals.

section.py     a section of benchmarks/results.md: figures over rounds, with goals; the command line
study.py       a page of docs/: runs that take hours, each kept as a file
processes.py   sides: processes that take turns, each in its own environment
worker.py      what such a process runs; it needs nothing but Python
tables.py      Markdown, means, where and when something ran
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
"""The folder of data sets, by default."""
