"""The YAML files of PaddlePALM's Controller, as its users have them."""

import logging

import pytest

from onion.errors import DataError
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import predict_texts
from tests.tasks.helpers import films, write_tsv

GLOBAL = """
task_instance: "senti, again, words"
target_tag: 1, 0, 0
mix_ratio: 1.0, 0.5, 0.5
task_reuse_tag: "0, 0, 1"
backbone: bert
backbone_config_path: "{encoder}/config.json"
vocab_path: "{encoder}/vocab.txt"
save_path: "output"
max_seq_len: 16
batch_size: 16
learning_rate: 6e-3
num_epochs: 1
warmup_proportion: 0.1
weight_decay: 0.1
optimizer: "adam"
random_seed: 3
use_gpu: False
print_every_n_steps: 5
"""

CLS = "train_file: {train}\nreader: cls\nparadigm: cls\nn_classes: 2\nmax_seq_len: 999\n"
MLM = "train_file: {train}\nreader: mlm\nparadigm: mlm\n"


@pytest.fixture
def palm(tmp_path, encoder_folder):
    """Write PALM's files; return the global one. Keyword arguments are lines of files that replace others."""

    def make(text=GLOBAL, **files):
        train = write_tsv(tmp_path / "films.tsv", films(64, seed=1))
        usual = {"senti": CLS, "again": CLS, "words": MLM} | files
        for name, content in usual.items():
            (tmp_path / f"{name}.yaml").write_text(content.format(train=train))
        path = tmp_path / "config.yaml"
        path.write_text(text.format(encoder=encoder_folder))
        return path

    return make


def test_they_are_the_settings_of_several_tasks(palm, encoder_folder, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    settings = resolve(read_config(palm()))
    assert (settings.encoder, settings.passes, settings.batch_size, settings.seed) == (str(encoder_folder), 1, 16, 3)
    assert (settings.learning_rate, settings.warmup_ratio, settings.weight_decay) == (6e-3, 0.1, 0.1)
    assert (settings.schedule, settings.log_every) == ("palm", 5)
    assert {name: (task.task, task.mix_ratio, task.target) for name, task in settings.tasks.items()} == {
        "senti": ("classification", 1.0, True),
        "again": ("classification", 0.5, False),
        "words": ("masked-lm", 0.5, False),
    }
    assert [task.share_head_with for task in settings.tasks.values()] == [None, "senti", None]
    assert {task.options["max_length"] for task in settings.tasks.values()} == {16}  # the global file takes precedence
    assert f"{tmp_path / 'config.yaml'}: save_path is not used: give it to --output" in caplog.messages
    assert f"{tmp_path / 'senti.yaml'}: n_classes is not used: the training file has the labels" in caplog.messages


def test_they_train_and_predict(palm, tmp_path):
    train(resolve(read_config(palm())), tmp_path / "out")
    assert len(list(predict_texts(tmp_path / "out", ["a lovely film"], task_name="senti"))) == 1


@pytest.mark.parametrize(
    ("changed", "files", "what"),
    [
        (("mix_ratio: 1.0, 0.5, 0.5", "mix_ratio: 1.0, 0.5"), {}, r"config\.yaml: mix_ratio has 2 values for 3 tasks"),
        (("use_gpu", "use_gpus"), {}, r"config\.yaml: 'use_gpus' is no key of PaddlePALM that onion knows; remove it"),
        (("backbone_config_path", "backbone"), {}, r"config\.yaml.*'backbone' is also set in line"),
        (('"senti, again, words"', '""'), {}, r"task_instance must be a list, such as 'a, b', got ''"),
        (("", ""), {"words": "reader: mlm"}, r"words\.yaml: train_file is missing; add the training file of the task"),
        (("", ""), {"words": "paradigm: ner"}, r"words\.yaml: paradigm must be one of cls, match, mlm, mrc, got 'ner'"),
        (("senti, again", "senti, nope"), {}, r"nope\.yaml: there is no such file"),
        (
            ("", ""),
            {"words": "paradigm: [mlm]"},
            r"words\.yaml: paradigm must be one of cls, match, mlm, mrc, got \['mlm'",
        ),
        (("senti, again", "senti, senti"), {}, r"config\.yaml: task_instance has 'senti' twice; remove one"),
        (("senti, again", "senti, ../again"), {}, r"config\.yaml: task_instance: '\.\./again' cannot be the name"),
        (("use_gpu: False", "save_ckpt_every_n_steps: x"), {}, "save_every must be an integer >= 1, or pass, got 'x'"),
        (("mix_ratio: 1.0", "mix_ratio: much"), {}, "tasks: 'senti': mix_ratio must be a number > 0, got 'much'"),
    ],
)
def test_what_is_refused(palm, changed, files, what):
    with pytest.raises(DataError, match=what):
        resolve(read_config(palm(GLOBAL.replace(*changed) if changed[0] else GLOBAL, **files)))


def test_the_backbone_has_to_be_named(palm):
    text = "\n".join(line for line in GLOBAL.splitlines() if "backbone_config_path" not in line)
    with pytest.raises(DataError, match="add 'encoder: FOLDER', the folder with the weights, config and vocabulary"):
        read_config(palm(text))
