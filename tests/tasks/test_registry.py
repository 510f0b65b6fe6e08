import pytest

from onion.errors import CheckpointError
from onion.tasks.registry import recorded_task


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (
            {"task": "rhyme"},
            "the task 'rhyme' is not known here; if it is one of your own, .* onion.tasks.registry.register",
        ),
        (
            {"task": "classify", "colour": 1},
            "is damaged, or of another version of onion .*there is no setting 'colour'",
        ),
        ({"max_length": 8}, "is damaged"),
        ({"task": 5}, "is damaged"),
        (["task"], "is damaged"),
        (None, "is damaged"),
    ],
)
def test_records_that_do_not_do(record, told):
    with pytest.raises(CheckpointError, match=f"^task.json:? {told}"):
        recorded_task(record, "task.json")
