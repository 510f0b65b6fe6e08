"""Train a few steps with the installed wheel, far from the clone; print one plain closing line."""

import importlib.metadata
from pathlib import Path

import onion
from onion import DataProvider, GradientMachine, ParameterUpdater, Runner
from onion.models.encoder import Encoder
from onion.tasks.data.labels import Labels
from onion.testing import toy_examples, toy_network

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

top = {Path(file).parts[0] for file in importlib.metadata.files("onion-paddle") if file.suffix == ".py"}
assert top == {"onion"}, f"the wheel holds more than onion: {top}"
assert "site-packages" in onion.__file__, onion.__file__
assert Encoder.__module__ == "onion.models.encoder"
assert Labels.__module__ == "onion.tasks.data.labels"

network = toy_network()
optimizer = paddle.optimizer.Adam(learning_rate=0.05, parameters=network.parameters())
runner = Runner(
    DataProvider(toy_examples(256), batch_size=32, shuffle=True), ParameterUpdater(optimizer), GradientMachine(network)
)
first = float(runner.run(steps=1).loss)
last = float(runner.run(passes=5).loss)
assert last < first / 2, (first, last)
print(runner)
print("wheel: 1 passed, 0 failed")
