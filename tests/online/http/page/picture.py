"""Take the README's picture of the page: a real browser, and a real run that learns handwritten digits as they arrive.

    python -m tests.online.http.page.picture docs/page.png

The run is controlled by the page's own buttons. The digits are scikit-learn's; they arrive in bursts, and a few cannot
be used. It takes about 40 seconds.
"""

import os
import random
import sys
import tempfile
import threading
from pathlib import Path

from onion import DataProvider, Evaluator, Forward, GradientMachine, ParameterUpdater, Runner, Saver, Tester  # isort: skip
import numpy as np
import paddle
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from onion.online import ControlServer, Journal, Spool, SpoolWriter, StreamProvider
from tests.online.http.page.conftest import CHROMIUM

SIZE = {"width": 1280, "height": 800}
HELD_OUT, WIDTH = 400, 512
DRAWN = """() => document.getElementById("state").textContent === "running" &&
    document.getElementById("loss").textContent === document.querySelector("figcaption .value").textContent"""


class Network(paddle.nn.Layer):
    """Three layers, with dropout between the last two."""

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


def feed(path, over):
    """Write the numbers of digits until it is over: 500 to 2500 every second or so. One in 5000 is missing."""
    draw, row = random.Random(7), 0
    with SpoolWriter(path, block=60) as writer:
        while not over.wait(draw.uniform(0.4, 1.0)):
            rows = range(row, row + draw.randint(500, 2500))
            writer.write([{"row": each if each % 5000 != 777 else None} for each in rows])
            row = rows.stop


class Accuracy:
    """Of the classes with the greatest outputs."""

    def reset(self):
        self._right = self._all = 0

    def update(self, outputs, batch):
        self._right += int((outputs.numpy().argmax(-1) == np.asarray(batch["digit"])).sum())
        self._all += len(batch["digit"])

    def result(self):
        return {"accuracy": self._right / max(self._all, 1)}


def examples():
    """Return the digits as examples."""
    data = load_digits()
    pixels = data.data.astype("float32") / 16
    return [{"pixels": row, "digit": np.int64(digit)} for row, digit in zip(pixels, data.target, strict=True)]


def runner_of(path):
    """Return the runner, timed, for a spool of numbers of digits."""
    network, digits = Network(), examples()
    held_out, others = digits[:HELD_OUT], digits[HELD_OUT:]
    test = Runner(DataProvider(held_out, batch_size=100), Evaluator(Accuracy()), Forward(network))
    prepare = lambda sample: others[sample["row"] * 31 % len(others)]  # noqa: E731 - raises for a missing number
    return Runner(
        Saver("run", every=500),
        Journal(),
        StreamProvider(Spool(path), batch_size=16, pass_every=10_000, prepare=prepare),
        ControlServer(port=0),
        Tester(test, every=100),
        ParameterUpdater(paddle.optimizer.SGD(learning_rate=0.02, parameters=network.parameters())),
        GradientMachine(network),
    ).timed()


def main(path):
    """Run the runner and its producer in threads, and the browser in front of it."""
    path, over = Path(path).absolute(), threading.Event()
    paddle.seed(3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)  # the drawing contains the Saver's folder
        runner = runner_of("samples.db")
        control = runner[ControlServer]
        threads = [
            threading.Thread(target=runner.run, kwargs={"passes": 1000}, daemon=True),
            threading.Thread(target=feed, args=("samples.db", over), daemon=True),
        ]
        for thread in threads:
            thread.start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM)  # takes longer than the first batch
        try:
            page = browser.new_page(viewport=SIZE)
            while control.url is None:
                page.wait_for_timeout(10)
            page.goto(control.url)
            steer(page)
            page.screenshot(path=path)
        finally:
            browser.close()
            over.set()
            control.ask("stop", {}).result()
            for thread in threads:
                thread.join()
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
