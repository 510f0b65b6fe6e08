"""A custom control: end the run when the balance of labels in the stream drifts.

python examples/online_control.py OUT      makes OUT/samples.db; resumes if run again

`LabelBalance` watches the labels, and hears on the way into each batch what other threads have posted: here new bounds.
A ControlServer beside it (ControlServer(port=8765), Journal()) would add the service; it is not needed for this.
"""

import json
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from onion import GradientMachine, ParameterUpdater, Runner, RunnerItem, Saver, State
from onion.online import Spool, SpoolWriter, StreamProvider

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

SAMPLES, CHANGE, BATCH = 6000, 4000, 20


class LabelBalance(RunnerItem):
    """Stop the run when the share of ones in the latest 20 batches leaves the bounds."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.posted: SimpleQueue[tuple[float, float]] = SimpleQueue()
        self._recent: deque[float] = deque(maxlen=20)

    def on_batch(self, state: State) -> Iterator[None]:
        """Read what was posted; check the labels; run the inside."""
        while not self.posted.empty():
            self.low, self.high = self.posted.get()
        self._recent.append(float(np.mean(state.batch["labels"])))
        share = sum(self._recent) / len(self._recent)
        if len(self._recent) == self._recent.maxlen and not self.low <= share <= self.high:
            state.stop(f"{share:.0%} of the latest labels are 1, and not {self.low:.0%} to {self.high:.0%}")
        yield

    def state_dict(self) -> dict[str, Any]:
        """Return bounds and labels."""
        return {"low": self.low, "high": self.high, "recent": json.dumps(list(self._recent))}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore them."""
        self.low, self.high = saved["low"], saved["high"]
        self._recent.extend(json.loads(saved["recent"]))


def main(out: Path) -> None:
    """Put samples in whose labels become mostly ones; learn until the balance has drifted."""
    paddle.seed(1)
    draw = np.random.default_rng(1)
    ones = draw.random(SAMPLES) < np.where(np.arange(SAMPLES) < CHANGE, 0.5, 0.9)
    with SpoolWriter(out / "samples.db") as writer:
        writer.write([{"x": [float(draw.normal())], "labels": int(one)} for one in ones], cursor="all")
    network = paddle.nn.Linear(1, 2)
    network.loss = lambda logits, batch: paddle.nn.functional.cross_entropy(logits, batch["labels"])
    network.forward = lambda batch: paddle.nn.functional.linear(batch["x"].astype("float32"), network.weight)
    balance, optimizer = LabelBalance(0.3, 0.6), paddle.optimizer.SGD(0.1, parameters=network.parameters())
    provider = StreamProvider(Spool(out / "samples.db"), BATCH, pass_every=1000)
    threading.Thread(target=balance.posted.put, args=((0.25, 0.75),)).start()  # as a service, or a person, would
    runner = Runner(Saver(out / "run"), provider, balance, ParameterUpdater(optimizer), GradientMachine(network))
    print(runner)
    state = runner.run(passes=SAMPLES // 1000)
    print(json.dumps({"example": "online_control", "step": state.step, "stopped": state.stopped}))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    folder.mkdir(parents=True, exist_ok=True)
    main(folder)
