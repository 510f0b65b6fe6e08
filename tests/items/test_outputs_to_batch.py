"""OutputsToBatch: what one network makes of a batch is there for the next one, and only there."""

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Forward,
    GradientMachine,
    HookError,
    Observer,
    OutputsToBatch,
    Repeat,
    Runner,
)
from onion.testing import Batches, toy_examples, toy_network
from tests.items.learning import updater
from tests.toys import bits


def outputs():
    """Return an item that leaves outputs: the step."""
    return Observer(on_batch_begin=lambda state: setattr(state, "outputs", state.next_step))


def test_the_outputs_are_a_field_for_the_rings_inside_and_the_batch_stays_as_it_is():
    batches, seen = [{"x": 1}, {"x": 2}], []
    watch = Observer(on_batch_begin=lambda state: seen.append(state.batch))
    Runner(Batches(batches), outputs(), OutputsToBatch("teacher"), watch).run(passes=1)
    assert seen == [{"x": 1, "teacher": 1}, {"x": 2, "teacher": 2}]
    assert batches == [{"x": 1}, {"x": 2}]


def test_two_networks_under_two_names_and_a_batch_that_is_run_twice():
    seen = []
    watch = Observer(on_batch_begin=lambda state: seen.append(state.batch))
    one = outputs(), OutputsToBatch("one")
    two = outputs(), OutputsToBatch("two"), OutputsToBatch("one")
    Runner(Batches([{}]), *one, Repeat(2), *two, watch).run(passes=1)
    assert seen == [{"one": 1, "two": 1}] * 2


def test_a_student_learns_from_a_teacher_that_does_not_move():
    """Without labels: the student comes to what the teacher says."""
    teacher, student = toy_network(seed=1), toy_network(seed=2)
    before = bits(teacher)
    Runner(
        DataProvider(toy_examples(64), 16),
        Forward(teacher),
        OutputsToBatch("teacher"),
        updater(student, optimizer="Adam"),
        GradientMachine(student, lambda outputs, batch: paddle.nn.functional.mse_loss(outputs, batch["teacher"])),
    ).run(passes=60)
    for name, value in student.state_dict().items():
        np.testing.assert_allclose(value.numpy(), teacher.state_dict()[name].numpy(), atol=0.02)
    assert bits(teacher) == before
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert teacher.training


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([Batches([{}])], r"outputs_to_batch: there are no outputs; put a Forward"),
        ([Batches([[1, 2]]), outputs()], r"the batch is a list; only a dict can take the field 'teacher'"),
    ],
    ids=["no outputs", "no dict"],
)
def test_what_it_cannot_work_with_is_refused(items, said):
    with pytest.raises(HookError, match=said):
        Runner(*items, OutputsToBatch("teacher")).run(passes=1)


@pytest.mark.parametrize("field", ["", None, 3])
def test_a_field_needs_a_name(field):
    with pytest.raises(CompositionError, match="field must be a name such as 'teacher', got"):
        OutputsToBatch(field)
