"""Every onion of the catalogue, cut or killed and begun again, comes to the same bits as one that is not."""

import pytest

from onion import LearningRateFinder, MixedPrecision, NanGuard, Prune, Saver, SkipIf, SplitOnMemoryError, TaskSampler
from onion.checkpointing import atomic_files, checkpoint
from onion.testing import assert_resumes_exactly
from tests.abilities import needs_draws_again
from tests.onions import ONIONS
from tests.toys import Unsynced

pytestmark = pytest.mark.slow

CUTS = 1, 4
"""Before the first checkpoint of most, and at the end of a pass or just behind it, after checkpoints in mid-pass."""


@needs_draws_again
@pytest.mark.parametrize("name", ONIONS)
def test_a_run_that_was_cut_or_killed_comes_to_the_same_bits(name, tmp_path):
    kind = ONIONS[name]
    with atomic_files.through(Unsynced()):
        assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, steps=kind.steps, cuts=CUTS)


DONE = {
    "early stop": lambda runner, state: state.stopped and state.pass_id < ONIONS["early stop"].passes - 1,
    "loss scale": lambda runner, state: 1 < runner[MixedPrecision].overflows < state.step,
    "go back from what is no number": lambda runner, state: runner[NanGuard].state_dict()["kept_step"],
    "skip what is no number": lambda runner, state: runner[NanGuard].log_values()["not_finite"],
    "pruned": lambda runner, state: runner[Prune].pruned and state.step == 6,
    "range test": lambda runner, state: len(runner[LearningRateFinder].losses) == 7,
    "skipping": lambda runner, state: runner[SkipIf].log_values()["skipped"],
    "splitting": lambda runner, state: runner[SplitOnMemoryError].log_values()["piece_size"] == 2,
    "best": lambda runner, state: checkpoint.steps_in(runner[Saver].folder)[0] < state.step - 1,
    "tests": lambda runner, state: len(state.metrics) == 8,
    "tasks by loss": lambda runner, state: min(runner[TaskSampler].log_values().values()) > 0,
}
"""What is in an onion of the catalogue for a reason has happened."""


@pytest.mark.parametrize("name", DONE)
def test_what_an_onion_is_there_for_happens_in_it(name, tmp_path):
    kind = ONIONS[name]
    runner = kind.make(tmp_path)
    assert DONE[name](runner, runner.run(passes=kind.passes, steps=kind.steps))
