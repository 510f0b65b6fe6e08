"""From files and datasets to batches.

`read_rows` and `iter_rows` read a file, `Loader` turns any source of examples into the batches of a pass; the other
names are what these are made of. Nothing here needs Paddle.
"""

from onion.data.batching import collate, pad
from onion.data.files import Row, Table, iter_rows, read_rows
from onion.data.loader import Loader
from onion.data.order import balanced, batches_in_order, bucketed, buffered, shuffled, weighted
from onion.data.passes import Batches
from onion.data.prefetch import Prefetcher
from onion.data.source import PassSource

__all__ = [
    "Batches",
    "Loader",
    "PassSource",
    "Prefetcher",
    "Row",
    "Table",
    "balanced",
    "batches_in_order",
    "bucketed",
    "buffered",
    "collate",
    "iter_rows",
    "pad",
    "read_rows",
    "shuffled",
    "weighted",
]
