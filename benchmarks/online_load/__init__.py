"""What a service costs a training, and what it takes in meanwhile: docs/online_load.md.

training.py   one run in one way: without the service, with it, with its clients; seconds a batch
client.py     the samples, which are made up, and what a client does, in a process of its own
__main__.py   round after round, and the page: python -m benchmarks.online_load
"""
