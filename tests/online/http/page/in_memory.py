"""A simulated run whose steps a test makes."""

from onion.http.refused import Refused
from tests.online.http.memory_run import MemoryRun

DRAWING = """\
Runner                                  initialize  pass  batch
╭ control  ControlServer(port=8765)               ↕        ·      ↕
│╭ data_provider  StreamProvider           ·        ↕      ·
││  gradient_machine  GradientMachine       ↓        ·      ↓
│╰
╰"""


class InMemoryRun(MemoryRun):
    """What the page may request of a run; its tests fail."""

    def __init__(self):
        super().__init__(
            step=0,
            loss=2.0,
            metrics={},
            result=None,
            failing={"test": "the test data are gone"},
            settings={"parameter_updater.rate": {"value": 0.1, "low": 0.0, "high": 1.0}},
            rings={"drop words": True},
        )
        self.timed = True
        self.refusal = None
        """Why every command is refused, if it is."""

    def go(self, steps, loss=None):
        """Make steps, if the run is not paused, and send the status after each."""
        for _ in range(steps if self.state == "running" else 0):
            self.step += 1
            self.loss = 2.0 / self.step if loss is None else loss
            self.tell("status", self.status())

    def tell(self, kind, event):
        self.events.publish(kind, event)

    def ask(self, command, arguments, key=None):
        if self.refusal:
            raise Refused(self.refusal)
        return super().ask(command, arguments, key)

    def take_effect(self, command, arguments):
        if command == "step":
            self.state = "running"
            self.go(arguments["n"])
        super().take_effect(command, arguments)
        self.tell("status", self.status())

    def onion(self):
        calls = {"hook": "on_batch", "calls": self.step}
        rings = [
            {"name": "control_server", "hook": "initialize", "calls": 1, "way_in_us": 40.0, "way_out_us": 0.0},
            {"name": "control_server", **calls, "way_in_us": 1.0, "way_out_us": 2.0},
            {"name": "gradient_machine", **calls, "way_in_us": 9.0, "way_out_us": 0.0},
        ]
        return {"drawing": DRAWING, "timed": self.timed, "rings": rings if self.timed else []}
