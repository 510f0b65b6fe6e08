"""A run without a training: a thread executes its commands, and everything received is recorded."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue

import attrs

from onion.http.refused import Refused
from onion.online.control.gateway import EventBus
from onion.online.control.run_api import Answer
from onion.online.http import Limits, Service
from tests.patience import PATIENCE

COMMANDS = ("pause", "resume", "step", "save", "test", "stop", "set", "enable", "disable")
TOKEN = "a token of tests".replace(" ", "-")


@attrs.define(eq=False)
class MemoryRun:
    """Attributes:
    heard: commands in the order in which they took effect: name, arguments.
    samples: what was put in, with producer.
    open: while it is cleared, commands wait in the queue.
    failing: commands that fail, with the reason.
    on_put: called before samples are taken; it may raise.
    asked: set when a command has arrived.
    left: set when the last subscriber has left.
    """

    heard: list = attrs.field(factory=list)
    samples: list = attrs.field(factory=list)
    open: threading.Event = attrs.field(factory=threading.Event)
    failing: dict = attrs.field(factory=dict)
    on_put: Callable[[], None] = lambda: None
    state: str = "running"
    step: int = 10
    queue: int = 7
    result: dict | None = attrs.field(factory=lambda: {"done": True})
    loss: float = 0.5
    metrics: dict = attrs.field(factory=lambda: {"tester.accuracy": 0.75})
    settings: dict = attrs.field(factory=lambda: {"learning_rate": {"value": 0.1, "low": 0.0, "high": 1.0}})
    rings: dict = attrs.field(factory=lambda: {"replay": True})
    cursors: dict = attrs.field(factory=dict)
    events: EventBus = attrs.field(factory=EventBus)
    listeners: int = 0
    left: threading.Event = attrs.field(factory=threading.Event)
    asked: threading.Event = attrs.field(factory=threading.Event)
    _keys: dict = attrs.field(factory=dict)
    _line: SimpleQueue = attrs.field(factory=SimpleQueue)
    _thread: threading.Thread | None = None

    def __enter__(self):
        self.open.set()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.open.set()
        self._line.put(None)
        self._thread.join(PATIENCE)

    def _work(self):
        while (queued := self._line.get()) is not None:
            assert self.open.wait(PATIENCE)
            command, arguments, future = queued
            self.heard.append((command, arguments))
            self.take_effect(command, arguments)
            answer = Answer(len(self.heard), command, self.step, self.result, self.failing.get(command))
            self.events.publish("command", {**attrs.asdict(answer), "arguments": arguments})
            if command == "stop":
                self.events.end()
            if not future.done():
                future.set_result(answer)

    def take_effect(self, command, arguments):
        self.state = {"pause": "paused", "step": "paused", "resume": "running", "stop": "ended"}.get(
            command, self.state
        )
        if command == "set":
            for name, value in arguments.items():
                self.settings[name]["value"] = value
        if command in ("enable", "disable"):
            self.rings[arguments["ring"]] = command == "enable"

    # -- the protocol -----------------------------------------------------------------------------

    def ask(self, command, arguments, key=None):
        if self.state == "ended":
            raise Refused("the run has ended.", 409)
        if command not in COMMANDS:
            raise Refused(f"{command!r} is no command.", 404)
        for name, value in arguments.items() if command == "set" else ():
            setting = self.settings.get(name)
            if setting is None or not isinstance(value, int | float) or not setting["low"] <= value <= setting["high"]:
                raise Refused(f"{name}={value!r} is invalid.")
        if "ring" in arguments and arguments["ring"] not in self.rings:
            raise Refused(f"{arguments['ring']!r} is no ring.", 404)
        if key in self._keys:
            return self._keys[key]
        future = Future()
        if key is not None:
            self._keys[key] = future
        self._line.put((command, dict(arguments), future))
        self.asked.set()
        return future

    def status(self):
        return {
            "state": self.state,
            "step": self.step,
            "pass": 1,
            "batch": 2,
            "loss": self.loss,
            "metrics": self.metrics,
            "log_values": {"learning_rate": 0.1},
            "queue": self.queue,
            "rejected": 3,
            "steps_per_second": 12.5,
            "since": 1_700_000_000.0,
            "settings": self.settings,
            "rings": self.rings,
            "commands": len(self.heard),
        }

    def onion(self):
        rings = [{"name": "saver", "hook": "on_batch", "calls": 10, "way_in_us": 1.0, "way_out_us": 2.0}]
        return {"drawing": "Runner\n╭ saver", "timed": True, "rings": rings}

    def put(self, samples, producer, cursor):
        self.on_put()
        if cursor is not None and self.cursors.get(producer) == cursor:
            return 0
        self.cursors[producer] = cursor
        self.samples += [(producer, each) for each in samples]
        return len(samples)

    def predict(self, inputs):
        if "bad" in inputs:
            raise Refused("an input is invalid.", 400)
        return {"predictions": [len(each) for each in inputs], "step": 10}

    def subscribe(self):
        self.listeners += 1
        self.left.clear()
        return self.events.subscribe()

    def unsubscribe(self, events):
        self.listeners -= 1
        self.events.unsubscribe(events)
        if self.listeners == 0:
            self.left.set()


@contextmanager
def serving(token=TOKEN, limits=None, **options):
    """Serve a run of its own; yield the run and the service."""
    with MemoryRun() as run:
        service = Service(run, port=0, token=token, limits=limits or Limits(), **options)
        service.start()
        try:
            yield run, service
        finally:
            service.stop()
