"""The quick start of the README: a line through noisy points.

python examples/ten_lines.py
"""

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner
from onion.testing import toy_examples, toy_network

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

network = toy_network()
optimizer = paddle.optimizer.Adam(learning_rate=0.05, parameters=network.parameters())
runner = Runner(
    Observer(on_pass_end=lambda state: print(f"pass {state.pass_id}: loss {float(state.loss):.4f}")),
    DataProvider(toy_examples(256), batch_size=32, shuffle=True),
    ParameterUpdater(optimizer),
    GradientMachine(network),
)
print(runner)
runner.run(passes=10)
