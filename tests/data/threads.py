"""The threads that prepare batches."""

import threading


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "onion-prefetch"]
