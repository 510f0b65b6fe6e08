import json

import pytest

from onion.errors import DataError
from onion.tasks.question_answering.questions import Answer, file_articles, file_questions, line_questions
from tests.tasks.helpers import DATA, needs_data

CONTEXT = "The film was warm."


@pytest.fixture
def file(tmp_path):
    """A file of one paragraph with some questions."""

    def write(*asked, context=CONTEXT):
        path = tmp_path / "a.json"
        path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": [{"context": context, "qas": asked}]}]}))
        return path

    return write


def asked(own="q", text="What?", answers=(("warm", 13),), **more):
    return {"id": own, "question": text, "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


def test_questions_of_a_file(file):
    path = file(
        asked("a"), asked(7, "Who?", (("film", 4), ("The film", 0))), asked("c", answers=(), is_impossible=True)
    )
    first, second, third = file_questions(path, labelled=True)
    assert (first.id, first.text, first.context, first.answers) == ("a", "What?", CONTEXT, (Answer("warm", 13),))
    assert (second.id, [answer.text for answer in second.answers]) == ("7", ["film", "The film"])
    assert third.answers == ()
    assert first.where == f"{path}: data[0].paragraphs[0].qas[0] (id a)"


def test_questions_of_each_article(tmp_path):
    articles = [[asked("a"), asked("b")], [], [asked("c")]]
    data = [{"paragraphs": [{"context": CONTEXT, "qas": [each]} for each in questions]} for questions in articles]
    (tmp_path / "a.json").write_text(json.dumps({"data": data}))
    found = file_articles(tmp_path / "a.json", labelled=True)
    assert [[each.id for each in questions] for questions in found] == [["a", "b"], [], ["c"]]


@pytest.mark.parametrize(
    ("question", "labelled"),
    [
        pytest.param({"id": "a", "question": "What?"}, False, id="unlabelled"),
        pytest.param(asked(answers=()), True, id="no answers"),
        pytest.param(
            asked(answers=(), is_impossible=True, plausible_answers=[{"text": "warm", "answer_start": 13}]),
            True,
            id="plausible answers of version 2",
        ),
    ],
)
def test_questions_without_answers(file, question, labelled):
    (found,) = file_questions(file(question), labelled)
    assert (found.text, found.answers) == ("What?", ())


@pytest.mark.parametrize(
    ("answer", "stands"),
    [(Answer("warm", 13), True), (Answer("warm", 12), False), (Answer(".", -1), False), (Answer("m.", 17), False)],
)
def test_where_an_answer_stands(answer, stands):
    assert answer.stands_in(CONTEXT) is stands
    assert answer.end == answer.start + len(answer.text)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": None}, r"qas\[1\]\.id: is null, not an integer"),
        ({"question": 5}, r"qas\[1\] \(id b\)\.question: is 5, not a string"),
        ({"answers": None}, r"qas\[1\] \(id b\)\.answers: is null, not a list"),
        (
            {"answers": [{"text": "a"}]},
            r"qas\[1\] \(id b\)\.answers\[0\]: there is no 'answer_start' here, only 'text'",
        ),
        ({"answers": [{"text": "", "answer_start": 0}]}, r"answers\[0\]: the text is empty; .* has \"answers\": \[\]"),
        ({"answers": [{"text": "a", "answer_start": 1.0}]}, r"answer_start: is 1\.0, not an integer"),
        ({"is_impossible": True}, r"\(id b\): is_impossible is true, but there are 1 answers; correct"),
        ({"is_impossible": "no"}, r"\(id b\)\.is_impossible: is \"no\", not true or false"),
        ({"is_impossible": False, "answers": []}, r"is_impossible is false, but there is no answer"),
        ({"id": "a"}, r"qas\[1\] \(id a\): the id is also that of data.*qas\[0\]; predictions need unique ids"),
    ],
)
def test_questions_that_do_not_do(file, change, told):
    path = file(asked("a"), {**asked("b"), **change})
    with pytest.raises(DataError, match=r"a\.json: data\[0\]\.paragraphs\[0\]\." + r".*" + told):
        list(file_questions(path, labelled=True))


def test_a_table_is_told_which_form_is_wanted(tmp_path):
    (tmp_path / "a.tsv").write_text("question\tcontext\nWho?\tA film.\n")
    told = r"""a\.tsv:1: broken JSON .*; questions are read from SQuAD's JSON, \{"data": .*; correct or"""
    with pytest.raises(DataError, match=told):
        list(file_questions(tmp_path / "a.tsv", labelled=True))


def test_lines():
    lines = ["Who?\tA film.\n", '{"question": "What?", "context": "b", "id": 9}', "Why?\tc\tmine"]
    found = [(question.id, question.text, question.context) for question in line_questions(lines)]
    assert found == [("1", "Who?", "A film."), ("9", "What?", "b"), ("mine", "Why?", "c")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Who?", "1 tab-separated cells; this model reads question and context"),
        ('{"question": "What?"}', "there is no 'context' in this object"),
        ('{"question": "What?", "context": 5}', "context is 5, not a string"),
        ('{"question": "What?", "context": "a", "id": null}', r"id is empty \(null\)"),
    ],
)
def test_lines_that_do_not_do(line, told):
    with pytest.raises(DataError, match=f"standard input:2: {told}"):
        list(line_questions(["Who?\tA film.", line]))


def test_two_lines_of_the_same_id():
    lines = ["Who?\tA film.", '{"question": "What?", "context": "b", "id": 1}']
    with pytest.raises(
        DataError, match="standard input:2: the id '1' is also that of line 1; predictions need unique ids"
    ):
        list(line_questions(lines))


@needs_data
@pytest.mark.parametrize(
    ("name", "questions", "answers", "elsewhere"),  # as the data sets' description counts them
    [
        ("cmrc2018/train", 10142, 10142, 21),
        ("cmrc2018/dev", 3219, 9657, 200),
        ("cmrc2018/trial", 1002, 1002, 5),
        ("drcd/dev", 3524, 7048, 0),
        ("squad/dev_sample", 810, 2438, 0),
        ("xquad/xquad.zh", 1190, 1190, 0),
    ],
)
def test_real_files(name, questions, answers, elsewhere):
    found = list(file_questions(DATA / f"{name}.json", labelled=True))
    stands = [answer.stands_in(question.context) for question in found for answer in question.answers]
    assert (len(found), len(stands), stands.count(False)) == (questions, answers, elsewhere)
