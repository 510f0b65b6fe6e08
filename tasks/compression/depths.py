"""One network in several depths, trained together (DynaBERT, Hou et al. 2020, section 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from paddle import nn

from onion import Runner, RunnerItem, State
from onion.engine.item import HookIterator
from onion.engine.placement import NETWORKS, Around
from onion.errors import CompositionError
from onion.models.encoder import Encoder
from onion.models.narrowing import narrowable
from onion.tasks.compression.sizes import checked_sizes, losses_added_up
from onion.tasks.compression.widths import Widths
from onion.tasks.networks.distillation import copied_layers
from onion.validation import is_whole


class Depths(RunnerItem):
    """Run the inside once for each depth of a network's encoder, the deepest first.

        Runner(
            DataProvider(...),
            ParameterUpdater(optimizer),
            Widths([1.0, 0.5], teacher, student),
            Forward(WithHiddenStates(teacher)), OutputsToBatch("teacher"),  # of each width
            Depths([6, 3], student),
            GradientMachine(WithHiddenStates(student), loss),
        )

    Inside, the encoder has as many layers, evenly spaced from the first one
    (:func:`onion.tasks.networks.distillation.copied_layers`). ``state.loss`` is the sum over the depths. In a test or a
    prediction, an item with one depth makes the network shallow for it.

    Args:
        depths: numbers of layers.
        networks: one or more layers, each with an :class:`onion.models.encoder.Encoder` as ``encoder``.

    Raises:
        CompositionError: there are no depths, one is invalid or there twice, or no networks; an encoder is of another
            family or has fewer layers; no network is inside the item, or a Widths is.
    """

    runs_again = True
    place_rules = (Around(NETWORKS, "leaves out layers of the networks inside it"),)

    def __init__(self, depths: Sequence[int], *networks: nn.Layer) -> None:
        self.depths = checked_sizes(self, depths, is_whole, networks)
        self.networks = networks
        self.runs_a_step = len(self.depths)
        for network in networks:
            for depth in self.depths:
                copied_layers(depth, narrowable(network.encoder).config.num_hidden_layers)

    @property
    def keep_for_inference(self) -> bool:  # type: ignore[override]  # nobody sets it
        """Whether it is one size, in which a prediction is made; of several it is that of the whole network."""
        return len(self.depths) == 1

    def check(self, runner: Runner) -> None:
        """Refuse widths inside, whose narrow encoders have all layers."""
        for item in runner.inside(self):
            if isinstance(item, Widths):
                raise CompositionError(f"{item.name} is inside {self.name}; move it further out (before it).")

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside, depth by depth."""
        for depth in losses_added_up(state, self.depths):
            with ExitStack() as shallow:
                for network in self.networks:
                    shallow.enter_context(_some_layers(narrowable(network.encoder), depth))
                yield


@contextmanager
def _some_layers(encoder: Encoder, depth: int) -> Iterator[None]:
    """Leave an encoder as many of its layers for the body."""
    config, layers = encoder.config, encoder.encoder.layers
    kept = copied_layers(depth, config.num_hidden_layers)
    encoder.config = config.changed(num_hidden_layers=depth)
    encoder.encoder.layers = nn.LayerList([layers[number - 1] for number in kept])
    try:
        yield
    finally:
        encoder.config, encoder.encoder.layers = config, layers
