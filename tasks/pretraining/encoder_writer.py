"""The item that writes what a pretraining is for: a folder with the encoder."""

from __future__ import annotations

from pathlib import Path

from onion import HookIterator, State
from onion.engine.periodic import Interval, Periodic
from onion.models.tokenizer import Tokenizer
from onion.paths import anchored
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.pretraining.model import save_encoder


class EncoderWriter(Periodic):
    """Write the encoder every so often and at the end of the run, also of one that a signal ends.

    ``onion train --encoder DIR`` takes the folder, and so does every system that reads the layout.

    Args:
        network: of the pretraining.
        folder: for config, weights and tokenizer; it is made.
        tokenizer: of the corpus.
        layout: of the weights; see ``onion.tasks.pretraining.model.save_encoder``. Default ``"huggingface"``.
        every: steps between two times, a ``timedelta``, or ``"pass"``: after each stage. Default ``"pass"``.

    Raises:
        WeightsError: they cannot be written.
    """

    passive = first_rank_only = True
    transient = ("_written",)

    def __init__(
        self,
        network: MultiHead,
        folder: str | Path,
        tokenizer: Tokenizer,
        layout: str = "huggingface",
        every: Interval = "pass",
    ) -> None:
        super().__init__(every)
        self._network, self._tokenizer = network, tokenizer
        self.folder, self.layout = anchored(folder), layout
        self.reset()

    def reset(self) -> None:
        """Begin with nothing written."""
        super().reset()
        self._written: int | None = None

    def initialize(self, state: State) -> HookIterator:
        """Write it at the end, unless it has been written since the last step."""
        yield
        self.act(state)

    def act(self, state: State) -> None:
        """Write it, unless it has been written since the last step."""
        if state.step != self._written:
            save_encoder(self._network, self.folder, self._tokenizer, self.layout)
            self._written = state.step
