"""What a service costs the training, and its throughput: docs/online_load.md.

training.py   one run in one mode: without the service, with it, with clients; seconds per batch
client.py     the synthetic samples, and the work of a client, in a process of its own
__main__.py   round after round, and the page: python -m benchmarks.online_load
"""
