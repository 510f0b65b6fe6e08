"""The catalogue: small onions of every kind, to be cut, killed and resumed.

    for name, kind in ONIONS.items():
        kind.make(folder).run(passes=kind.passes, steps=kind.steps)

Each takes well under a second, has dropout on, and a Saver that saves in its folder. Nothing here needs pytest, so
scripts use it too.
"""

from tests.onions.by_tokens import BY_TOKENS
from tests.onions.learning_online import LEARNING_ONLINE
from tests.onions.loops import LOOPS
from tests.onions.many_networks import MANY_NETWORKS
from tests.onions.many_tasks import MANY_TASKS
from tests.onions.of_examples import OF_EXAMPLES
from tests.onions.of_tasks import OF_TASKS
from tests.onions.one_network import DATA_LOADERS, LEARNING_RATES, ONE_NETWORK
from tests.onions.parts import Kind

ONIONS: dict[str, Kind] = {
    **ONE_NETWORK,
    **LEARNING_RATES,
    **DATA_LOADERS,
    **BY_TOKENS,
    **LOOPS,
    **MANY_TASKS,
    **MANY_NETWORKS,
    **LEARNING_ONLINE,
    **OF_EXAMPLES,
    **OF_TASKS,
}

__all__ = ["ONIONS", "Kind"]
