"""`Publish`: snapshots of a network, from which other threads predict while it is trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import deepcopy
from queue import SimpleQueue
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs

from onion.checkpointing import rng
from onion.device import paddle, to_tensors
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.state import State
from onion.errors import CompositionError
from onion.http.refused import Refused
from onion.items.gradient_machine import saved_network
from onion.items.moving_average import MovingAverage
from onion.items.parameter_updater import ParameterUpdater
from onion.online.stream.batch_assembler import describe
from onion.training.pairing import around, moves
from onion.validation import is_lazy

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")

Prepare: TypeAlias = Callable[[list[Any]], Any]
"""JSON values -> a batch that the network can be called with."""

Finish: TypeAlias = Callable[[Any], list[Any]]
"""The network's outputs, as tensors -> a JSON value for each input."""


@attrs.define(eq=False)
class _Copy:
    """A copy of the network; the holder of the lock may read or write it."""

    network: Any
    step: int = 0
    lock: Lock = attrs.field(factory=Lock)

    def take(self, network: Any, step: int) -> None:
        """Copy the weights of another network."""
        own, now = saved_network(self.network), saved_network(network)
        with paddle().no_grad():
            for path, tensor in own.items():
                tensor.set_value(now[path].astype(tensor.dtype))
        self.step = step


class Publish(Periodic):
    """Periodically make a snapshot of a network, from which any thread may predict while the training continues.

        publish = Publish(smooth, prepare=tokenized, finish=labels, every=100)      # smooth is a MovingAverage
        Runner(Saver("out"), publish, StreamProvider(spool), ControlServer(), smooth, updater, GradientMachine(network))
        publish.predict(["a gripping film"])             # {"predictions": ["positive"], "step": 300}; POST /predict

    There are two copies of the network, in evaluation mode and without gradients: one serves predictions, the other
    receives the weights, and then they swap, so no prediction uses a half-updated network. A prediction is one forward
    pass, one at a time. It takes processor time from the training and nothing else: the training is bit-identical to a
    run without it. If a long prediction still uses the copy that is to receive the weights, the training does not
    wait; the next step tries again.

    A prediction that draws random numbers (in ``prepare``, the network in evaluation mode, or ``finish``) would take
    them from the training, as the generators belong to the process. The first prediction of a run is made by the run
    itself, between two batches, and shows whether it draws. If it does, all predictions are made at the end of a batch
    or of a test, and their draws are undone. If it does not, later ones are made immediately, in the calling thread. If
    one of these draws after all, because of its inputs, that is detected by sampling and logged as an error. A
    ControlServer makes pending predictions while the run is paused or waits for data; without one they wait for the
    next batch, also while ``with runner:`` is idle.

    Of several processes rank 0 has the snapshots and predicts.

    The first snapshot is taken after the first period, or when a run resumes; the last one at the end of the run.

    Args:
        network: a ``paddle.nn.Layer``, or a MovingAverage, whose average is then published.
        prepare: ``prepare(inputs) -> batch``, of a list of JSON values. Its errors are reported to the caller.
        finish: ``finish(outputs) -> list``, of the network's outputs: a JSON value for each input.
        every: steps between two snapshots, a ``timedelta``, or ``"pass"``. Default 100.
        draws: whether predictions draw random numbers, even if for some inputs only. Default None: the first one shows.

    Raises:
        CompositionError: ``prepare`` or ``finish`` is not a plain function, or the item is inside of what updates the
            weights.
    """

    passive = outermost_only = first_rank_only = True
    # they depend on who predicts, and when
    transient = ("_copies", "_live", "_late", "_boundary", "_draws", "_unproven")

    def __init__(
        self, network: Any, prepare: Prepare, finish: Finish, every: Interval = 100, draws: bool | None = None
    ) -> None:
        super().__init__(every)
        for function in (prepare, finish):
            if is_lazy(function) or not callable(function):
                raise CompositionError(f"Publish: prepare and finish must be plain functions, got {function!r}.")
        self._average = network if isinstance(network, MovingAverage) else None
        self.network = network if self._average is None else self._average.average
        self.prepare, self.finish, self.draws = prepare, finish, draws
        self._boundary = BoundaryExecutor()
        self._draws: bool | None = None  # as observed in this run
        self._unproven = 0
        self._copies = (_copy_of(self.network), _copy_of(self.network))
        self._live: _Copy | None = None
        self._late = False

    def check(self, runner: Runner) -> None:
        """Require a place outside of what updates the weights, so that they are updated on its way out."""
        super().check(runner)
        for item in around(self, runner):
            if item is self._average or (isinstance(item, ParameterUpdater) and moves(item, self.network)):
                raise CompositionError(
                    f"{self.name} is inside {item.name}, which updates the weights after it; move it out (before it)."
                )

    def initialize(self, state: State) -> HookIterator:
        """Publish the loaded weights if the run is resumed, and the final weights at the end."""
        self._live, self._late, self._draws, self._unproven = None, False, self.draws, 0
        if state.step:
            self._publish(state, wait=True)
        with self._boundary.active():
            yield
        self._publish(state, wait=True)

    def on_batch(self, state: State) -> HookIterator:
        """Publish after the batch, if it completes a period or the last attempt failed."""
        self._boundary.run_pending()
        yield
        if self.due(state) or self._late:
            self.act(state)

    def act(self, state: State) -> None:
        """Publish, unless a prediction still uses the copy to be written to."""
        self._late = not self._publish(state, wait=False)

    def _publish(self, state: State, wait: bool) -> bool:
        """Publish; return whether the copy was free."""
        spare = self._copies[1] if self._live is self._copies[0] else self._copies[0]
        if not spare.lock.acquire(blocking=wait):
            return False
        try:
            spare.take(self.network, state.step)
        finally:
            spare.lock.release()
        self._live = spare
        return True

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Predict from the newest snapshot; any thread may call it.

        Args:
            inputs: JSON values.

        Returns:
            ``{"predictions": [...], "step": that of the snapshot}``.

        Raises:
            Refused: nothing is published yet (503), or the inputs are invalid (400).
        """
        if self._live is None:
            raise Refused("nothing is published yet; try again.", 503)
        if self._draws is False and not self._boundary.is_idle:
            return self._concurrently(inputs)
        return self._boundary.call(lambda: self._without_a_trace(inputs))

    def run_pending(self) -> None:
        """Make the pending predictions, in the thread of the run, while nothing else draws random numbers."""
        self._boundary.run_pending()

    def end(self) -> None:
        """Make the pending predictions; later ones are made immediately, as the run has ended."""
        self._boundary.end()

    def _without_a_trace(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Predict while nothing else draws random numbers, and undo the draws."""
        before = rng.capture()
        try:
            answer = self._predicted(inputs)
            self._draws = bool(self._draws)
        finally:
            if rng.undo_draws(before):
                self._draws = True
        return answer

    def _concurrently(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Predict in this thread while the training continues; as far as is known, this draws nothing."""
        before = rng.capture()
        try:
            return self._predicted(inputs)
        finally:
            if self.draws is None and rng.capture() != before:  # usually because of the training
                self._unproven += 1
                if self._unproven.bit_count() == 1:  # the first, second, fourth, ...
                    self._boundary.submit(lambda: self._prove(inputs))

    def _prove(self, inputs: Sequence[Any]) -> None:
        """Find out, while nothing else draws, whether a concurrent prediction draws."""
        with suppress(Exception):  # no caller waits for it
            self._without_a_trace(inputs)
        if self._draws:
            log.error(
                "%s: a prediction has drawn random numbers, though the first of this run had not, so the training is "
                "no longer bit-identical to a run without it. From now on predictions are made between two batches; "
                "use Publish(..., draws=True) in the next run.",
                self.name,
            )

    def _predicted(self, inputs: Sequence[Any]) -> dict[str, Any]:
        live = self._live
        assert live is not None
        try:
            batch = self.prepare(list(inputs))
        except Exception as error:
            raise Refused(f"the inputs are invalid: {describe(error)}") from error
        # A copy that has been swapped out by now is complete too: only the holder of its lock writes to it.
        with live.lock, paddle().no_grad():
            outputs, step = live.network(to_tensors(batch)), live.step
        return {"predictions": list(self.finish(outputs)), "step": step}


def _copy_of(network: Any) -> _Copy:
    copy = deepcopy(network)
    copy.eval()
    for parameter in copy.parameters():
        parameter.stop_gradient = True
    return _Copy(copy)


Result = TypeVar("Result")
_Call: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


class BoundaryExecutor:
    """Executes functions of other threads in the thread of a run, between two batches.

    ``call`` and ``submit`` are for any thread, the rest for that of the run.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[_Call] = SimpleQueue()
        self._lock = Lock()
        self._thread: int | None = None  # of the current run

    @contextmanager
    def active(self) -> Iterator[None]:
        """Accept functions during the run inside."""
        before, self._thread = self._thread, get_ident()
        try:
            yield
        finally:
            self._deactivate(before)

    def end(self) -> None:
        """Execute pending functions; later ones are executed immediately by their caller, as the run has ended."""
        self._deactivate(None)

    def _deactivate(self, thread: int | None) -> None:
        with self._lock:
            self._thread = thread
        self.run_pending()

    @property
    def is_idle(self) -> bool:
        """Whether this thread may execute a function itself: there is no run, or this is its thread."""
        return self._thread in (None, get_ident())

    def call(self, work: Callable[[], Result]) -> Result:
        """Execute a function between two batches, or immediately if there is no run; return its result or raise."""
        future = self.submit(work)
        return work() if future is None else future.result()

    def submit(self, work: Callable[[], Result]) -> Future[Result] | None:
        """Queue a function for the next batch boundary; None: this thread may execute it itself."""
        with self._lock:
            if self.is_idle:
                return None
            future: Future[Result] = Future()
            self._waiting.put((work, future))
            return future

    def run_pending(self) -> None:
        """Execute pending functions, in the thread of the run."""
        for _ in range(self._waiting.qsize()):  # no more: a caller that submits repeatedly would block the run for ever
            work, future = self._waiting.get()
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise  # Ctrl-C, which is intended for the run
            else:
                future.set_result(result)
