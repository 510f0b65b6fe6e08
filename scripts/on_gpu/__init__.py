"""What scripts/gpu.py runs on a machine with a GPU, and what it tells.

parts.py     the parts by name: a command each, and what came of it
machine.py   versions, the GPU, its driver
report.py    the page
training.py  a program of its own: speed and memory of a training
"""
