"""Do 1, 2, 4 and 8 processes come to the same bits? ``make same-bits`` runs it.

__main__.py    the trainings, the comparison, the table
mrpc.py        what each process runs: MiniLM on MRPC
"""
