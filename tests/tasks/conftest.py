"""What the tests of tasks/ share: a tiny encoder, its tokenizer, and a run that was trained with them."""

import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.settings import Settings
from tests.tasks.helpers import films, tiny_encoder, write_tsv


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def tokenizer(encoder_folder):
    return Tokenizer.from_pretrained(encoder_folder)


@pytest.fixture(scope="session")
def films_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    write_tsv(folder / "train.tsv", films(128, seed=1))
    write_tsv(folder / "dev.tsv", films(70, seed=2))
    return folder


@pytest.fixture(scope="session")
def make_settings(encoder_folder, films_folder):
    """Settings of a short training on films; keyword arguments replace some."""

    def make(**changes):
        usual = {
            "task": "classification",
            "train": str(films_folder / "train.tsv"),
            "dev": str(films_folder / "dev.tsv"),
            "encoder": str(encoder_folder),
            "passes": 2,
            "batch_size": 16,
            "learning_rate": 6e-3,
            "options": {"max_length": 16},
        }
        return Settings(**(usual | changes))

    return make


@pytest.fixture(scope="session")
def trained(make_settings, tmp_path_factory):
    """The folder and the result of a short training."""
    out = tmp_path_factory.mktemp("trained") / "out"
    return out, train(make_settings(), out)


@pytest.fixture(scope="session")
def learn(make_settings, tmp_path_factory):
    """Train a task on files; return the folder and the report."""

    def run(task, train_file, dev_file, **changes):
        out = tmp_path_factory.mktemp("learned") / "out"
        settings = make_settings(task=task, train=str(train_file), dev=str(dev_file), **changes)
        return out, train(settings, out).report

    return run
