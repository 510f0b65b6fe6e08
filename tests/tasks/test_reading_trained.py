"""Reading comprehension from file to file: what is learned, measured and predicted; and what real files come to."""

import json
import random
import shutil
import unicodedata
from collections import Counter
from types import SimpleNamespace

import attrs
import numpy as np
import paddle
import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.inference import evaluate, predict, predict_lines
from onion.tasks.finetune.run_folder import TASK_FILE, read_json, write_json
from onion.tasks.question_answering.task import QuestionAnswering, Reader
from onion.tasks.registry import recorded_task
from tests.tasks.helpers import DATA, GOOD, PLAIN, needs_data
from tests.tasks.squad_files import TINY, squad

TASK = QuestionAnswering(**TINY, with_negative=True, language="en")


def stories(count, seed):
    """Contexts of up to 20 words; the answer is the good word among them, if there is one."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        words = chance.choices(PLAIN, k=chance.randrange(3, 20))
        answers = []
        if chance.random() < 0.7:
            place, word = chance.randrange(len(words) + 1), chance.choice(GOOD)
            answers = [(word, len(" ".join([*words[:place], ""]) if place else ""))]
            words.insert(place, word)
        found.append((" ".join(words), "was it", answers))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    squad(folder / "train.json", *stories(200, seed=1))
    squad(folder / "dev.json", *stories(60, seed=2))
    return folder


@pytest.fixture(scope="module")
def run(folder, learn):
    files = folder / "train.json", folder / "dev.json"
    return learn("question-answering", *files, passes=4, options=TINY, test_every=1000)


def test_it_learns_and_measures_the_same_again(run, folder):
    out, _ = run
    figures = evaluate(out, str(folder / "dev.json"))
    assert figures.pop("rows") > 0
    names = {"exact_match", "f1", "has_answer_exact_match", "has_answer_f1", "no_answer_exact_match"}
    best = {"best_exact_match", "best_exact_match_threshold", "best_f1", "best_f1_threshold"}
    assert figures.keys() == names | best
    assert figures["f1"] > 0.8


@pytest.mark.parametrize("figure", ["exact_match", "f1"])
def test_the_best_threshold_reaches_what_it_promises(run, folder, tmp_path, figure):
    out = shutil.copytree(run[0], tmp_path / "out")
    dev = str(folder / "dev.json")
    figures = evaluate(out, dev)
    reached = {}
    for threshold in (figures[f"best_{figure}_threshold"], -100.0, -3.0, -1.0, 1.0, 3.0, 100.0):
        adjusted = recorded_task(read_json(out, TASK_FILE), out).adjusted({"null_threshold": threshold})
        write_json(out / TASK_FILE, adjusted.record())
        found = evaluate(out, dev)
        reached[threshold] = found[figure]
        assert found[f"best_{figure}_threshold"] == figures[f"best_{figure}_threshold"]
    assert next(iter(reached.values())) == max(reached.values()) == pytest.approx(figures[f"best_{figure}"])
    assert reached[-100.0] < reached[100.0] < figures["best_f1"]


def test_predictions_of_a_file(run, folder):
    out, _ = run
    found = list(predict(out, str(folder / "dev.json")))
    truth = stories(60, seed=2)
    assert [each["id"] for each in found] == [f"q{number}" for number in range(60)]
    right = []
    for each, (context, _, answers) in zip(found, truth, strict=True):
        assert context[each["begin"] : each["end"]] == each["answer"]
        assert sum(entry["probability"] for entry in each["nbest"]) == pytest.approx(1, abs=1e-4)
        assert (each["answer"] == "") == (each["null_odds"] > 0)
        assert all(entry["text"] in context for entry in each["nbest"])
        right.append(each["answer"] == (answers[0][0] if answers else ""))
    assert np.mean(right) == pytest.approx(evaluate(out, str(folder / "dev.json"))["exact_match"])


def test_the_files_that_the_official_scripts_read(run, folder):
    found = list(predict(run[0], str(folder / "dev.json")))
    files = TASK.files(found)
    assert files["predictions.json"] == {each["id"]: each["answer"] for each in found}
    assert files["null_odds.json"]["q3"] == found[3]["null_odds"]
    assert files["nbest_predictions.json"]["q5"][0].keys() == {"text", "probability", "start_logit", "end_logit"}
    assert "null_odds.json" not in attrs.evolve(TASK, with_negative=False).files(found)
    json.dumps(files, allow_nan=False)


def test_lines_and_an_empty_context(run):
    lines = ['{"question": "was it", "context": "the film was lovely", "id": "x"}\n', "was it\t\n"]
    lovely, nothing = predict_lines(run[0], [line.encode() for line in lines])
    assert (lovely["id"], lovely["answer"], lovely["begin"]) == ("x", "lovely", 13)
    assert (nothing["id"], nothing["answer"], nothing["end"]) == ("2", "", 0)


def stands_alone(letter):
    """Whether every tokenizer of BERT's kind cuts a text on both sides of it."""
    odd = letter.isspace() or unicodedata.category(letter)[0] == "P" or (letter.isascii() and not letter.isalnum())
    return odd or "\u4e00" <= letter <= "\u9fff"


def between_tokens(context, place):
    """Whether a token ends there and another one begins, whatever the vocabulary."""
    return place in (0, len(context)) or any(map(stands_alone, context[place - 1 : place + 1]))


class SimpleEncoder(paddle.nn.Layer):
    config = SimpleNamespace(hidden_size=4, initializer_range=0.02)


@needs_data
@pytest.mark.parametrize(
    ("name", "vocabulary"),
    [
        ("squad/dev_sample", "bert-base-uncased"),
        ("xquad/xquad.en", "bert-base-uncased"),
        ("xquad/xquad.zh", "bert-base-chinese"),
        ("drcd/dev", "ernie-1.0-zh"),
        ("cmrc2018/trial", "bert-base-chinese"),
    ],
)
def test_right_logits_give_right_answers(tmp_path, name, vocabulary):
    """What the labels say, put through spans and windows, is the answer; where tokens are coarser, it holds it."""
    shutil.copy(DATA / "vocab" / vocabulary / "vocab.txt", tmp_path / "vocab.txt")
    task = QuestionAnswering(max_answer_length=100).fitted(DATA / f"{name}.json")
    rows = list(task.rows(DATA / f"{name}.json", labelled=True))[:500]
    examples = task.features(rows, Tokenizer.from_pretrained(tmp_path), True, Counter())
    reader = Reader(SimpleEncoder(), task.n_best, task.max_answer_length)
    decoded = []
    for example in examples:
        logits = np.zeros((1, len(example["ids"]), 2), np.float32)
        if example["start"] > 0:
            logits[0, example["start"], 0] = logits[0, example["end"], 1] = 9
        decoded += reader.decode(paddle.to_tensor(logits), {"windows": [example]})
    learned = {each["row"] for each in examples if each["start"] > 0 and each["end"] - each["start"] < 100}
    same = []
    for row, predicted in enumerate(task.predictions(rows, examples, decoded)):
        if row not in learned:
            continue
        context = rows[row].context
        answer = next(each for each in rows[row].answers if each.stands_in(context))
        assert answer.text.strip() in predicted["answer"]
        assert context[predicted["begin"] : predicted["end"]] == predicted["answer"]
        if answer.text == answer.text.strip() and all(between_tokens(context, at) for at in (answer.start, answer.end)):
            same.append(predicted["answer"] == answer.text)
    assert all(same)
    assert len(same) >= 0.93 * len(rows)
