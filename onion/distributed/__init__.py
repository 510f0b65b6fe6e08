"""One onion in several processes, on one machine or many, by items alone: ``ProcessGroup`` and ``DataParallel``."""

from onion.distributed.compose import distributed
from onion.distributed.data_parallel import DataParallel
from onion.distributed.process_group import ProcessGroup

__all__ = ["DataParallel", "ProcessGroup", "distributed"]
