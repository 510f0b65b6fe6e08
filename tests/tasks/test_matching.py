import json
from collections import Counter

import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.models.encoder import Encoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.matching import Matching, PairwiseMatcher, PointwiseMatcher
from onion.tasks.registry import get_task
from tests.tasks.helpers import BAD, DATA, GOOD, HIDDEN, IDS, needs_data, write_tsv

JUDGED, ASKED, PAIRS = (
    ("text_a", "text_b", "label"),
    ("text_a", "text_b", "label", "qid"),
    ("text_a", "text_b", "text_b_neg"),
)


def examples_of(task, path, tokenizer):
    return Examples.of(task.features(list(task.rows(path, labelled=True)), tokenizer, True, Counter()))


# -- files -------------------------------------------------------------------------------------------------------------


def test_what_a_training_file_tells(tmp_path):
    rows = write_tsv(tmp_path / "a.tsv", [("a", "b", "yes"), ("a", "c", "no")], JUDGED)
    asked = write_tsv(tmp_path / "b.tsv", [("a", "b", "0", "q"), ("a", "c", "1", "q")], ASKED)
    pairs = write_tsv(tmp_path / "c.tsv", [("a", "b", "c")], PAIRS)
    assert Matching().fitted(rows) == Matching(learning="pointwise", labels=["no", "yes"], fits="yes")
    assert Matching().fitted(asked) == Matching(learning="pointwise", labels=["0", "1"], fits="1", questions=True)
    assert Matching().fitted(pairs) == Matching(learning="pairwise", labels=["0", "1"], fits="1")
    assert Matching(labels=["yes", "no"]).fitted(rows).labels.names == ("yes", "no")
    assert [task.monitor for task in (Matching().fitted(rows), Matching().fitted(asked))] == ["accuracy", "mrr"]


def test_the_label_that_fits_may_be_named(tmp_path):
    rows = write_tsv(tmp_path / "a.tsv", [("a", "b", "entailment"), ("a", "c", "not_entailment")], JUDGED)
    task = Matching(fits="entailment").fitted(rows)
    assert (task.labels.names, task.fits) == (("not_entailment", "entailment"), "entailment")
    assert [task.targets(row) for row in task.rows(rows, labelled=True)] == [{"label": 1}, {"label": 0}]
    assert task.fitted(rows) == task
    assert Matching(labels=["not_entailment", "entailment"]).fitted(rows) == task
    pairs = write_tsv(tmp_path / "c.tsv", [("a", "b", "c")], PAIRS)
    assert Matching(fits="0").fitted(pairs).labels.names == ("1", "0")
    with pytest.raises(DataError, match="fits: there is no label 'yes'; 'entailment', 'not_entailment' are the two"):
        Matching(fits="yes").fitted(rows)


def test_predictions_say_the_label_where_labels_were_learned():
    judged = Matching(learning="pointwise", labels=["no", "yes"])
    assert list(judged.predictions([], [], [0.5, 0.5000004, 0.125])) == [
        {"score": 0.5, "label": "no"},
        {"score": 0.5, "label": "yes"},
        {"score": 0.125, "label": "no"},
    ]
    assert list(Matching(learning="pairwise").predictions([], [], [0.75])) == [{"score": 0.75}]


def test_a_file_of_both_kinds_is_learned_in_pairs_unless_told(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "c", "0"), ("a", "b", "c", "1")], (*PAIRS, "label"))
    assert Matching().fitted(path).learning == "pairwise"
    task = Matching(learning="pointwise").fitted(path)
    assert [dict(row.cells) for row in task.rows(path, labelled=True)] == [
        {"text_a": "a", "text_b": "b", "label": label} for label in "01"
    ]


@pytest.mark.parametrize(
    ("header", "rows", "options", "told"),
    [
        (("text_a", "label"), [("a", "1")], {}, r"a\.tsv:1: the header has no column 'text_b'"),
        (("text_a", "text_b"), [("a", "b")], {}, r"a\.tsv:1: the header has no column 'label'"),
        (JUDGED, [("a", "b", "1")], {}, r"a\.tsv: matching is learned from rows with two labels; all here have '1'$"),
        (
            JUDGED,
            [("a", "b", each) for each in "012"],
            {},
            r"a\.tsv:4: a third label, '2'; matching is learned from two: '0', '1'",
        ),
        (
            JUDGED,
            [("a", "b", "1")],
            {"learning": "pairwise"},
            r"a\.tsv: there is no column 'text_b_neg', which",
        ),
        (PAIRS, [("a", "b", "c")], {"learning": "pointwise"}, r"a\.tsv:1: the header has no column 'label'"),
    ],
)
def test_files_that_nothing_can_be_learned_from(tmp_path, header, rows, options, told):
    with pytest.raises(DataError, match=told):
        Matching(**options).fitted(write_tsv(tmp_path / "a.tsv", rows, header))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text_a": "a", "text_b": "b"}, "there is no 'text_b_neg' in this object"),
        ({"text_a": "a", "text_b": "b", "text_b_neg": 5}, "text_b_neg is 5, not a text"),
        ({"text_a": "a", "text_b": None, "text_b_neg": "c"}, "there is no column 'text_b'|text_b is None"),
    ],
)
def test_rows_unlike_the_first(tmp_path, row, told):
    path = tmp_path / "a.jsonl"
    first = {"text_a": "a", "text_b": "b", "text_b_neg": "c"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (first, row)))
    with pytest.raises(DataError, match=rf"a\.jsonl:2: ({told})"):
        list(Matching().rows(path, labelled=True))


@pytest.mark.parametrize("columns", [("qid",), ("text_b_neg",), ("qid", "text_b_neg")])
def test_what_begins_in_a_later_row_is_not_passed_over(tmp_path, columns):
    path = tmp_path / "a.jsonl"
    first = {"text_a": "a", "text_b": "b", "label": 1}
    path.write_text("".join(json.dumps(each) + "\n" for each in (first, first | dict.fromkeys(columns, "c"))))
    told = rf"a\.jsonl:2: ({'|'.join(columns)}) is here but not in the first row; give it in all rows or in none"
    with pytest.raises(DataError, match=told):
        list(Matching().rows(path, labelled=True))
    assert len(list(Matching().rows(path, labelled=False))) == 2


def test_one_number_is_one_label_however_json_writes_it(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text_a": "a", "text_b": "b", "label": {label}}}\n' for label in ("1", "1.0", "0e0")))
    task = get_task("matching", {"fits": 0}).fitted(path)
    assert task.labels.names == ("1", "0")
    assert [task.targets(row)["label"] for row in task.rows(path, labelled=True)] == [0, 0, 1]


def test_an_unknown_label(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "1"), ("a", "b", "yes")], JUDGED)
    with pytest.raises(DataError, match=r"a\.tsv:3: the label 'yes' is none of the two: '0', '1'; see the setting"):
        examples_of(Matching(learning="pairwise", labels=["0", "1"]), path, tokenizer)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\tb\t1\tq\na\tb\t0\t\n", r":3: qid is empty; give this row one, or take it out"),
        ("a\tb\t1\t \na\tb\t0\tq\n", r":2: qid is empty"),
    ],
)
def test_a_row_of_no_question_is_refused_wherever_questions_are(tmp_path, tokenizer, content, told):
    path = tmp_path / "a.tsv"
    path.write_text("text_a\ttext_b\tlabel\tqid\n" + content)
    known = Matching(learning="pointwise", labels=["0", "1"], questions=True)
    for use in (Matching().fitted, known.metric, lambda path: examples_of(known, path, tokenizer)):
        with pytest.raises(DataError, match=rf"a\.tsv{told}"):
            use(path)


def test_where_training_had_questions_others_need_them(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "1")], JUDGED)
    with pytest.raises(DataError, match=r"a\.tsv:1: the header has no column 'qid'"):
        Matching(questions=True).metric(path)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"labels": ["0", "1", "2"]}, "there are two labels, one for texts that fit"),
        ({"learning": "listwise"}, "learning must be one of pointwise, pairwise, got 'listwise'"),
        (
            {"fits": True},
            "fits must be a text or a whole number, got True; what YAML or JSON takes for something else, such",
        ),
        ({"fits": 1.0}, "fits must be a text.*, got 1.0"),
        ({"margin": 0}, "margin must be a number above 0 and up to 1, got 0.0"),
        ({"margin": "wide"}, "margin must be a number above 0.*, got 'wide'"),
    ],
)
def test_settings_that_do_not_do(setting, told):
    with pytest.raises(DataError, match=f"matching: {told}"):
        get_task("matching", setting)


# -- features and batches ----------------------------------------------------------------------------------------------


def test_a_batch_of_judged_rows(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "film", "yes"), ("a", "plot", "no")], JUDGED)
    task = Matching().fitted(path)
    batch = task.collate(examples_of(task, path, tokenizer)[:], pad_id=0)
    assert (batch["labels"].tolist(), batch["places"]) == ([1, 0], [0, 1])
    assert batch["input_ids"].tolist()[0] == [IDS[token] for token in ("[CLS]", "a", "[SEP]", "film", "[SEP]")]
    assert task.baseline([{"label": 1}, {"label": 0}, {"label": 0}]) == {"majority_accuracy": pytest.approx(2 / 3)}


def test_a_batch_of_pairs_is_one_batch_of_twice_as_many_rows(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "film", "the plot"), ("it", "is", "cold")], PAIRS)
    task = Matching().fitted(path)
    examples = examples_of(task, path, tokenizer)
    batch = task.collate([examples[1], examples[0]], pad_id=0)
    texts = [("it", "[SEP]", "is"), ("a", "[SEP]", "film"), ("it", "[SEP]", "cold"), ("a", "[SEP]", "the", "plot")]
    wanted = [[IDS[token] for token in ("[CLS]", *text, "[SEP]")] for text in texts]
    assert [row[:length] for row, length in zip(batch["input_ids"].tolist(), batch["lengths"], strict=True)] == wanted
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 0]] * 3 + [[0, 0, 0, 1, 1, 1]]
    assert batch["places"] == [1, 0]
    assert "labels" not in batch
    assert task.baseline(examples) == {}


def test_texts_that_are_cut_are_counted_on_both_sides(tmp_path, tokenizer):
    path, notes = (
        write_tsv(tmp_path / "a.tsv", [("a", "film film", "a " * 9), ("a", "a " * 9, "a " * 9)], PAIRS),
        Counter(),
    )
    task = Matching(max_length=6).fitted(path)
    task.features(list(task.rows(path, labelled=True)), tokenizer, True, notes)
    assert notes == {"texts longer than 6 tokens, cut": 3}


# -- networks ----------------------------------------------------------------------------------------------------------


def test_the_pointwise_score_is_the_probability_of_the_second_label(encoder_folder):
    network = PointwiseMatcher(Encoder.from_pretrained(encoder_folder), 2)
    found = network.decode(paddle.to_tensor([[0.0, np.log(3.0)], [20.0, 0.0], [0.0, 25.0], [0.0, 30.0]]), {})
    assert found[:3] == pytest.approx([0.75, 1 / (1 + np.exp(20)), 1 / (1 + np.exp(-25))])
    assert found[2] < found[3] < 1.0  # float32 could not tell them apart


@pytest.mark.parametrize("margin", [0.5, 0.2])
def test_the_pairwise_loss_by_its_definition(encoder_folder, margin):
    network = PairwiseMatcher(Encoder.from_pretrained(encoder_folder), margin)
    values = np.array([4.0, 0.0, -1.0, -4.0, 0.5, 1.0])  # three better texts, three worse ones
    logits = paddle.to_tensor(values[:, None], dtype="float32", stop_gradient=False)
    loss = network.loss(logits, {})
    loss.backward()
    scores = 1 / (1 + np.exp(-values))
    each = np.maximum(0, margin - scores[:3] + scores[3:])
    assert each[0] == 0
    assert loss.shape == []
    assert float(loss) == pytest.approx(each.mean(), rel=1e-5)
    slope = scores * (1 - scores) * np.array([0, -1, -1, 0, 1, 1]) / 3
    np.testing.assert_allclose(logits.grad.numpy()[:, 0], slope, atol=1e-6)
    assert network.classifier.weight.shape == [HIDDEN, 1]


def test_pairwise_scores_of_pairs_and_of_single_rows(encoder_folder):
    network = PairwiseMatcher(Encoder.from_pretrained(encoder_folder))
    logits = paddle.to_tensor([[0.0], [np.log(3.0)], [-np.log(3.0)], [20.0]])
    one, other = network.decode(logits, {"places": [0, 1]})
    assert one.tolist() == pytest.approx([0.5, 0.25], abs=1e-6)
    assert other.tolist() == pytest.approx([0.75, 1.0], abs=1e-6)
    assert network.decode(logits, {"places": [0, 1, 2, 3]}) == pytest.approx([0.5, 0.75, 0.25, 1.0], abs=1e-6)


def test_a_batch_of_pairs_costs_what_its_rows_cost_alone(tmp_path, encoder_folder, tokenizer):
    path = write_tsv(
        tmp_path / "a.tsv", [("was it", f"{good} film", bad) for good, bad in zip(GOOD, BAD, strict=True)], PAIRS
    )
    task = Matching(max_length=12).fitted(path)
    paddle.seed(1)
    network = task.network(Encoder.from_pretrained(encoder_folder))
    network.eval()
    examples = examples_of(task, path, tokenizer)[:]
    together = task.collate(examples, 0)
    alone = [task.collate([example], 0) for example in examples]
    losses = [float(network.loss(network(batch), batch)) for batch in alone]
    assert float(network.loss(network(together), together)) == pytest.approx(np.mean(losses), abs=1e-6)
    assert 0.3 < np.mean(losses) < 0.7


# -- real files --------------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("name", "count"), [("glue/mrpc/train.tsv", 3668), ("glue/mrpc/dev.tsv", 408), ("lcqmc/dev.tsv", 4397)]
)
def test_real_files_are_read_whole(name, count):
    task = Matching().fitted(DATA / name)
    assert task == Matching(learning="pointwise", labels=["0", "1"], fits="1")
    assert len([task.targets(row) for row in task.rows(DATA / name, labelled=True)]) == count
