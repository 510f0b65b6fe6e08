"""Control of a run from other threads: they post messages, which are read between two batches."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from onion.data.batch_iterator import POLL_INTERVAL, BatchBoundary
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CompositionError, HookError, RankError
from onion.host import launch
from onion.peek_queue import PeekQueue
from onion.validation import is_lazy

if TYPE_CHECKING:
    from onion.distributed.group import Group

log = logging.getLogger("onion")

Answer = TypeVar("Answer")

AGAIN = "again"
"""What rank 0 says where there is nothing to do now, and the next batch has to wait."""


class Mailbox(RunnerItem):
    """Let other threads act on a run between two of its batches.

        mailbox = Mailbox()
        runner = Runner(saver, DataProvider(train), mailbox, updater, GradientMachine(network))
        Thread(target=runner.run).start()
        mailbox.post(lambda state: float(state.loss)).result()               # what a message returns comes back
        mailbox.post(lambda state: updater.set_learning_rate(1e-5))
        mailbox.pause()
        mailbox.post(saver.save)
        mailbox.post(lambda state: state.stop("seen enough"))

    A message is a function of the state, called in the thread of the run between two batches, when every ring has
    finished: a stop costs no batch, and a checkpoint is exact. While Accumulate works on a group of batches, messages
    wait. They are read in the order of posting; those posted meanwhile are read before the next batch, unless the run
    is paused.

    Only a run that has entered the mailbox reads messages, and it cancels those that are left at its end. Messages
    posted before or after wait for the next run, also if a run fails before it enters the mailbox: a stop that comes
    too late ends the next run before its first batch, unless its answer is cancelled. So wait for an answer with a
    limit: ``result(timeout=...)``.

    In several processes, messages are posted on rank 0, and carried out on all ranks at the same step. A function that
    is made on rank 0 does not get to the others, so give it a name on all of them, and post that, with arguments:

        mailbox = Mailbox({"rate": lambda state, rate: updater.set_learning_rate(rate), "stop": State.stop})
        ...
        mailbox.post("rate", 1e-5)
        mailbox.post("stop", "seen enough")

    What comes back is the answer of rank 0. An error of all ranks comes back too, and the run goes on; one that only
    some ranks meet ends the run, since they are no longer alike, and is a RankError that names them.

    Put it inside the item that provides the data. One run at a time uses it: the runs of a test onion that shares the
    mailbox (made by ``without``) leave the messages to the training.

    Args:
        commands: name -> a plain function of the state and of JSON values. Default: none but ``pause`` and ``resume``.

    Raises:
        CompositionError: a command is no plain function, or has one of these two names; an item further in provides
            the data, and none further out.
        HookError: on the way into a pass, if no item further out has provided data.
    """

    keep_for_inference = False
    passive = outermost_only = True
    place_rules = (BEHIND_DATA,)

    def __init__(self, commands: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.commands = dict(commands or {})
        own = {"pause": partial(self._pause, True), "resume": partial(self._pause, False)}
        for name, function in self.commands.items():
            if name in own or is_lazy(function) or not callable(function):
                raise CompositionError(
                    f"Mailbox: the command {name!r} must be a plain function of the state, and have another name than "
                    f"pause and resume; got {function!r}."
                )
        self._functions: dict[str, Callable[..., Any]] = {**self.commands, **own}
        self._messages: PeekQueue[_Message] = PeekQueue()
        self.reset()

    def reset(self) -> None:
        """Start unpaused; messages that were posted before wait for the run."""
        self._paused = False

    @overload
    def post(self, message: Callable[[State], Answer]) -> Future[Answer]: ...

    @overload
    def post(self, message: str, *arguments: Any) -> Future[Any]: ...

    def post(self, message: Callable[[State], Any] | str, *arguments: Any) -> Future[Any]:
        """Post a message, from any thread; of several processes, on rank 0.

        Args:
            message: a function of the state, or the name of a command.
            arguments: of the command, JSON values.

        Returns:
            A future of what the message returns, or of the error that it raises, which is logged and does not affect
            the run. Do not wait for its ``result()`` in the thread of the run.

        Raises:
            CompositionError: ``message`` is not a plain function (a coroutine or generator would not be run), or no
                command, or its arguments are no JSON; of several processes this is not rank 0, or it is a function.
        """
        posted = self._command(message, arguments) if isinstance(message, str) else _function(message, arguments)
        if launch.rank() > 0:
            raise CompositionError(
                f"post: this is rank {launch.rank()}, and messages are read on rank 0, for all; post them there only "
                "(where paddle.distributed.get_rank() is 0)."
            )
        self._messages.put(posted)
        return posted.answer

    def _command(self, name: str, arguments: tuple[Any, ...]) -> _Message:
        if name not in self._functions:
            raise CompositionError(f"post: there is no command {name!r}; there are {', '.join(self._functions)}.")
        try:
            values = json.loads(json.dumps(arguments))  # what other ranks get
        except (TypeError, ValueError) as error:
            raise CompositionError(f"post: the arguments of {name!r} must be JSON values: {error}.") from None
        return _Message(self._functions[name], name, values)

    def pause(self) -> Future[None]:
        """Pause the run before its next batch until :meth:`resume`, or until it is stopped. Messages are read.

        A stop by a message or by Signals ends a paused run; TimeLimit, which checks the time after a batch, does not.
        In several processes all ranks wait, however long it takes, and notice if one of them is gone.
        """
        return self.post("pause")

    def resume(self) -> Future[None]:
        """Continue a paused run."""
        return self.post("resume")

    def _pause(self, paused: bool, state: State) -> None:
        self._paused = paused

    def initialize(self, state: State) -> HookIterator:
        """Cancel unread messages when the run ends."""
        try:
            yield
        finally:
            for message in self._messages.drain():
                message.cancel()

    def on_pass(self, state: State) -> None:
        """Read messages between the batches of the pass."""
        if state.batches is None:
            raise HookError(f"{self.name} is outside the item that provides the data; move it further in (after it).")
        state.batches = BatchBoundary(iter(state.batches), state, self._read)

    def _read(self, state: State) -> None:
        """Read the waiting messages, and while the run is paused also those that arrive."""
        waiting = len(self._messages)  # no more, or a message that posts itself again would block the run
        while state.pass_stopped is None and (due := self._agreed(state, self._next(waiting))) is not None:
            if due != AGAIN:
                self._open(state, *due)
            waiting -= 1

    def _next(self, waiting: int) -> Any:
        """Return the next message and its arguments, on rank 0; None: the next batch."""
        if self.group is not None and self.group.rank > 0:
            return None
        if waiting > 0 or self._paused:
            message = self._messages.peek(POLL_INTERVAL)
            if message is not None and message.answer.cancelled():
                self._messages.take()
                message.cancel()
                return AGAIN
            if message is not None:
                return [message.name, message.arguments]
        return AGAIN if self._paused else None

    def _agreed(self, state: State, due: Any) -> Any:
        return due if self.group is None else self.group.broadcast(state, due)

    def _open(self, state: State, name: str, arguments: list[Any]) -> None:
        """Open the first message; on another rank than the first, one like it."""
        message = self._messages.take() or _Message(self._functions[name], name, arguments)
        message.open(state, self.group)


class _Message:
    """A function of the state, with its name and further arguments, and the future of its answer."""

    def __init__(self, function: Callable[..., Any], name: str = "", arguments: Sequence[Any] = ()) -> None:
        self.name, self.arguments = name, arguments
        self.answer: Future[Any] = Future()
        self._function = function

    def open(self, state: State, group: Group | None) -> None:
        """Call the function, with the other ranks if there are some, and answer."""
        act = partial(self._function, state, *self.arguments)
        wanted = self.answer.set_running_or_notify_cancel()
        if not wanted and group is None:
            return
        try:
            answer = act() if group is None else group.carry_out(act)
        except BaseException as error:
            if wanted:
                self.answer.set_exception(error)
            if isinstance(error, RankError) or not isinstance(error, Exception):
                raise  # the ranks are no longer alike; Ctrl-C is for the run
            log.exception("a message failed; the run continues")
        else:
            if wanted:
                self.answer.set_result(answer)

    def cancel(self) -> None:
        """Cancel the answer."""
        if self.answer.cancel():
            self.answer.set_running_or_notify_cancel()  # or concurrent.futures.wait() would not notice


def _function(message: object, arguments: tuple[Any, ...]) -> _Message:
    """Return the message that is a function.

    Raises:
        CompositionError: it is none, or several processes would have to call it.
    """
    if is_lazy(message) or not callable(message):
        raise CompositionError(f"post: the message must be a plain function of the state, got {message!r}.")
    if launch.world_size() > 1:
        raise CompositionError(
            f"post: {message!r} is a function of this process, and {launch.world_size()} processes run the onion; name "
            'it on all of them, Mailbox({"name": function}), and post("name", ...) with JSON values.'
        )
    return _Message(message, arguments=arguments)
