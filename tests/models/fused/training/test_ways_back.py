"""Networks and hooks that go back through the fast layers themselves, in a process that used to end there."""

import subprocess
import sys

from tests.abilities import needs_layers_by_hand
from tests.paths import ROOT
from tests.patience import PATIENCE

PROGRAM = """
from contextlib import nullcontext

from onion import GradientMachine, Runner
from onion.testing import Batches
from onion.engine.backward import many
from tests.models.fused.training.test_stack import batch, encoder_of
import paddle

KEPT = {"retain_graph": True}


class Network(paddle.nn.Layer):
    def __init__(self, within, ask):
        super().__init__()
        self.encoder, self.within, self.ask = encoder_of(num_hidden_layers=2), within, ask

    def forward(self, given):
        with self.within:
            packed = self.encoder(given[0], attention_mask=given[1]).packed
        self.ask(self, packed)
        return packed

    def loss(self, packed, given):
        return packed.square().mean()

    @property
    def table(self):
        return self.encoder.embeddings.word_embeddings.weight


def hooked(hook):
    def ask(network, packed):
        network.table.register_hook(lambda gradient: hook(packed))
    return ask


ASKED = {
    "nothing": lambda network, packed: None,
    "gradients of another graph": lambda network, packed: (packed.detach() * network.table.sum()).sum().backward(),
    "paddle.grad": lambda network, packed: paddle.grad(packed.sum(), [network.table]) and None,
    "backward": lambda network, packed: packed.sum().backward(),
    "backward, keeping the graph": lambda network, packed: packed.sum().backward(**KEPT),
    "paddle.grad, keeping the graph": lambda network, packed: paddle.grad(packed.sum(), [network.table], **KEPT),
    "paddle.autograd": lambda network, packed: paddle.autograd.backward([packed.sum()], **KEPT),
    "a parameter's hook": hooked(lambda packed: packed.sum().backward(**KEPT)),
    "a hook of the encoder": None,
    "a hook of the encoder, keeping the graph": None,
}

for asked, ask in ASKED.items():
    for within in (nullcontext(), many):
        network = Network(within, ask or ASKED["nothing"])
        if ask is None:
            kept = KEPT if "keeping" in asked else {}
            network.encoder.register_forward_post_hook(
                lambda layer, given, out, kept=kept: out.packed.sum().backward(**kept)
            )
        try:
            Runner(Batches([batch()]), GradientMachine(network)).run(passes=1)
            told = "ran"
        except Exception as error:
            told = type(error).__name__ + (" with the remedy" if "with onion.engine.backward.many" in str(error) else
            "")
        print(asked, "plain" if within is many else "fast", told, sep=": ", flush=True)
"""

EXPECTED = {
    "nothing": ("ran", "ran"),
    "gradients of another graph": ("ran", "ran"),
    "paddle.grad": ("ran", "ran"),
    "backward": ("OnionError with the remedy", "SystemError"),  # Paddle: the graph is gone
    "backward, keeping the graph": ("OnionError with the remedy", "ran"),
    "paddle.grad, keeping the graph": ("OnionError with the remedy", "ran"),
    "paddle.autograd": ("OnionError with the remedy", "ran"),
    "a parameter's hook": ("OnionError with the remedy", None),  # Paddle's own affair
    "a hook of the encoder": ("OnionError with the remedy", "SystemError"),
    "a hook of the encoder, keeping the graph": ("OnionError with the remedy", "ran"),
}


@needs_layers_by_hand
def test_who_goes_back_before_the_machine_is_told_the_remedy_and_the_process_lives():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())
    for asked, (fast, plain) in EXPECTED.items():
        assert told[f"{asked}: fast"] == fast, asked
        assert plain is None or told[f"{asked}: plain"] == plain, asked
