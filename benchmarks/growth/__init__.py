"""Growth: what happens to the cost when one thing is twice as large.

__main__.py    the rounds
axes.py        the things that grow, their sizes, and why a line is not straight
encoder.py     a side: whole training steps of an encoder
loops.py       a side: many tasks, many rings, next to no network
rows.py        a side: cached features of many rows; a process a size, for its memory
stores.py      such features, made up
figures.py     times, and growth per doubling
"""
