import json
import re
import sys

import attrs
import pytest

from onion.errors import DataError, OnionError
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.presets import PRESETS, preset
from onion.tasks.registry import get_task

NEEDED = {"task": "classification", "train": "a.tsv", "dev": "b.tsv"}


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_and_json_say_the_same(tmp_path):
    yaml = written(
        tmp_path / "a.yaml", "task: classify\nlearning_rate: 5e-5\nclass_weights: {差: 2}\n# a comment\nstream: true\n"
    )
    lines = {"task": "classification", "learning_rate": 5e-5, "class_weights": {"差": 2}, "stream": True}
    plain = written(tmp_path / "a.json", json.dumps(lines))
    one, other = (resolve(NEEDED, read_config(path)) for path in (yaml, plain))
    assert one == other
    assert (one.learning_rate, one.stream, one.options) == (5e-5, True, {"class_weights": {"差": 2}})


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.yaml", "a: [", "broken YAML"),
        ("a.yaml", "!!python/object/apply:os.system ['touch pwned']", "broken YAML"),
        ("a.yaml", "- a\n- b", "must be a mapping of settings"),
        ("a.yaml", "1: a", "must be a mapping of settings"),
        ("a.yml", "", "must be a mapping of settings"),
        ("a.json", "{", "broken JSON"),
        ("a.json", "[" * 100_000, "broken JSON"),
        ("a.json", '{"a": 1, "b": {"c": 1, "c": 2}}', "'c' is set twice; remove one"),
        ("a.toml", "a = 1", "its name must end in .yaml, .yml or .json"),
        ("a.yaml", "learning_rate: 2e-5x", "learning_rate must be a number > 0, got '2e-5x'"),
        ("a.json", '{"tasks": {}, "batch_size": 0}', "batch_size must be an integer >= 1, got 0"),
    ],
)
def test_files_that_do_not_do(tmp_path, monkeypatch, name, text, what):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"{name}:.*{re.escape(what)}"):
        read_config(written(tmp_path / name, text))
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("passes: 1\nseed: 2\npasses: 3\n", "3: 'passes' is also set in line 1; remove one"),
        ("options:\n  - {a: 1}\n  - b: 1\n    'b': 2\n", "4: 'b' is also set in line 3"),
        ("class_weights: {a: 1, a: 2}", "1: 'a' is also set in line 1"),
    ],
)
def test_a_name_that_stands_twice_in_yaml_is_told_with_its_lines(tmp_path, text, what):
    with pytest.raises(DataError, match=f"a.yaml:{what}"):
        read_config(written(tmp_path / "a.yaml", text))


@pytest.mark.parametrize("name", ["task", "monitor", "encoder", "x\x1b" + "y" * 9999])
def test_a_value_is_shown_in_short_and_without_what_a_terminal_obeys(tmp_path, name):
    content = json.dumps({"task": "classification", "train": "a", "dev": "b", name: ["\x1b[2J" + "y" * 9999] * 99})
    with pytest.raises(DataError) as caught:
        get_task("classification", resolve(read_config(written(tmp_path / "a.json", content))).options)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_what_a_run_writes_down_as_its_settings_can_be_read(tmp_path):
    settings = resolve(
        {**NEEDED, "lora_rank": 4, "lora_targets": "q_proj", "freeze": "encoder.*", "learning_rate": "2e-5"}
    )
    assert resolve(read_config(written(tmp_path / "a.json", json.dumps(settings.as_json())))) == settings


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    for name, told in (("a.yaml", "there is no such file"), ("b.yaml", "cannot be read")):
        with pytest.raises(DataError, match=rf"{name}: {told}"):
            read_config(tmp_path / name)


def test_yaml_needs_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(OnionError, match=r"pip install 'onion-paddle\[yaml\]'"):
        read_config(written(tmp_path / "a.yaml", "a: 1"))


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.yaml", "task: classification\npasses: 0\n", 2),
        ("a.yaml", "# passes: 3\n'passes': 0\n", ""),  # two lines that look like it
        ("a.json", '{\n  "task": "classification",\n  "passes": 0\n}', 3),
        ("a.json", '{"task": "classification", "passes": 0}', 1),
    ],
)
def test_a_wrong_value_is_told_with_its_line(name, text, line, tmp_path):
    path = written(tmp_path / name, text)
    with pytest.raises(DataError) as caught:
        read_config(path)
    place = f"{path}:{line}" if line else path
    assert str(caught.value) == f"{place}: passes must be an integer >= 1, got 0"


def test_the_later_layer_wins():
    layers = {"learning_rate": 1e-3, "max_length": 64}, {**NEEDED, "learning_rate": 2e-3}
    found = resolve(preset("ernie/chnsenticorp"), *layers)
    assert (found.learning_rate, found.batch_size, found.warmup_ratio) == (2e-3, 24, 0.0)
    assert found.options == {"max_length": 64}


def test_settings_of_the_task_are_alike_wherever_they_stand():
    preset_like = {"max_length": 256, "options": {"stride": 3, "label_smoothing": 0.1}}
    found = resolve(NEEDED, preset_like, {"options": {"max_length": 10}}, {"stride": 5})
    assert found.options == {"max_length": 10, "stride": 5, "label_smoothing": 0.1}


def test_a_setting_that_stands_at_the_top_and_under_options_is_refused():
    with pytest.raises(DataError, match="'passes' is set both at the top level and under options; remove one"):
        resolve(NEEDED, {"passes": 3, "options": {"passes": 4}})


@pytest.mark.parametrize("options", [5, None, ["a"], "a"])
def test_options_that_are_no_settings(options):
    with pytest.raises(DataError, match=r"options must be a mapping of settings, got"):
        resolve(NEEDED, {"options": options})


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed(name):
    with pytest.raises(DataError, match=f"{name} is missing; set it with --{name} or in the config file"):
        resolve({key: value for key, value in NEEDED.items() if key != name})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"passes": 0}, "passes must be an integer >= 1, got 0"),
        ({"passes": True}, "passes must be .*, got True"),
        ({"passes": "3"}, "passes must be .*, got '3'"),
        ({"learning_rate": "fast"}, "learning_rate must be a number > 0, got 'fast'"),
        ({"learning_rate": float("nan")}, "learning_rate must be .*, got nan"),
        ({"warmup_ratio": 1.5}, "warmup_ratio must be a number from 0 to 1, got 1.5"),
        ({"weight_decay": -1}, "weight_decay must be a number >= 0, got -1.0"),
        ({"seed": -1}, "seed must be an integer from 0 to 4294967295, got -1"),
        ({"test_every": 0}, "test_every must be .*, got 0"),
        ({"stream": "yes"}, "stream must be true or false, got 'yes'"),
        ({"encoder": ""}, "encoder must be a non-empty string, got ''"),
        ({"train": 5}, "train must be a non-empty string, got 5"),
        ({"learning_rate": 10**400}, r"learning_rate must be a number > 0, got 10+\.\.\."),
        ({"init_head": True}, "init_head needs init_from, the training to load the head from"),
    ],
)
def test_values_that_do_not_do(settings, told):
    with pytest.raises(DataError, match=told):
        resolve(NEEDED, settings)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves(name):
    found = resolve(preset(name), {"train": "a", "dev": "b"})
    assert found.task == PRESETS[name]["task"]
    assert {"max_length"} <= found.options.keys()
    assert attrs.asdict(found)["learning_rate"] == PRESETS[name]["learning_rate"]


@pytest.mark.parametrize(
    ("name", "batch_size", "passes", "learning_rate"),
    [
        ("ernie/thuc", 8, 3, 3e-5),
        ("ernie-large/thuc", 8, 3, 1.5e-5),
        ("ernie-large/cmrc2018", 8, 2, 3e-5),
        ("ernie-large/rte", 16, 5, 3e-5),
        ("ernie/rte", 4, 4, 2e-5),
        ("ernie-large/qnli", 32, 4, 2e-5),
        ("palm/atis-slots", 16, 20, 2e-5),
    ],
)
def test_presets_as_they_were_published(name, batch_size, passes, learning_rate):
    found = preset(name)
    assert (found["batch_size"], found["passes"], found["learning_rate"]) == (batch_size, passes, learning_rate)


def test_an_unknown_preset():
    with pytest.raises(DataError, match="unknown preset 'bert/x'; the presets are ernie/bq, ernie/chnsenticorp"):
        preset("bert/x")
