"""The onion that predicts, made of the one that trains."""

from __future__ import annotations

from typing import Any

from onion.engine.item import RunnerItem
from onion.engine.item_tree import Items, holds, rebuild
from onion.engine.runner import Runner
from onion.errors import CompositionError
from onion.items.every import Every
from onion.items.forward import Forward


def inference_runner(runner: Runner) -> Runner:
    """Return the rings of an onion that make outputs of a batch, to stand inside data and whatever takes the outputs.

        from onion.inference import inference_runner

        predict = inference_runner(training)  # the very runner that trained
        Runner(DataProvider(texts), Observer(on_batch_end=lambda state: print(state.outputs)), predict).run(passes=1)

    What stands outside the data, and the data, are left out: they watch over a training. Further in, an item is left
    out where its ``keep_for_inference`` is False, a Forward of the same network stands in the place of a gradient
    machine, and what Every holds is there for every batch. Networks and all other items are shared, so what was learned
    is there, also later on.

    Args:
        runner: an onion that trains, tests or predicts.

    Raises:
        CompositionError: no network is left, or several are, of which the last would overwrite what the others gave.
    """
    onion = Runner(*rebuild(_inside_the_data(runner), _predicting), state=runner.state_class)
    networks = onion.all(Forward)
    if len(networks) != 1:
        told = "are several networks" if networks else "is none"
        raise CompositionError(
            f"an inference runner runs one network, but here {told}; remove items, runner.without(...), until "
            f"one gradient machine or Forward is left.\n\n{runner}"
        )
    return onion


def _inside_the_data(runner: Runner) -> Items:
    """Return the items after the last one of the outermost runner that brings data or holds one that does."""
    items = runner.items
    bringing = [item for item in runner.walk() if item.provides_data]
    places = [place for place, item in enumerate(items) if any(holds((item,), each) for each in bringing)]
    return items[places[-1] + 1 :] if places else items


def _predicting(item: RunnerItem) -> Items:
    if isinstance(item, Every):  # every batch is predicted
        return rebuild(item.items, _predicting)
    if item.computes_gradients:
        return (Forward(_network_of(item)),)
    return (item,) if item.keep_for_inference else ()


def _network_of(machine: RunnerItem) -> Any:
    if machine.network is None:
        raise CompositionError(
            f"{machine.name} has no attribute 'network'; an inference runner does not know what to run."
        )
    return machine.network
