"""IR relevance: every pair of question and passage of a hand-written file, and that lengths tell nothing."""

import json

import attrs
import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.pretraining.baselines.text_baselines import by_number
from onion.tasks.pretraining.tasks.ir_relevance import IRRelevance
from tests.tasks.pretraining.texts import (
    assert_drawn_by_seed_and_pass,
    corpus_of,
    drawn,
    examples_of,
    learnt,
    tokenizer_of,
)

ANSWER, SAME, OTHER = IRRelevance(questions="-").classes


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of(tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己庚辛壬癸子丑寅卯。？"), ["甲。"])


@pytest.fixture
def task(tmp_path):
    """Make the task of a file: articles of paragraphs, each a context and its questions with their answers."""

    def make(*articles, max_length=24):
        data, number = [], 0
        for article in articles:
            paragraphs = []
            for context, *asked in article:
                qas = []
                for question, answer in asked:
                    start = context.find(answer) if isinstance(answer, str) else 0
                    answers = [] if answer is None else [{"text": answer or "无", "answer_start": start}]
                    qas.append({"id": str(number), "question": question, "answers": answers})
                    number += 1
                paragraphs.append({"context": context, "qas": qas})
            data.append({"paragraphs": paragraphs})
        path = tmp_path / "questions.json"
        path.write_text(json.dumps({"data": data}), encoding="utf-8")
        return IRRelevance(questions=str(path), max_length=max_length)

    return make


def test_a_hand_written_file_has_these_pairs_and_no_others(task, corpus):
    found = drawn(
        task(
            [("甲乙。", ("甲？", "乙")), ("丙丁。", ("丙？", "丁"), ("丁？", "丙"))],
            [("戊己。", ("戊？", "己")), ("庚辛庚辛庚辛。", ("庚？", "辛"))],
            [("子丑。", ("子？", "丑"))],
        ),
        corpus,
    )
    # The third article has one passage, those of the second one are of different lengths: their questions are left out.
    answers = {"甲？": "甲乙。", "丙？": "丙丁。", "丁？": "丙丁。"}
    same = {"甲？": "丙丁。", "丙？": "甲乙。", "丁？": "甲乙。"}
    assert found == {
        *((f"{question}/{passage}/", ANSWER) for question, passage in answers.items()),
        *((f"{question}/{passage}/", SAME) for question, passage in same.items()),
        *((f"{question}/{passage}/", OTHER) for question in answers for passage in ("戊己。", "子丑。")),
    }


def test_long_paragraphs_are_several_passages_of_which_one_has_the_answer(task, corpus):
    # Room for 15 tokens: 甲..甲。乙..乙。 | 丙..丙。丁..丁。, and a question of at most 6.
    long = "".join(6 * each + "。" for each in "甲乙丙丁")
    other = "".join(6 * each + "。" for each in "戊己")
    asked = [("甲乙丙丁甲乙丙丁？", "甲"), ("丙？", "丁。"), ("乙？", None), ("丁？", "")]
    found = drawn(task([(long, *asked)], [(other, ("戊？", None))]), corpus)
    first, second = long[:14], long[14:]
    assert found == {
        (f"甲乙丙丁甲乙/{first}/", ANSWER),
        (f"甲乙丙丁甲乙/{second}/", SAME),
        (f"甲乙丙丁甲乙/{other}/", OTHER),
        (f"丙？/{second}/", ANSWER),
        (f"丙？/{first}/", SAME),
        (f"丙？/{other}/", OTHER),
    }


def random_articles(count, seed):
    generator = np.random.default_rng(seed)

    def text(least, most):
        return "".join(generator.choice(list("甲乙丙丁戊己庚辛"), generator.integers(least, most)))

    def paragraph():
        context = "".join(text(1, 12) + "。" for _ in range(generator.integers(1, 6)))
        return context, *((f"{text(1, 9)}？", context[generator.integers(len(context))]) for _ in range(3))

    return [[paragraph() for _ in range(generator.integers(1, 9))] for _ in range(count)]


def test_what_cannot_be_answered_is_not_asked(task, corpus):
    articles = [
        [("甲乙。", ("甲？", "乙"), ("癸？", None)), ("丙丁。", ("丙？", "丁"))],
        [("戊己。", ("戊？", "己")), ("庚辛。", ("庚？", "辛"))],
    ]
    assert {text.split("/")[0] for text, _ in drawn(task(*articles), corpus)} == {"甲？", "丙？", "戊？", "庚？"}


def test_lengths_do_not_tell_the_class(task, corpus):
    found = examples_of(task(*random_articles(60, 0), max_length=48), corpus, 4)
    assert np.bincount([each["label"] for each in found]) / len(found) == pytest.approx([1 / 3] * 3, abs=0.025)
    half = len(found) // 2
    for number in (lambda each: each["types"].sum(), lambda each: len(each["ids"])):
        assert by_number(found[:half], found[half:], number) < 0.38


def test_examples_depend_on_seed_and_pass(task, corpus):
    assert_drawn_by_seed_and_pass(task(*random_articles(10, 1)), corpus)


def test_files_that_lack_a_class_are_refused(task, corpus, tmp_path):
    for articles in (
        [[("甲乙。", ("甲？", "乙")), ("丙丁。", ("丙？", "丁"))]],
        [[("甲乙。", ("甲？", "乙"))], [("丙丁。", ("丙？", "丁"))]],
    ):
        with pytest.raises(DataError, match=r"questions.json: no question can have all of the passage with its answer"):
            task(*articles).samples(corpus, 0)
    with pytest.raises(DataError, match=r"gone.json"):
        IRRelevance(questions=str(tmp_path / "gone.json")).samples(corpus, 0)


def test_a_network_learns_which_passage_answers(task, corpus):
    # Articles are of characters of their own, and a question about one has a partner of it: nothing is shared.
    generator, topics = np.random.default_rng(0), ("甲乙", "丙丁", "戊己")

    def articles(count):
        for _ in range(count):
            one, partner = topics[generator.integers(3)]
            rest = ("".join(generator.choice([*"庚辛壬癸"], 3)) for _ in range(3))
            yield [(f"{one}{each}。", (f"{partner}？", one)) for each in rest]

    train, held_out = (examples_of(task(*articles(count)), corpus, 1) for count in (200, 50))
    baseline = IRRelevance(questions="-").baseline(train, held_out)
    assert set(baseline) == {"accuracy.commonest", "accuracy.shared_tokens", "accuracy.shared_bigrams"}
    assert max(baseline.values()) < 0.45
    assert learnt(IRRelevance(questions="-"), train, held_out, passes=10) > max(baseline.values()) + 0.05


def test_it_is_tested_on_other_questions_or_on_none(task, corpus, tmp_path):
    articles = [
        [("甲乙。", ("甲？", "乙")), ("丙丁。", ("丙？", "丁"))],
        [("戊己。", ("戊？", "己")), ("庚辛。", ("庚？", "辛"))],
    ]
    learned = task(*articles)
    assert learned.held_out_samples(corpus, corpus, 0) is None
    (tmp_path / "questions.json").rename(tmp_path / "other.json")
    both = IRRelevance(
        questions=task(*articles, articles[1]).questions, held_out=str(tmp_path / "other.json"), max_length=24
    )
    tested = both.held_out_samples(None, corpus, 0)
    assert tested is not None
    assert len(tested) == 4 < len(both.samples(corpus, 0))
    with pytest.raises(DataError, match=r"questions\.json: has the questions that are learned from; test on others"):
        attrs.evolve(both, held_out=both.questions).held_out_samples(None, corpus, 0)
