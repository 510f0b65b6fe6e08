"""Take the README's picture of the page: a real browser, before a real run that learns handwritten digits as they come.

    python -m tests.online.http.page.picture docs/page.png

The run is steered through the page's own buttons while it goes on. The digits are scikit-learn's; they arrive in
bursts, and now and then comes one that cannot be used. It takes about 40 seconds.
"""

import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from onion import DataProvider, Evaluator, Forward, GradientMachine, ParameterUpdater, Runner, Saver, Tester  # isort: skip
import numpy as np
import paddle
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import Journal
from onion.online.sources.source import Sample
from onion.online.stream.stream_provider import StreamProvider
from tests.online.http.page.conftest import CHROMIUM

SIZE = {"width": 1280, "height": 800}
HELD_OUT = 400
WIDTH = 512
DRAWN = """() => document.getElementById("state").textContent === "running" &&
    document.getElementById("loss").textContent === document.querySelector("figcaption .value").textContent"""


class Network(paddle.nn.Layer):
    """Three layers; a tenth of what is between the last two is dropped."""

    def __init__(self):
        super().__init__()
        self.layers = paddle.nn.Sequential(
            *(paddle.nn.Linear(64, WIDTH), paddle.nn.ReLU()),
            *(paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.ReLU(), paddle.nn.Dropout(0.1)),
            paddle.nn.Linear(WIDTH, 10),
        )

    def forward(self, batch):
        return self.layers(batch["pixels"])

    def loss(self, outputs, batch):
        return paddle.nn.functional.cross_entropy(outputs, batch["digit"])


class Bursts:
    """A source of digits that come some hundreds at a time, every second or so."""

    def __init__(self, pixels, digits):
        self._pixels, self._digits, self.position = pixels, digits, ""
        self._draw, self._there = random.Random(7), 0
        self._next = time.monotonic()

    def _arrive(self):
        while time.monotonic() >= self._next:
            self._there += self._draw.randint(500, 2500)
            self._next += self._draw.uniform(0.4, 1.0)

    @property
    def _place(self):
        return int(self.position or 0)

    def read(self, n, timeout):
        if not self.waiting():
            time.sleep(min(timeout, 0.05))
        places = range(self._place, min(self._place + n, self._there))
        samples = [Sample(self._sample(place), str(place + 1)) for place in places]
        self.position = samples[-1].position if samples else self.position
        return samples

    def _sample(self, place):
        if place % 5000 == 777:
            return {"digit": 3}  # without its pixels
        row = place * 31 % len(self._digits)
        return {"pixels": self._pixels[row].tolist(), "digit": int(self._digits[row])}

    def waiting(self):
        self._arrive()
        return self._there - self._place

    def commit(self, position):
        pass

    def close(self):
        pass


class Accuracy:
    """Of the classes with the greatest outputs."""

    def reset(self):
        self._right = self._all = 0

    def update(self, outputs, batch):
        self._right += int((outputs.numpy().argmax(-1) == np.asarray(batch["digit"])).sum())
        self._all += len(batch["digit"])

    def result(self):
        return {"accuracy": self._right / max(self._all, 1)}


def prepare(sample):
    """Make an example of a sample; one without pixels is rejected."""
    return {"pixels": np.array(sample["pixels"], "float32") / 16, "digit": np.int64(sample["digit"])}


def onion():
    """Return the onion, with a clock between each two rings."""
    data = load_digits()
    pixels, digits = data.data, data.target
    network = Network()
    optimizer = paddle.optimizer.SGD(learning_rate=0.02, parameters=network.parameters())
    held_out = [prepare({"pixels": row, "digit": digit}) for row, digit in zip(pixels, digits, strict=True)][:HELD_OUT]
    test = Runner(DataProvider(held_out, batch_size=100), Evaluator(Accuracy()), Forward(network))
    return Runner(
        Saver("run", every=500),
        Journal(),
        StreamProvider(Bursts(pixels[HELD_OUT:], digits[HELD_OUT:]), batch_size=16, pass_every=10_000, prepare=prepare),
        ControlServer(port=0),
        Tester(test, every=100),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).timed()


def main(path):
    """Run the onion in a thread, and the browser before it."""
    path = Path(path).absolute()
    paddle.seed(3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)  # the drawing names the Saver's folder
        runner = onion()
        run = threading.Thread(target=runner.run, kwargs={"passes": 1000}, daemon=True)
        run.start()
        while runner[ControlServer].url is None:
            time.sleep(0.01)
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        try:
            page = browser.new_page(viewport=SIZE)
            page.goto(runner[ControlServer].url)
            steer(page)
            page.screenshot(path=path)
        finally:
            browser.close()
            runner[ControlServer].ask("stop", {}).result()
            run.join()
    print(f"{path}: {path.stat().st_size} bytes")


def steer(page):
    """Press the buttons, with some seconds of running between them."""
    page.wait_for_timeout(12_000)
    page.click("text=Save")
    page.wait_for_timeout(6000)
    page.click("text=Pause")
    page.wait_for_timeout(4000)
    page.fill("#steps", "25")
    page.click("#stepping button")
    page.wait_for_timeout(1500)
    page.click("text=Resume")
    page.locator(".setting input").first.fill("0.005")
    page.click("button:text('Set')")
    page.wait_for_timeout(12_000)
    page.wait_for_function(DRAWN)


if __name__ == "__main__":
    main(sys.argv[1])
