"""A small trained run of each kind of task, and what is exported of it."""

import pytest

from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.settings import Settings
from tests.onions.material import OPTIONS, encoder, files
from tests.tasks.helpers import write_tsv
from tests.tasks.squad_files import squad

USUAL = {"max_length": 16}
KINDS = {
    "classification": ("classification", USUAL),
    "regression": ("regression", USUAL),
    "matching": ("matching", USUAL),
    "matching, pairwise": ("matching", USUAL),
    "multilabel": ("multilabel", {**USUAL, "threshold": 0.4}),
    "masked-lm": ("masked-lm", USUAL),
    "token-classification": ("token-classification", {**USUAL, "stride": 5}),
    "token-classification, crf": ("token-classification", {**USUAL, "decoder": "crf"}),
    "question-answering": ("question-answering", OPTIONS["question-answering"]),
    "question-answering, no answer": ("question-answering", OPTIONS["question-answering"]),
}


def training_files(kind, folder):
    """The files of a kind of task; written where they are not those of all tests."""
    if kind == "matching, pairwise":
        rows = [("a film", "a good film", "a bad plot"), ("the actor", "the actor is fine", "an awful story")] * 4
        path = write_tsv(folder / "pairs.tsv", rows, ("text_a", "text_b", "text_b_neg"))
        return path, path
    if kind == "question-answering, no answer":
        asked = [("a good film was in Rome", "where was it", [("Rome", 19)]), ("a plot", "where was it", [])] * 4
        squad(folder / "questions.json", *asked)
        return folder / "questions.json", folder / "questions.json"
    return files(KINDS[kind][0])


@pytest.fixture(scope="package")
def run_of(tmp_path_factory):
    """Kind -> the folder of its run, trained once."""
    runs = {}

    def run(kind):
        if kind not in runs:
            folder = tmp_path_factory.mktemp("run")
            task, options = KINDS[kind]
            learn, dev = map(str, training_files(kind, folder))
            passes = 8 if task == "token-classification" else 1  # after one there are no spans
            settings = {"passes": passes, "batch_size": 4, "learning_rate": 3e-3, "options": options}
            chosen = Settings(task=task, encoder=str(encoder()), train=learn, dev=dev, **settings)
            train(chosen, folder / "run", quiet=True)
            runs[kind] = folder / "run"
        return runs[kind]

    return run
