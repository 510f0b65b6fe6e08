"""Batches, examples and a network to try items on."""

import numpy as np

from onion import Runner, RunnerItem
from onion.device import paddle, to_tensors
from onion.testing import Batches, toy_examples, toy_network


def test_batches_gives_numbers_or_what_it_is_given_anew_every_pass():
    class Note(RunnerItem):
        def __init__(self):
            self.seen = []

        def on_batch(self, state):
            self.seen.append(state.batch)

    note = Note()
    Runner(Batches(3), note).run(passes=2)
    Runner(Batches("ab"), note).run(passes=2)
    assert note.seen == [0, 1, 2, 0, 1, 2, "a", "b", "a", "b"]


def test_toy_examples_are_always_the_same_for_a_seed():
    first, again, other = toy_examples(8, seed=1), toy_examples(8, seed=1), toy_examples(8, seed=2)
    assert len(first) == 8
    assert [example["x"].shape for example in first] == [(8,)] * 8
    assert {example[field].dtype.name for example in first for field in "xy"} == {"float32"}
    for field in "xy":
        assert all(np.array_equal(a[field], b[field]) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0]["x"], other[0]["x"])


def test_the_toy_network_is_the_same_for_a_seed_and_learns_its_toy_examples():
    first, again = toy_network(seed=3), toy_network(seed=3)
    assert np.array_equal(first.linear.weight.numpy(), again.linear.weight.numpy())

    examples = toy_examples(32)
    batch = to_tensors({field: np.stack([example[field] for example in examples]) for field in "xy"})
    assert first(batch).shape == [32, 1]
    optimizer = paddle().optimizer.SGD(0.1, parameters=first.parameters())
    losses = []
    for _ in range(50):
        loss = first.loss(first(batch), batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.05 < losses[0]
