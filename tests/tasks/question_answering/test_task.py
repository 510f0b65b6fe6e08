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

from onion.data import iter_rows
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.cache import cached_features
from onion.tasks.finetune.inference import evaluate, predict, predict_lines
from onion.tasks.finetune.run_files import TASK_FILE, read_json, write_json
from onion.tasks.networks.reader import Reader
from onion.tasks.question_answering.positions import UNKNOWN
from onion.tasks.question_answering.task import QuestionAnswering, language_of
from onion.tasks.registry import recorded_task
from tests.tasks.arrays import features_of
from tests.tasks.helpers import DATA, GOOD, IDS, PLAIN, needs_data
from tests.tasks.squad_files import TINY, squad

CONTEXT = "the film was warm and it was a great plot ."
TASK = QuestionAnswering(**TINY, with_negative=True, language="en")


@pytest.fixture
def data(tmp_path):
    return squad(tmp_path / "a.json", (CONTEXT, "film was", [("warm", 13)]), ("a plot", "film", []))


@pytest.fixture
def examples(data, tokenizer):
    return features_of(TASK, data, tokenizer)[:]


def test_what_a_training_file_tells(tmp_path, data):
    task = QuestionAnswering(**TINY).fitted(data)
    assert (task.with_negative, task.language) == (True, "en")
    assert recorded_task(json.loads(json.dumps(task.record())), "x") == task
    other = squad(tmp_path / "b.json", ("中文 a", "什么是电影 film？", [("中", 0)]))
    task = QuestionAnswering().fitted(other)
    assert (task.with_negative, task.language) == (False, "zh")
    told = QuestionAnswering(with_negative=True, language="en").fitted(other)
    assert (told.with_negative, told.language) == (True, "en")


def test_no_answer_at_all_is_nothing_to_learn(tmp_path):
    with pytest.raises(DataError, match=r"b\.json: none of the questions has an answer"):
        QuestionAnswering().fitted(squad(tmp_path / "b.json", ("a", "b", [])))


def test_answers_that_are_all_off_are_nothing_to_learn(tmp_path):
    off = [(CONTEXT, "film was", [("warm", 14), ("plot", 0)]), ("a plot", "film", [])]
    told = r"b\.json: no answer is found at its answer_start, .* is 'warm', but the context has 'arm ' there\. "
    with pytest.raises(DataError, match=told):
        QuestionAnswering().fitted(squad(tmp_path / "b.json", *off))
    right = ("a film", "plot", [("film", 2)])
    assert QuestionAnswering().fitted(squad(tmp_path / "b.json", *off, right)).with_negative


def test_answers_that_are_off_mostly_are_told(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    off, right = ("a film", "plot", [("film", 1)]), ("a film", "plot", [("film", 2)])
    told = "examples without anything to learn, out of 3 (does the file say where the answers are?)"
    for asked, count in (((off, off, right), 2), ((off, right, right), 0)):
        notes = cached_features(TASK, squad(tmp_path / "b.json", *asked), tokenizer).notes
        assert notes.get(told, 0) == count


@pytest.mark.parametrize(
    ("questions", "language"), [(["what"], "en"), (["谁在 KOEI 工作？"], "zh"), (["谁 at KOEI"], "en"), (["?"], "en")]
)
def test_the_language_of_questions(questions, language):
    assert language_of(questions) == language


def test_what_is_done_with_the_answers_leaves_the_features_alone():
    other = attrs.evolve(TASK, max_answer_length=9, n_best=3, null_threshold=1, with_negative=False, language="zh")
    assert other.features_record() == TASK.features_record()
    assert attrs.evolve(TASK, doc_stride=2).features_record() != TASK.features_record()


def test_what_may_change_after_the_training():
    found = TASK.adjusted({"null_threshold": -1.5, "n_best": 3})
    assert found == attrs.evolve(TASK, null_threshold=-1.5, n_best=3)
    assert TASK.adjusted({}) == TASK
    with pytest.raises(DataError, match="question-answering: null_threshold must be a number, got 'high'"):
        TASK.adjusted({"null_threshold": "high"})
    for name in ("doc_stride", "colour"):
        told = f"'{name}' cannot be changed after training; of the task question-answering only max_answer_length"
        with pytest.raises(DataError, match=told):
            TASK.adjusted({name: 5})


def test_features_by_hand(data, tokenizer, examples):
    # 12 tokens: [CLS] film was [SEP], 7 of the context, [SEP]; windows begin at 0, 3, 6 of 11; the answer is token 3.
    assert [example["row"] for example in examples] == [0, 0, 0, 1]
    first = examples[0]
    assert first["ids"].tolist() == [
        IDS[token] for token in ["[CLS]", "film", "was", "[SEP]", *CONTEXT.split()[:7], "[SEP]"]
    ]
    assert [(example["start"], example["end"]) for example in examples] == [(7, 7), (4, 4), (0, 0), (0, 0)]
    unlabelled = features_of(TASK, data, tokenizer, labelled=False)
    assert "start" not in unlabelled[0]
    assert [example["ids"].tolist() for example in unlabelled] == [example["ids"].tolist() for example in examples]


def test_what_the_user_should_know(tmp_path, tokenizer):
    path = squad(tmp_path / "a.json", (CONTEXT, "a film was it warm", [("warm", 5), ("cold", -1)]))
    notes = Counter()
    (first, *_) = features_of(TASK, path, tokenizer, notes=notes)
    assert notes == {
        "answers not found at their answer_start, ignored": 2,
        "questions without an answer in any window, ignored": 1,
        "questions longer than 4 tokens, cut": 1,
    }
    assert (first["start"], first["end"]) == (UNKNOWN, UNKNOWN)


def test_a_batch(examples):
    batch = TASK.collate(examples, pad_id=0)
    assert batch["labels"].tolist() == [[7, 7], [4, 4], [0, 0], [0, 0]]
    assert batch["labels"].dtype == np.int64
    assert batch["input_ids"].shape == (4, 12)
    assert [window["row"] for window in batch["windows"]] == [0, 0, 0, 1]
    assert batch["places"] == [0, 1, 2, 3]


@pytest.mark.parametrize(("language", "told"), [("en", 0), ("zh", 1), (None, 0)])
def test_a_file_that_is_measured_by_the_rules_of_another_language_is_told(language, told, data, caplog):
    QuestionAnswering(**TINY, language=language).metric(data)
    warned = f"{data}: the questions look like en and are measured by the rules of zh; those of en: --set language=en"
    assert caplog.messages == [warned] * told


# -- from file to file -------------------------------------------------------------------------------------------------


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


def test_it_learns_and_measures_the_same_again(run, folder, tmp_path):
    out, _ = run
    figures = evaluate(out, str(folder / "dev.json"), report=tmp_path / "report")
    questions = [row for _, row in iter_rows(tmp_path / "report" / "questions.csv")]
    assert [float(row["f1"]) for row in questions] == sorted(float(row["f1"]) for row in questions)
    for name in ("exact_match", "f1"):
        assert np.mean([float(row[name]) for row in questions]) == pytest.approx(figures[name])
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
