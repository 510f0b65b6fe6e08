"""What happens to the cost when one thing is twice as large.

__main__.py    the things that grow, figures and notes: python -m benchmarks.growth
steps.py       sides: whole training steps of an encoder; batches of many tasks or many rings
rows.py        a side: cached features of many rows, which are made up; a process a size, for its memory
"""
