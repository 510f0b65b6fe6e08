"""benchmarks/pretraining/study: its texts, its pieces and what they need, intervals, resumption, the page."""

import dataclasses
import json
import statistics
from argparse import Namespace

import pytest

from benchmarks.frame.processes import FailedError
from benchmarks.pretraining.study import arms, pieces, texts
from benchmarks.pretraining.study.__main__ import PretrainingStudy
from benchmarks.pretraining.study.arms import (
    ALONE,
    CHARACTERS,
    CLASSES_EN,
    CLASSES_ZH,
    CONTINUAL,
    DATA_SETS,
    LEVELS,
    NONE,
    SHARES,
    WORDS,
)
from benchmarks.pretraining.study.findings import Findings
from benchmarks.pretraining.study.intervals import Interval, paired
from benchmarks.pretraining.study.page import baseline, page
from benchmarks.pretraining.study.pieces import (
    CorpusPiece,
    FineTuningPiece,
    MasksPiece,
    PretrainingPiece,
    ShippedPiece,
)

CHN = DATA_SETS[0]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study whose data are there, and of which nothing has been run."""
    monkeypatch.setattr(ShippedPiece, "room", tmp_path / "embedded" / "wiki-zh")
    files = {name for some in texts.FILES.values() for name in some} | {"vocab/ernie-1.0-zh/vocab.txt"}
    files |= {name for arm in arms.ARMS for name in arm.files.values()}
    for name in files | {name for data in DATA_SETS for name in data.files}:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    given = {"data": tmp_path / "data", "out": tmp_path / "out", "kept": tmp_path / "kept", "names": []}
    return PretrainingStudy(Namespace(**given, scale=1.0, threads=1))


def keep(study, arm, figure, data_sets=DATA_SETS):
    """Keep a figure for every fine-tuning of an arm; seeds are a point apart."""
    for data in data_sets:
        for seed in arms.SEEDS:
            kept(study, FineTuningPiece(arm, data, seed), figure=figure + seed / 100, seconds=1.0, steps=3)


def kept(study, piece, **found):
    study.keep(piece, {**found, "machine": "m", "date": "d", "versions": {}})


# The texts


def test_documents_of_a_text_a_table_a_tagged_table_and_questions(tmp_path):
    (tmp_path / "a.txt").write_text("Title\nOne.\n\n\nOther\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("text_a\ttext_b\tlabel\n甲\t 乙 丙\t0\n", encoding="utf-8")
    (tmp_path / "tags.tsv").write_text("text_a\tlabel\n甲\x02乙\tB\x02I\n", encoding="utf-8")
    asked = {"data": [{"paragraphs": [{"context": "甲\n乙", "qas": [{"question": "谁？"}, {"question": "何时？"}]}]}]}
    (tmp_path / "q.json").write_text(json.dumps(asked), encoding="utf-8")
    found = {name: list(texts.documents(tmp_path / name)) for name in ("a.txt", "pairs.tsv", "tags.tsv", "q.json")}
    assert found == {
        "a.txt": [["Title", "One."], ["Other"]],
        "pairs.tsv": [["甲", "乙 丙"]],
        "tags.tsv": [["甲乙"]],
        "q.json": [["甲 乙", "谁？", "何时？"]],
    }


def test_a_text_that_comes_again_is_left_out(tmp_path):
    assert list(texts.unrepeated([["a", "b", "a"], ["b"], ["", "c", "a"]])) == [["a", "b"], ["c"]]
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("same\n\n" + name, encoding="utf-8")
    found = texts.write_text([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "all.txt")
    assert found.read_text(encoding="utf-8") == "same\n\na.txt\n\nb.txt\n"


def test_a_trial_has_a_share_of_documents_and_rows(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(map(str, range(500))), encoding="utf-8")
    some = texts.write_text([tmp_path / "a.txt"], tmp_path / "some.txt", 0.1).read_text(encoding="utf-8")
    assert some.split("\n\n")[-1] == "49\n"
    (tmp_path / "rows.tsv").write_text("label\ttext_a\n" + "\n".join(f"{i}\tx" for i in range(1000)), encoding="utf-8")
    head, *rows = texts.head_of(tmp_path / "rows.tsv", tmp_path / "few.tsv", 0.2).read_text().splitlines()
    assert (head, len(rows), rows[1]) == ("label\ttext_a", 200, "5\tx")


def test_no_dev_or_test_split_is_learned_from():
    learned = [name for arm in arms.ARMS if arm.corpus is not None for name in texts.FILES[arm.corpus]]
    assert all("train" in name for name in learned)
    assert not {name for data in DATA_SETS for name in data.files[1:]} & set(learned)


# Intervals


def test_an_interval_is_that_of_student():
    values = [81.0, 83.0, 85.0]
    found = Interval.of(values)
    assert (found.mean, found.count) == (83.0, 3)
    assert found.half == pytest.approx(4.303 * statistics.stdev(values) / 3**0.5)
    assert [found.text(), *(Interval.of([mean]).text("+") for mean in (2.0, -0.01))] == ["83.0 ± 5.0", "+2.0", "+0.0"]


def test_differences_are_of_the_same_seed():
    found = paired({1: 80.0, 2: 90.0, 3: 70.0}, {1: 79.0, 2: 88.0, 4: 10.0})
    assert (found.mean, found.count, found.tells) == (1.5, 2, False)
    assert paired({1: 80.0, 2: 90.0, 3: 70.0}, {1: 79.0, 2: 88.9, 3: 69.1}).tells
    assert not paired({1: 80.0}, {1: 70.0}).tells  # one seed tells nothing
    assert paired({1: 1.0}, {2: 1.0}) is None


# The pieces


def test_a_piece_comes_behind_those_that_it_needs_and_only_once(study):
    found = list(study.runs())
    assert len(set(found)) == len(found)
    for number, piece in enumerate(found):
        assert all(need in found[:number] for need in piece.needs)
    assert sum(isinstance(piece, CorpusPiece) for piece in found) == 5
    assert sum(isinstance(piece, MasksPiece) for piece in found) == 3 * 3 + 6
    fine_tunings = [piece for piece in found if isinstance(piece, FineTuningPiece)]
    assert len(fine_tunings) == sum(len(arm.data) for arm in arms.ARMS) * len(arms.SEEDS) == 69


def test_the_model_that_comes_with_onion_is_fine_tuned_as_it_is(study):
    assert FineTuningPiece(ALONE, CHN, 1).needs == (ShippedPiece(),)
    assert ShippedPiece() in PretrainingPiece(CLASSES_ZH).needs
    assert study.place(FineTuningPiece(ALONE, CHN, 1)).needs == [ShippedPiece.room]
    place = study.place(ShippedPiece())
    assert (place.own, place.log.parent) == (ShippedPiece.room, study.work / "runs")
    study.scale = 0.5  # a trial does not touch it
    assert study.place(ShippedPiece()).own.parent == study.work / "runs"


def test_chosen_arms_bring_what_they_need(study):
    everything = study.page()
    study.given.names = ["words"]
    assert study.page() == everything
    stems = [str(piece) for piece in study.runs()]
    assert stems[:3] == ["corpus.everything", "corpus.held-out", "pretraining.words"]
    assert {stem.split(".")[1] for stem in stems[3:]} == {"words"}


def test_the_longer_arm_is_that_with_the_best_mean(study):
    keep(study, LEVELS[0], 0.5)
    keep(study, LEVELS[1], 0.7)
    assert study.best() is None
    keep(study, LEVELS[2], 0.6)
    assert study.best() == LEVELS[1]
    study.path(FineTuningPiece(LEVELS[2], CHN, 1)).unlink()
    assert study.best() == LEVELS[1]  # of the two other seeds
    study.path(FineTuningPiece(LEVELS[0], CHN, 2)).unlink()
    assert study.best() is None  # one seed of all three is not enough
    keep(study, LEVELS[0], 0.5)
    last = study.arms()[-1]
    assert (last.name, last.options, last.corpus) == (arms.LONGER, LEVELS[1].options, LEVELS[1].corpus)
    steps = [PretrainingPiece(arm).settings(1.0)["max_steps"] for arm in (last, LEVELS[1])]
    assert steps[0] == pytest.approx(3 * steps[1], abs=2)


def test_a_result_counts_until_what_it_stands_for_changes(study):
    keep(study, WORDS, 0.5)
    piece = FineTuningPiece(WORDS, CHN, 1)
    assert study.read(piece)["figure"] == 0.51
    other = dataclasses.replace(WORDS, options={**WORDS.options, "masking.share": 0.2})
    assert study.read(FineTuningPiece(other, CHN, 1)) is None
    for name in (CHN.files[0], texts.WIKI):  # its own, and that of the corpus of its encoder
        path = study.data / name
        path.write_text("other", encoding="utf-8")
        pieces.sum_of.cache_clear()
        assert study.read(piece) is None, name
        path.write_text(name, encoding="utf-8")
        pieces.sum_of.cache_clear()
        assert study.read(piece) is not None
    study.scale = 0.5
    assert study.read(piece) is None


def test_a_piece_whose_folder_is_gone_is_run_again_if_it_is_needed(study):
    study.given.names = ["words"]
    for piece in study.runs():
        study.keep(piece, {"figure": 0.5})
    assert study.missing(list(study.runs())) == []
    study.path(FineTuningPiece(WORDS, CHN, 2)).unlink()
    found = list(map(str, study.missing(list(study.runs()))))
    assert found == ["corpus.everything", "corpus.held-out", "pretraining.words", "chnsenticorp.words.2"]
    place = study.place(PretrainingPiece(WORDS))
    (place.own / "encoder").mkdir(parents=True)
    assert list(map(str, study.missing(list(study.runs())))) == ["chnsenticorp.words.2"]
    place.log.touch()  # an interrupted pretraining has an encoder too: that of its last checkpoint
    assert "pretraining.words" in map(str, study.missing(list(study.runs())))


def test_settings_of_pretraining_are_settings_of_the_command():
    from onion.tasks.pretraining.pretrain import made

    for arm in (arm for arm in arms.ARMS if arm != NONE):
        settings = PretrainingPiece(arm).settings(1.0)
        if "config" in settings:
            assert settings["config"]["hidden_dropout_prob"] == arm.dropout
            settings["config"] = "f"
        asked = made({**settings, **arm.files, "corpus": "c"})
        assert asked.strategy().total == settings["max_steps"] == round(arm.tokens / asked.tokens_per_batch)
        assert asked.schedule == "linear"


STAND_IN = """\
import json, os, pathlib, sys
given = json.load(open(sys.argv[sys.argv.index("--settings") + 1]))
own = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
(own / "encoder").mkdir(parents=True, exist_ok=True)
begun = own / "begun"
if not begun.exists():
    begun.write_text("once")
    sys.exit("interrupted")
row = {"step": 5, "stage": 1, "loss": 3.0, "a.word_loss": 2.0}
(own / "metrics.jsonl").write_text(json.dumps({"step": 4, "loss": 3.5}) + chr(10) + json.dumps(row))
print(json.dumps({"step": given["max_steps"], "corpus": given["corpus"], "seconds": 1.5, "a.word_loss": 2.0,
    "threads": int(os.environ["OMP_NUM_THREADS"])}))
"""


def test_an_interrupted_pretraining_goes_on_in_its_folder(study, tmp_path, monkeypatch):
    (tmp_path / "onion_stand_in.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = pieces.Place.run
    monkeypatch.setattr(
        pieces.Place, "run", lambda place, title, _, *words: run(place, title, "onion_stand_in", *words)
    )
    piece = PretrainingPiece(CHARACTERS)
    with pytest.raises(FailedError, match=r"pretraining.characters: ended with status 1(.|\n)*interrupted"):
        study.executed(piece)
    assert study.read(piece) is None
    found = study.executed(piece)
    assert found["report"] == {
        "step": 13672, "seconds": 1.5, "a.word_loss": 2.0, "threads": 1, "tokens": 13672 * 1024,
    }  # fmt: skip
    assert found["tests"] == [{"step": 5, "stage": 1, "a.word_loss": 2.0}]
    assert study.read(piece)["report"] == found["report"]


# The page


def test_a_page_of_nothing_says_what_was_expected_and_that_it_is_missing(study):
    found = study.page()
    assert "Written down before the first run" in found
    assert "| random weights | not run yet | not run yet | not run yet | not run yet |" in found
    assert "trial" not in found
    assert "A trial of the frame" in page(Findings([NONE], lambda piece: None), 0.001)


def test_figures_stand_with_intervals_and_differences(study):
    keep(study, NONE, 0.5)
    keep(study, CHARACTERS, 0.6)
    keep(study, WORDS, 0.65, DATA_SETS[:1])
    lines = [line[2:-2].split(" | ") for line in study.page().splitlines() if line.startswith("|")]
    first = {title: next(line for line in lines if line[0] == title)[1] for title in (NONE.title, CHARACTERS.title)}
    assert first == {NONE.title: "52.0 ± 2.5", CHARACTERS.title: "62.0 ± 2.5 (+10.0 ± 0.0)"}
    pair = next(line for line in lines if line[0].startswith("words masked, against"))
    assert pair[1:] == ["**+5.0 ± 0.0**", "not run yet", "not run yet", "not run yet"]


def test_the_two_by_two_table_and_the_forgetting_matrix(study):
    kept(study, MasksPiece(WORDS, "characters"), report={"word_loss": 4.25, "word_accuracy": 0.312})
    report = {"step": 9, "tokens": 99, "seconds": 7.0, "sentence-distance.accuracy.commonest": 0.34}
    report |= {"sentence-distance.accuracy.shared_bigrams": 0.55, "knowledge-masking.word_loss": 5.5}
    tests = [
        {"knowledge-masking.word_loss": 6.0},
        {"knowledge-masking.word_loss": 5.5, "sentence-distance.accuracy": 0.6},
    ]
    kept(study, PretrainingPiece(CONTINUAL), report=report, tests=tests)
    kept(study, MasksPiece(CONTINUAL, "words"), report={"word_loss": 5.25, "word_accuracy": 0.2})
    found = study.page()
    assert "| words masked | 4.250, 31.2 % | not run yet | not run yet |" in found
    assert "| knowledge-masking | 6.000 | 5.500 |  |" in found
    assert "| sentence-distance |  | 60.0 | (55.0) |" in found
    assert "| four tasks on Wikipedia's text, continually | 9 | 99 | 7 | 5.250 |" in found
    assert baseline(report, "knowledge-masking") == ""


def test_recipes_and_tasks_with_classes_stand_with_their_figures(study):
    masked = {"knowledge-masking.word_loss": 6.319, "knowledge-masking.word_accuracy": 0.1256}
    kept(study, PretrainingPiece(arms.EARLIER[1]), report={"step": 9, "tokens": 99, "seconds": 7.0, **masked}, tests=[])
    kept(study, MasksPiece(SHARES[1], "words"), report={"word_loss": 6.109, "word_accuracy": 0.133})
    classes = {"capitalisation.accuracy": 0.97, "capitalisation.accuracy.commonest": 0.86}
    classes |= {"token-document.accuracy": 0.71, "token-document.accuracy.frequency": 0.7}
    kept(study, PretrainingPiece(CLASSES_EN), report={"step": 9, "tokens": 9, "seconds": 7.0, **classes}, tests=[])
    found = study.page()
    assert "| 1,024 | 0.001 | 0 | 0, 1e-08 | 0.15 | 6.319, 12.6 % |" in found
    assert "| 1,024 | 0.001 | 0.1 | frequencies, 1e-06 | 0.15 | not run yet |" in found
    assert "| 1,024 | 0.001 | 0.1 | frequencies, 1e-06 | 0.4 | 6.109, 13.3 % |" in found
    assert "| capitalisation | from minilm, tasks of words | 97.0 | 86.0 |" in found
    assert "| sentence-distance | from wiki-zh, tasks of texts | not run yet | not run yet |" in found


def test_the_card_of_the_model_has_licence_source_and_figures(study, tmp_path):
    told = ShippedPiece.room
    told.mkdir(parents=True)
    study.write_page(tmp_path / "page.md")
    assert not any(told.iterdir())
    kept(study, CorpusPiece(arms.WIKIPEDIA), report={"documents": 3071})
    kept(study, PretrainingPiece(ALONE), report={"step": 9, "tokens": 99, "seconds": 7.0}, tests=[])
    kept(study, MasksPiece(ALONE, "words"), report={"word_loss": 5.0, "word_accuracy": 0.2})
    report = {"outputs": 0.004, "whole_loss": 5.0, "half_loss": 5.0001, "sha256": "0"}
    kept(study, ShippedPiece(), report=report, likeness={"21-100": 0.25})
    keep(study, ALONE, 0.6)
    keep(study, NONE, 0.5, DATA_SETS[:1])
    study.write_page(tmp_path / "page.md")
    card, page_ = (path.read_text("utf-8") for path in (told / "README.md", tmp_path / "page.md"))
    assert "license: cc-by-sa-4.0" in card
    assert "3,071 articles" in card
    assert "16 bits instead of 32, outputs differ by at most 0.004" in card
    assert "| times | 21-100 |" in page_
    assert "| mean cosine | 0.25 |" in page_
    for each in (card, page_):
        assert "| ChnSentiCorp, accuracy | 62.0 ± 2.5 | 52.0 ± 2.5 |" in each
        assert "| LCQMC, accuracy | 62.0 ± 2.5 | not run yet |" in each
