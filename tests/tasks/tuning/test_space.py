import pytest

from onion.errors import DataError
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.tuning.space import Range, Values, search_space, with_values


@pytest.fixture
def settings(make_settings):
    return make_settings().as_file()


@pytest.mark.parametrize(
    ("name", "given", "entry"),
    [
        ("learning_rate", "1e-5..1e-3:log", Range(1e-5, 1e-3, log=True)),
        ("weight_decay", "0..1", Range(0.0, 1.0)),  # the setting takes fractions
        ("weight_decay", "0..0.5:0.2", Range(0.0, 0.4, step=0.2)),
        ("batch_size", "8..64:log", Range(8, 64, log=True, whole=True)),
        ("max_length", "8..23:8", Range(8, 16, step=8, whole=True)),
        ("passes", "1..3", Range(1, 3, whole=True)),
        ("batch_size", "16, 32", Values((16, 32))),
        ("batch_size", [16, 32], Values((16, 32))),
        ("learning_rate", ["1e-5", 1e-4], Values((1e-5, 1e-4))),
        ("layerwise_decay", "null,0.8", Values((None, 0.8))),
        ("schedule", "linear,cosine", Values(("linear", "cosine"))),
        ("label_smoothing", "0..0.2", Range(0.0, 0.2)),  # of the task
    ],
)
def test_an_entry_is_a_range_or_values(settings, name, given, entry):
    found = search_space({name: given}, settings)[name]
    assert found == entry
    assert [type(value) for value in found.examples] == [type(value) for value in entry.examples]


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("learning_rate", "1e-5", "must be LOW..HIGH, LOW..HIGH:log, LOW..HIGH:STEP or values such as 16,32"),
        ("learning_rate", "1e-5..1e-3:lgo", "got '1e-5..1e-3:lgo'"),
        ("learning_rate", 1e-5, "got 1e-05"),
        ("learning_rate", "1e-3..1e-5", "the range must rise"),
        ("learning_rate", "0..1:log", "must begin above 0, got 0"),
        ("learning_rate", "0..1", "learning_rate must be a number > 0, got 0.0"),
        ("max_length", "8..16:20", "the step must be above 0 and at most 8, got 20"),
        ("max_length", "8..64", "the encoder takes 3 to 24 tokens"),
        ("batch_size", "16.5..32", "batch_size must be an integer >= 1, got 16.5"),
        ("batch_size", [16, 16], "16 is there twice"),
        ("batch_size", [16, [32]], r"\[32\] is no single value"),
        ("schedule", "linear,parabola", "schedule must be one of linear"),
        ("label_smoothing", "0..2", "label_smoothing must be a number >= 0 and < 1, got 2.0"),
        ("colour", "1,2", "unknown setting 'colour'"),
        ("encoder", "none,nothing", "none: neither a folder nor a known model"),
        ("dev", "0.1,0.2", "trainings that differ in it cannot be compared"),
        ("mrpc.mix_ratio", "1,2", "this training has one task"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(settings, name, given, told):
    with pytest.raises(DataError, match=f"^search: {name}: .*{told}"):
        search_space({name: given}, settings)


@pytest.mark.parametrize(
    ("search", "told"), [({}, "nothing to search"), ([1], "must be a mapping"), ({1: 2}, "mapping")]
)
def test_a_search_is_a_mapping_with_entries(settings, search, told):
    with pytest.raises(DataError, match=told):
        search_space(search, settings)


def test_the_settings_of_one_of_several_tasks(settings):
    task = {name: settings[name] for name in ("task", "train", "dev", "max_length")}
    several = MultiTaskSettings(encoder=settings["encoder"], tasks={"a": task, "b": task}).as_file()
    assert search_space({"a.mix_ratio": "0.5..2", "a.max_length": [8, 16]}, several)["a.mix_ratio"] == Range(0.5, 2.0)
    found = with_values(several, {"a.mix_ratio": 2.0, "passes": 7})
    assert (found["tasks"]["a"]["mix_ratio"], found["tasks"]["b"]["mix_ratio"], found["passes"]) == (2.0, 1.0, 7)
    assert several["tasks"]["a"]["mix_ratio"] == 1.0
    for name, told in (("c.mix_ratio", "no task 'c'; there are 'a', 'b'"), ("a.train", "cannot be compared")):
        with pytest.raises(DataError, match=told):
            search_space({name: "1,2"}, several)
