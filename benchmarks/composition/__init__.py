"""What ``make composition`` does: run the examples that compose several tasks or networks, beside plain training.

compared.py        the examples, what is compared in each, and their command lines
pieces.py          an example, a variant and a seed are a piece of work; its result is a file
processes.py       run a piece, and take what its last line says
page.py            docs/composition.md; settings.py has its lines of settings
__main__.py        go through what is missing, one piece at a time

What it has in common with other measurements stands in benchmarks/common.
"""
