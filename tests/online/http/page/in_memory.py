"""A simulated run: a RunAPI whose steps a test makes."""

from concurrent.futures import Future
from queue import Queue

import attrs

from onion.online.control.run_api import Answer, Refused

DRAWING = """\
Runner                                  initialize  pass  batch
╭ control  ControlServer(port=8765)               ↕        ·      ↕
│╭ data_provider  StreamProvider           ·        ↕      ·
││  gradient_machine  GradientMachine       ↓        ·      ↓
│╰
╰"""


class InMemoryRun:
    """What the page may request of a run.

    Attributes:
        asked: the commands that were carried out, with their arguments.
        metrics: the latest, by name, which every step reports.
    """

    def __init__(self):
        self.state = "running"
        self.step = 0
        self.loss = 2.0
        self.metrics = {}
        self.queue = 7
        self.rings = {"drop words": True}
        self.settings = {"parameter_updater.rate": {"value": 0.1, "low": 0.0, "high": 1.0}}
        self.timed = True
        self.asked = []
        self._answers = {}
        self._refusal = None
        self._listeners = []

    def go(self, steps, loss=None):
        """Make steps, if the run is not paused, and send the status after each."""
        for _ in range(steps if self.state == "running" else 0):
            self.step += 1
            self.loss = 2.0 / self.step if loss is None else loss
            self.tell("status", self.status())

    def tell(self, kind, event):
        for listener in list(self._listeners):
            listener.put((kind, event))

    def end_events(self):
        for listener in list(self._listeners):
            listener.put(None)

    @property
    def listeners(self):
        return len(self._listeners)

    def refuse(self, reason):
        """Refuse every command from now on."""
        self._refusal = reason

    def ask(self, command, arguments, key=None):
        if self._refusal:
            raise Refused(self._refusal)
        if key is None or key not in self._answers:
            self._answers[key] = self._carried_out(command, arguments)
        future = Future()
        future.set_result(self._answers[key])
        return future

    def _carried_out(self, command, arguments):
        act = getattr(self, f"_{command}", None)
        result = act(**arguments) if act else None
        self.asked.append((command, dict(arguments)))
        answer = Answer(len(self.asked), command, self.step, result)
        if command == "test":
            answer = Answer(len(self.asked), command, self.step, None, "the test data are gone")
        self.tell("command", {**attrs.asdict(answer), "arguments": dict(arguments)})
        self.tell("status", self.status())
        if command == "stop":
            self.end_events()
        return answer

    def _pause(self):
        self.state = "paused"

    def _resume(self):
        self.state = "running"

    def _step(self, n=1):
        self._resume()
        self.go(n)
        self._pause()

    def _stop(self, why=""):
        self.state = "ended"

    def _set(self, **values):
        for name, value in values.items():
            if not self.settings[name]["low"] <= value <= self.settings[name]["high"]:
                raise Refused(f"{name}={value} is too much.")
            self.settings[name]["value"] = value
        return values

    def _enable(self, ring):
        self.rings[ring] = True

    def _disable(self, ring):
        self.rings[ring] = False

    def status(self):
        return {
            "state": self.state,
            "step": self.step,
            "pass": 0,
            "batch": self.step,
            "loss": self.loss,
            "metrics": dict(self.metrics),
            "log_values": {"examples": 32.0 * self.step},
            "queue": self.queue,
            "rejected": 3,
            "steps_per_second": 12.345678,
            "since": 1_800_000_000,
            "settings": {name: dict(setting) for name, setting in self.settings.items()},
            "rings": dict(self.rings),
            "commands": len(self.asked),
        }

    def onion(self):
        loss = {"hook": "on_batch", "calls": self.step}
        rings = [
            {"name": "control_server", "hook": "initialize", "calls": 1, "way_in_us": 40.0, "way_out_us": 0.0},
            {"name": "control_server", **loss, "way_in_us": 1.0, "way_out_us": 2.0},
            {"name": "gradient_machine", **loss, "way_in_us": 9.0, "way_out_us": 0.0},
        ]
        return {"drawing": DRAWING, "timed": self.timed, "rings": rings if self.timed else []}

    def subscribe(self):
        events = Queue()
        self._listeners.append(events)
        return events

    def unsubscribe(self, events):
        self._listeners.remove(events)
