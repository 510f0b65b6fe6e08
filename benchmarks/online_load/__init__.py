"""What ``python -m benchmarks.online_load`` does: what a service costs a training, and what it bears meanwhile.

samples.py      samples of the lengths that SST-2's have, made up
ways.py         in what ways the same batches are trained on: without the service, with it, with its clients
training.py     one run in one way: seconds a batch, and what the client tells
client.py       what a client does, in a process of its own
page.py         docs/online_load.md
__main__.py     round after round

What it has in common with other measurements stands in benchmarks/common.
"""
