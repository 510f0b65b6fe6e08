"""The item that measures how fast a pretraining is: tokens a second, and floating-point operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Any

from onion import HookIterator, RunnerItem, State
from onion.models.pretrained_config import PretrainedConfig

WINDOW = 100
"""Batches that the rates are of."""

FORWARD_AND_BACKWARD = 3
"""Passes of training in passes forward: the gradients of weights and of inputs take one more each."""


class Throughput(RunnerItem):
    """Tell, among the readings, how many tokens a second were learned from, without padding.

    ``tokens_per_second`` is that of the last 100 batches, by the median time between two of them, so that tests and
    checkpoints do not count; ``gflops`` is what these tokens take in the encoder and the masked LM head (see
    :func:`operations`), a second; ``share_of_peak`` is the share of it in what the processor can do, if that is given.
    Of several processes it is this one's.

    Args:
        config: of the encoder.
        peak_gflops: what the processor can do, in GFLOP/s. Default: not known.
    """

    passive = True
    transient = ("_seen", "_last")

    def __init__(self, config: PretrainedConfig, peak_gflops: float | None = None) -> None:
        self._config, self.peak_gflops = config, peak_gflops
        self.reset()

    def reset(self) -> None:
        """Begin with no batch."""
        self._last: float | None = None
        self._seen: deque[tuple[float, int, float]] = deque(maxlen=WINDOW)

    def on_pass(self, state: State) -> None:
        """Measure no time between two passes."""
        self._last = None

    def on_batch(self, state: State) -> HookIterator:
        """Measure the time since the end of the batch before."""
        batch = state.batch
        yield
        now = perf_counter()
        if self._last is not None:
            masked = len(batch.get("masked_positions", ()))
            self._seen.append(
                (now - self._last, sum(batch["lengths"]), operations(self._config, batch["lengths"], masked))
            )
        self._last = now

    def log_values(self) -> Mapping[str, float]:
        """Return the rates, if there are two batches to tell them by."""
        if not self._seen:
            return {}
        seconds = median(each for each, _, _ in self._seen) * len(self._seen)
        gflops = sum(each for _, _, each in self._seen) / seconds / 1e9
        found = {"tokens_per_second": sum(each for _, each, _ in self._seen) / seconds, "gflops": gflops}
        return found if self.peak_gflops is None else {**found, "share_of_peak": gflops / self.peak_gflops}


def operations(config: PretrainedConfig, lengths: list[int], masked: int) -> float:
    """Return the floating-point operations of a training step without padding.

    Two for each multiplication of a matrix's element: those of the linear layers, of the scores and sums of attention,
    and of the masked LM head (Kaplan et al. 2020, arXiv 2001.08361, section 2.1); nothing is counted for embeddings,
    norms and activations.

    Args:
        config: of a BERT-like encoder.
        lengths: tokens of each row.
        masked: masked words of all rows.
    """
    settings: Any = config
    width, inner, layers = settings.hidden_size, settings.intermediate_size, settings.num_hidden_layers
    linear = layers * (4 * width**2 + 2 * width * inner) * sum(lengths)
    attention = layers * 2 * width * sum(length**2 for length in lengths)
    head = masked * (width**2 + width * settings.vocab_size)
    return FORWARD_AND_BACKWARD * 2.0 * float(linear + attention + head)
