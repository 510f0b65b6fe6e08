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
from onion.items.gradient_machine import saved_network
from onion.items.moving_average import MovingAverage
from onion.items.parameter_updater import ParameterUpdater
from onion.online.control.run_api import Refused
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
    """A network of its own: who holds the lock may read or write it."""

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

    There are two copies of the network, in evaluation mode and without gradients. One is predicted from; the other one
    takes the weights, and then they swap, so no prediction is of a half-updated network. A prediction is one
    forward pass, one at a time; it takes processor time from the training, and nothing else: the training's bits are
    those of a run without. Where a prediction that began long ago still holds the copy that is to take the weights, the
    training does not wait, and the next step tries again.

    What draws random numbers to predict (``prepare``, the network in evaluation mode, ``finish``) would take them from
    the training: the generators are the process's. The first prediction of a run is made by the run itself, between two
    batches, and shows whether it draws. If it does, so are all others, and what they have drawn is put back: they wait
    for the end of a batch, or of a test. If it does not, the others are made at once, in the thread that asks. Where
    one of these draws after all, for some inputs only, that is detected by sampling, and logged as an error. A
    ControlServer makes pending predictions while the run is paused or waits for data; without one they wait for the
    next batch, also where ``with runner:`` is idle.

    The first snapshot is that of the first period; in a resumed run, what was loaded; the last one, the run's end.

    Args:
        network: a ``paddle.nn.Layer``; or the MovingAverage of one, whose average is then published.
        prepare: ``prepare(inputs) -> batch``, of a list of JSON values. What it raises is reported to the caller.
        finish: ``finish(outputs) -> list``, of the network's outputs: a JSON value for each input.
        every: steps between two snapshots, a ``timedelta``, or ``"pass"``. Default 100.
        draws: whether predictions draw random numbers, be it for some inputs only. Default None: the first one shows.

    Raises:
        CompositionError: ``prepare`` or ``finish`` is no plain function; or it is inside what moves the weights.
    """

    passive = outermost_only = True
    transient = (
        "_copies",
        "_live",
        "_late",
        "_boundary",
        "_draws",
        "_unproven",
    )  # they depend on who predicts, and when

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
        self._draws: bool | None = None  # as was found out in this run
        self._unproven = 0
        self._copies = (_copy_of(self.network), _copy_of(self.network))
        self._live: _Copy | None = None
        self._late = False

    def check(self, runner: Runner) -> None:
        """Require a place outside of what moves the weights, so that they have moved on its way out."""
        super().check(runner)
        for item in around(self, runner):
            if item is self._average or (isinstance(item, ParameterUpdater) and moves(item, self.network)):
                raise CompositionError(
                    f"{self.name} is inside {item.name}, which moves the weights after it; move it out (before it)."
                )

    def initialize(self, state: State) -> HookIterator:
        """Publish what was loaded if the run is resumed, and the final weights at the end."""
        self._live, self._late, self._draws, self._unproven = None, False, self.draws, 0
        if state.step:
            self._publish(state, wait=True)
        with self._boundary.active():
            yield
        self._publish(state, wait=True)

    def on_batch(self, state: State) -> HookIterator:
        """Publish after the batch, if it completes a period or the one before was held up."""
        self._boundary.run_pending()
        yield
        if self.due(state) or self._late:
            self.act(state)

    def act(self, state: State) -> None:
        """Publish, unless a prediction is still under way in the copy that would be written to."""
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
        """Make the pending predictions, in the thread of the run, which draws no random number meanwhile."""
        self._boundary.run_pending()

    def end(self) -> None:
        """Make the pending predictions, and from now on each at once: the run has ended."""
        self._boundary.end()

    def _without_a_trace(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Predict where nothing else draws random numbers, and put back what this has drawn."""
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
            if self.draws is None and rng.capture() != before:  # most often it was the training that drew
                self._unproven += 1
                if self._unproven.bit_count() == 1:  # the first, second, fourth, ...
                    self._boundary.submit(lambda: self._prove(inputs))

    def _prove(self, inputs: Sequence[Any]) -> None:
        """Find out, where nothing else draws, whether a concurrent prediction has drawn."""
        with suppress(Exception):  # no caller waits for it
            self._without_a_trace(inputs)
        if self._draws:
            log.error(
                "%s: a prediction has drawn random numbers, though the first of this run had not, so the bits of the "
                "training are no longer those of a run without. From now on predictions are made between two batches; "
                "use Publish(..., draws=True) the next time.",
                self.name,
            )

    def _predicted(self, inputs: Sequence[Any]) -> dict[str, Any]:
        live = self._live
        assert live is not None
        try:
            batch = self.prepare(list(inputs))
        except Exception as error:
            raise Refused(f"the inputs are invalid: {describe(error)}") from error
        # A copy that has changed places by now is whole too: it is written to by who holds its lock.
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

    ``call`` and ``submit`` are for any thread; all else is for that of the run.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[_Call] = SimpleQueue()
        self._lock = Lock()
        self._thread: int | None = None  # of the run that is under way

    @contextmanager
    def active(self) -> Iterator[None]:
        """Accept functions for the run that is under way inside."""
        before, self._thread = self._thread, get_ident()
        try:
            yield
        finally:
            self._deactivate(before)

    def end(self) -> None:
        """Execute what waits; from now on each function is executed at once by its caller: the run has ended."""
        self._deactivate(None)

    def _deactivate(self, thread: int | None) -> None:
        with self._lock:
            self._thread = thread
        self.run_pending()

    @property
    def is_idle(self) -> bool:
        """Whether this thread may execute a function itself: no run is under way, or this is its thread."""
        return self._thread in (None, get_ident())

    def call(self, work: Callable[[], Result]) -> Result:
        """Execute a function between two batches, and return its result; at once where no run is under way.

        Raises:
            BaseException: what the function raises.
        """
        future = self.submit(work)
        return work() if future is None else future.result()

    def submit(self, work: Callable[[], Result]) -> Future[Result] | None:
        """Queue a function for the next batch boundary; None: this thread may execute it itself, now."""
        with self._lock:
            if self.is_idle:
                return None
            future: Future[Result] = Future()
            self._waiting.put((work, future))
            return future

    def run_pending(self) -> None:
        """Execute what waits, in the thread of the run."""
        for _ in range(
            self._waiting.qsize()
        ):  # no more: a caller that submits again and again would block the run forever
            work, future = self._waiting.get()
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise  # Ctrl-C, which is meant for the run
            else:
                future.set_result(result)
