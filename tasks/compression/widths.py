"""One network in several widths, trained together (DynaBERT, Hou et al. 2020, section 2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from paddle import nn

from onion import MixedPrecision, NanGuard, Runner, RunnerItem, State
from onion.engine.item import HookIterator
from onion.engine.placement import NETWORKS, Around
from onion.errors import CompositionError
from onion.models.narrowing import Narrowed, narrowable
from onion.tasks.compression.sizes import checked_sizes, losses_added_up
from onion.validation import is_number


class Widths(RunnerItem):
    """Run the inside once for each width of a network's encoder, the widest first.

        Runner(
            DataProvider(...),
            Forward(WithHiddenStates(teacher)), OutputsToBatch("teacher"),
            ParameterUpdater(optimizer),                                    # one update a batch
            Widths([1.0, 0.75, 0.5, 0.25], student),                        # of the gradients of all widths
            GradientMachine(WithHiddenStates(student), loss),
        )

    Inside, the encoder has the first heads and neurons of each layer only, which :class:`Importance` has sorted; its
    parameters are parts of the whole, and so are their gradients. ``state.loss`` is the sum over the widths. In a test
    or a prediction, an item with one width narrows the network for it:
    ``Runner(data, Evaluator(metric), Widths([0.5], network), Forward(network))``.

    Args:
        widths: shares of heads and neurons, above 0 and at most 1.
        networks: one or more layers, each with an :class:`onion.models.encoder.Encoder` as ``encoder``, that get narrow
            together, such as the teacher of that width and its student.

    Raises:
        CompositionError: there are no widths, one is invalid or there twice, or no networks; an encoder is of another
            family or has adapters; no network is inside the item, or something that uses gradients is.
    """

    runs_again = True
    place_rules = (Around(NETWORKS, "narrows the networks inside it"),)
    transient = ("_narrowed",)  # copies, taken whenever they are used

    def __init__(self, widths: Sequence[float], *networks: nn.Layer) -> None:
        self.widths = checked_sizes(self, widths, is_number, networks)
        self.networks = networks
        self.runs_a_step = len(self.widths)
        self._narrowed = [
            {width: Narrowed(narrowable(network.encoder), width) for width in self.widths} for network in networks
        ]

    @property
    def keep_for_inference(self) -> bool:  # type: ignore[override]  # nobody sets it
        """Whether it is one size, in which a prediction is made; of several it is that of the whole network."""
        return len(self.widths) == 1

    def check(self, runner: Runner) -> None:
        """Refuse items inside that use gradients, which are whole only behind this item."""
        for item in runner.inside(self):
            if item.moves_weights or item.joins_group or isinstance(item, MixedPrecision | NanGuard):
                raise CompositionError(
                    f"{item.name} is inside {self.name}, which adds up the gradients of all widths on its way out; "
                    "move it further out (before it)."
                )

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside, width by width."""
        for width in losses_added_up(state, self.widths):
            with ExitStack() as narrowed:
                for network, views in zip(self.networks, self._narrowed, strict=True):
                    narrowed.enter_context(_narrow(network, views[width]))
                yield


@contextmanager
def _narrow(network: nn.Layer, view: Narrowed) -> Iterator[None]:
    """Put a narrowed encoder into a network for the body; give its gradients to the whole one afterwards."""
    whole = network.encoder
    view.take()
    view.encoder.train() if whole.training else view.encoder.eval()
    network.encoder = view.encoder
    try:
        yield
        view.give()
    except BaseException:
        view.drop()  # who tries the batch again begins without them
        raise
    finally:
        network.encoder = whole
