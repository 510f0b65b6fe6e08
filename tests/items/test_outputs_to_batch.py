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
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
)
from onion.testing import Batches, toy_examples, toy_network


class Outputs(RunnerItem):
    """Leave outputs: the step."""

    def on_batch(self, state):
        state.outputs = state.next_step


def test_the_outputs_are_a_field_for_the_rings_inside_and_the_batch_stays_as_it_is():
    batches, seen = [{"x": 1}, {"x": 2}], []
    Runner(
        Batches(batches),
        Outputs(),
        OutputsToBatch("teacher"),
        Observer(on_batch_begin=lambda state: seen.append(state.batch)),
    ).run(passes=1)
    assert seen == [{"x": 1, "teacher": 1}, {"x": 2, "teacher": 2}]
    assert batches == [{"x": 1}, {"x": 2}]


def test_two_networks_under_two_names_and_a_batch_that_is_run_twice():
    seen = []
    watch = Observer(on_batch_begin=lambda state: seen.append(state.batch))
    Runner(
        Batches([{}]),
        Outputs(),
        OutputsToBatch("one"),
        Repeat(2),
        Outputs(),
        OutputsToBatch("two"),
        OutputsToBatch("one"),
        watch,
    ).run(passes=1)
    assert seen == [{"one": 1, "two": 1}] * 2


def test_a_student_learns_from_a_teacher_that_does_not_move():
    """Without labels: the student comes to what the teacher says."""
    teacher, student = toy_network(seed=1), toy_network(seed=2)
    before = {name: value.numpy().copy() for name, value in teacher.state_dict().items()}
    Runner(
        DataProvider(toy_examples(64), 16),
        Forward(teacher),
        OutputsToBatch("teacher"),
        ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=student.parameters())),
        GradientMachine(student, lambda outputs, batch: paddle.nn.functional.mse_loss(outputs, batch["teacher"])),
    ).run(passes=60)
    for name, value in student.state_dict().items():
        np.testing.assert_allclose(value.numpy(), before[name], atol=0.02)
    for name, value in teacher.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert teacher.training


def test_without_outputs_it_says_what_is_missing():
    with pytest.raises(HookError, match=r"outputs_to_batch: there are no outputs; put a Forward"):
        Runner(Batches([{}]), OutputsToBatch("teacher")).run(passes=1)


def test_a_batch_that_is_no_dict_is_refused():
    with pytest.raises(HookError, match=r"the batch is a list; only a dict can take the field 'teacher'"):
        Runner(Batches([[1, 2]]), Outputs(), OutputsToBatch("teacher")).run(passes=1)


@pytest.mark.parametrize("field", ["", None, 3])
def test_a_field_needs_a_name(field):
    with pytest.raises(CompositionError, match="field must be a name such as 'teacher', got"):
        OutputsToBatch(field)
