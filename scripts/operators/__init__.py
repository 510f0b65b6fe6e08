"""Which operators onion uses, and whether Paddle has a kernel for each of them on a GPU; see scripts/gpu_operators.py.

trained.py    the process that is watched: every task and every onion, on the paths that a GPU takes
recorded.py   what Paddle's own log tells of it: kernels and the types they ran with
registered.py what Paddle has for GPUs, and what is missing
ways.py       the ways around what is missing, each with its reason
"""
