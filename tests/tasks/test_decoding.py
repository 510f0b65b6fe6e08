"""Outputs decoded without the network say what the network says of them, for every task."""

import shutil
from collections import Counter
from pathlib import Path

import attrs
import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.models.auto import load_encoder, new_encoder
from onion.models.tokenizer import Tokenizer
from onion.models.xlnet.config import XLNetConfig
from onion.tasks.data.features.examples import Examples
from onion.tasks.decoding import class_probabilities, label_probabilities, match_scores, numbers, pair_scores
from onion.tasks.registry import TASKS, get_task
from onion.tasks.regression import Regression
from onion.tasks.task import Task
from tests.onions.material import files
from tests.tasks.arrays import tensors
from tests.tasks.helpers import films, write_tsv
from tests.tasks.squad_files import TINY, squad

SPIECE = Path(__file__).parents[1] / "models" / "golden" / "xlnet_tokenizer" / "spiece.model"
SHORT = {"max_length": 16}
CASES = {
    **{name: (name, SHORT) for name in TASKS if name != "question-answering"},
    "matching pairwise": ("matching", SHORT),
    "token-classification crf": ("token-classification", {"max_length": 8, "decoder": "crf"}),
    "question-answering": ("question-answering", TINY),
    "question-answering with no answers": ("question-answering", {**TINY, "with_negative": True}),
}


@pytest.fixture(scope="module")
def xlnet(tmp_path_factory):
    """The folder of a tiny encoder whose [CLS] is the last token."""
    folder = tmp_path_factory.mktemp("xlnet")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    new_encoder(XLNetConfig(vocab_size=700, **sizes)).save_pretrained(folder)
    shutil.copy(SPIECE, folder)
    return folder


def file_of(case, folder):
    if case == "matching pairwise":
        rows = [(text, "a good film", "a plot") for text, _ in films(6, seed=1)]
        return write_tsv(folder / "pairs.tsv", rows, ("text_a", "text_b", "text_b_neg"))
    return files(CASES[case][0])[0]


def with_masks(batch, tokenizer, labelled):
    """A batch of masked-lm with some words masked."""
    places = [1, 2, batch["input_ids"].shape[1] + 1]
    batch = {**batch, "masked_positions": places}
    return {**batch, "labels": batch["input_ids"].reshape(-1)[places]} if labelled else batch


def both(case, path, encoder, labelled):
    """What the network and what the task alone makes of the network's outputs; and the task."""
    name, options = CASES[case]
    tokenizer = Tokenizer.from_pretrained(encoder)
    task = get_task(name, options).fitted(path)
    examples = Examples.of(task.features(list(task.rows(path, labelled)), tokenizer, labelled, Counter()))
    batch = task.collate(examples[:], tokenizer.pad_id)
    if name == "masked-lm":
        batch = with_masks(batch, tokenizer, labelled)
    paddle.seed(3)
    network = task.network(load_encoder(encoder))
    for parameter in network.parameters():  # far from 0, where all outputs are alike and a chain has no say
        parameter.set_value(parameter + paddle.normal(0.0, 0.3, parameter.shape))
    network.eval()
    weights = {path: parameter.numpy() for path, parameter in network.named_parameters()}
    with paddle.no_grad():
        outputs = network(tensors(batch))
    return network.decode(outputs, batch), task.decoding(weights)(outputs.numpy(), batch), task


def told(decoded):
    """What is decoded of an example, as lists of arrays."""
    fields = attrs.astuple(decoded, recurse=False) if attrs.has(type(decoded)) else (decoded,)
    return [None if field is None else np.asarray(field) for field in fields]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_network_is_not_needed(case, labelled, encoder_folder, tmp_path):
    by_network, alone, task = both(case, file_of(case, tmp_path), encoder_folder, labelled)
    assert len(by_network) == len(alone) > 1
    for one, other in zip(by_network, alone, strict=True):
        assert type(one) is type(other)
        for array, wanted in zip(told(other), told(one), strict=True):
            if wanted is None or wanted.dtype.kind == "i" or task.name != "masked-lm":
                assert np.array_equal(array, wanted)
            else:  # the network's own are Paddle's, so that a GPU finds the best of all words
                np.testing.assert_allclose(array, wanted, rtol=1e-5)
                assert array.dtype == wanted.dtype


def test_the_score_of_no_answer_is_that_of_the_last_token_in_xlnet(xlnet, tmp_path):
    path = squad(tmp_path / "a.json", ("the film was in Rome", "where", [("Rome", 16)]), ("a plot", "where", []))
    by_network, alone, _ = both("question-answering", path, xlnet, labelled=False)
    assert [spans.null.tolist() for spans in alone] == [spans.null.tolist() for spans in by_network]
    assert [spans.places.tolist() for spans in alone] == [spans.places.tolist() for spans in by_network]


def test_a_task_that_cannot_decode_alone_says_so():
    class OwnTask(Regression):
        name = "own"
        decoding = Task.decoding

    with pytest.raises(DataError, match=r"the task own cannot decode without its network; define OwnTask\.decoding"):
        OwnTask().decoding({})


def test_each_by_hand():
    logits = np.array([[0.0, np.log(3.0)]], np.float32)
    np.testing.assert_allclose(class_probabilities(logits, {}), [[0.25, 0.75]], rtol=1e-6)
    np.testing.assert_allclose(label_probabilities(logits, {}), [[0.5, 0.75]], rtol=1e-6)
    np.testing.assert_allclose(match_scores(logits, {}), [0.75], rtol=1e-6)
    np.testing.assert_allclose(pair_scores(logits.T, {"places": [0]}), [[0.5, 0.75]], rtol=1e-6)
    np.testing.assert_allclose(pair_scores(logits.T, {"places": [0, 1]}), [0.5, 0.75], rtol=1e-6)
    assert numbers(np.array([[1.5], [-2.0]], np.float32), {}) == [1.5, -2.0]
