"""What ``onion tasks`` and docs/settings.md tell of each task."""

import attrs
import pytest

from onion.cli import main
from onion.tasks.classification import Classification
from onion.tasks.pretraining.registry import PRETRAINING_TASKS, WITH_SETTINGS
from onion.tasks.reference import TaskSetting, reference_of, settings_of
from onion.tasks.registry import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_every_setting_of_every_task_is_told_of(name):
    reference = reference_of(TASKS[name])
    assert (reference.name, bool(reference.summary), bool(reference.monitor)) == (name, True, True)
    assert reference.files.startswith("File")
    assert "Prediction:" in reference.files
    fields = [field.name for field in attrs.fields(TASKS[name]) if field.init]
    assert [each.name for each in reference.settings] == fields
    assert [each.name for each in reference.settings if not each.help] == []


@pytest.mark.parametrize("kind", WITH_SETTINGS.values())
def test_every_setting_of_pretraining_is_told_of(kind):
    settings = settings_of(kind)
    assert [each.name for each in settings] == [field.name for field in attrs.fields(kind) if field.init]
    assert [each.name for each in settings if not each.help] == []


def test_settings_are_told_with_defaults_and_the_help_of_the_class_they_come_from():
    settings = {each.name: each for each in reference_of(Classification).settings}
    length = "the maximum number of tokens of an example, including special ones"
    assert settings["max_length"] == TaskSetting("max_length", "128", length)
    assert settings["labels"].default == settings["dropout"].default == ""
    window = reference_of(TASKS["question-answering"]).settings[0]
    assert (window.name, window.default, window.help) == (
        "max_length",
        "384",
        "the maximum number of tokens of a window, including the question",
    )


def test_a_task_of_a_users_own_needs_no_documentation():
    @attrs.frozen(kw_only=True)
    class Mine(Classification):
        name = "mine"
        monitor = "f1"
        softness: float = 0.5

    reference = reference_of(Mine)
    assert (reference.monitor, reference.settings[-1]) == ("f1", TaskSetting("softness", "0.5", ""))


def test_the_command(capsys):
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*TASKS, *PRETRAINING_TASKS]
    assert main(["tasks", "tag"]) == 0  # an alias
    told = capsys.readouterr().out
    assert told.startswith("token-classification: a tag for every word of a text")
    assert '\n  decoder: "softmax", each word independently; "crf", all words of a window jointly (default:' in told
    assert "Metric: f1" in told
    assert "``" not in told
    assert main(["tasks", "discourse-relation"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("discourse-relation: with which word does a sentence go on from the one before")
    assert '\n  language: whose list of markers is taken: "zh", 37, or "en", 29' in told
    assert main(["tasks", "sing"]) == 2
    assert "unknown task 'sing'; the tasks are classification" in capsys.readouterr().err
