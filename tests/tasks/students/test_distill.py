"""Students of a trained model: they learn, resume, predict and are measured as every run; what is refused."""

import json
import shutil

import numpy as np
import pytest

from onion import GradientMachine, Observer, OnionError, Saver
from onion.cli import main
from onion.errors import CheckpointError, DataError
from onion.tasks.finetune.fine_tune import train as fine_tuned
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.run_folder import read_json
from onion.tasks.publishing.push import write
from onion.tasks.students.distill import distill, train
from onion.tasks.students.kept_logits import ABOUT_FILE, LOGITS_FILE
from onion.tasks.students.settings import DistillSettings
from onion.tasks.students.teacher_logits import TeacherLogits
from onion.testing import assert_resumes_exactly
from tests.tasks.helpers import films, of_dev, snapshot, write_tsv

SHORT = {"batch_size": 32, "learning_rate": 0.02, "passes": 4, "test_every": "pass"}
JUDGED = ("text_a", "text_b", "label")


@pytest.fixture(scope="module")
def teacher(trained):
    return trained[0]


@pytest.fixture
def given(teacher, films_folder):
    """The settings of a short distillation; keyword arguments replace some."""

    def make(**changes):
        files = {"train": str(films_folder / "train.tsv"), "dev": str(films_folder / "dev.tsv")}
        return {"teacher": str(teacher), "student": "bow", **files, **SHORT, **changes}

    return make


@pytest.fixture
def more(tmp_path):
    """Texts without labels."""
    return write_tsv(tmp_path / "more.tsv", [(text,) for text, _ in films(40, seed=5)], ("text_a",))


TINY = {"layers": 2, "learning_rate": 3e-3, "batch_size": 16, "passes": 6}


@pytest.mark.parametrize(("student", "changes"), [("bow", {}), ("cnn", {}), ("lstm", {}), ("tiny", TINY)])
def test_a_student_learns_and_is_read_like_every_run(student, changes, given, films_folder, tmp_path):
    settings = DistillSettings.of(given(student=student, **changes))
    report = train(settings, tmp_path / "out", quiet=True).report
    assert report["dev.accuracy"] >= 0.9
    assert evaluate(tmp_path / "out", films_folder / "dev.tsv") == {**of_dev(report), "rows": 70}
    (predicted,) = predict_texts(tmp_path / "out", ["a lovely warm film"])
    assert predicted["label"] == "good"
    again = train(settings, tmp_path / "out", quiet=True).report
    assert (again["dev.accuracy"], again["step"]) == (report["dev.accuracy"], report["step"])


def test_the_report_compares_both(given, teacher, films_folder, tmp_path):
    report = train(DistillSettings.of(given(passes=1)), tmp_path / "out", quiet=True).report
    figures = evaluate(teacher, films_folder / "dev.tsv")
    assert {name: report[f"teacher.{name}"] for name in figures if name != "rows"} == {
        name: value for name, value in figures.items() if name != "rows"
    }
    assert report["student"] == "bow"
    words = read_json(tmp_path / "out", "config.json")["vocab_size"]
    assert report["student.parameters"] == words * 128 + 128 * 128 + 128 + 128 * 2 + 2
    assert report["teacher.seconds_per_1000"] > 0 < report["times_faster"]


@pytest.mark.parametrize(
    "changes",
    [
        {"student": "bow", "ema_decay": 0.9},
        {"student": "lstm", "copies": 1, "teacher_weight": 1.0, "gradient_accumulation_steps": 2},
        {"student": "tiny", "layers": 1, "gradient_accumulation_steps": 2},
    ],
)
def test_a_student_resumes_exactly(changes, given, more, tmp_path):
    kept = {} if changes["student"] == "tiny" else {"logits": str(tmp_path / "logits")}
    settings = given(unlabelled=str(more), batch_size=20, save_every=2, **kept, **changes)

    def make(folder):
        return distill(output=folder / "run", **settings)

    assert_resumes_exactly(make, tmp_path / "runs", steps=5, cuts=[3])


def test_rows_without_labels_are_learned_from_the_teacher_only(given, films_folder, more, tmp_path):
    logits = tmp_path / "logits"
    runner = distill(output=tmp_path / "out", **given(unlabelled=str(more), copies=1, logits=str(logits), passes=1))
    seen = []

    def look(state):
        seen.append(state.batch)

    runner.insert_after(TeacherLogits, Observer(on_batch_begin=look)).run(passes=1)
    places = sorted(place for batch in seen for place in batch["places"])
    assert places == list(range(2 * (128 + 40)))
    kept = np.load(logits / LOGITS_FILE)
    for batch in seen:
        assert batch["known"] == [row for row, place in enumerate(batch["places"]) if place < 128]
        assert np.array_equal(batch["teacher"], kept[batch["places"]])


def test_labels_alone_need_no_logits(given, tmp_path):
    runner = distill(output=tmp_path / "out", **given(teacher_weight=0, passes=1))
    assert not any(isinstance(item, TeacherLogits) for item in runner.items)
    runner.run(passes=1)
    assert not (tmp_path / "out" / "teacher").exists()


def test_a_matching_of_judged_rows(learn, tmp_path, given):
    rows = [(f"the {word} film", f"a {word} story" if fits else "a plot", str(int(fits))) for fits in (0, 1)
            for word in ("lovely", "great", "warm", "awful", "poor", "cold") for _ in range(8)]  # fmt: skip
    judged = write_tsv(tmp_path / "train.tsv", rows, JUDGED)
    teacher, _ = learn("matching", judged, judged)
    files = {"train": str(judged), "dev": str(judged), "teacher": str(teacher)}
    settings = DistillSettings.of(given(student="cnn", copies=1, passes=12, **files))
    report = train(settings, tmp_path / "out", quiet=True).report
    assert report["dev.accuracy"] >= 0.9
    assert read_json(tmp_path / "out", "config.json")["pairs"] is True
    assert evaluate(tmp_path / "out", judged)["accuracy"] == report["dev.accuracy"]


def test_chinese_texts_become_words(learn, given, tmp_path):
    pytest.importorskip("rjieba")
    rows = [("酒店的服务很好", "good"), ("房间很差", "bad"), ("早餐很贵，wifi也很差", "bad"), ("位置很好", "good")] * 4
    reviews = str(write_tsv(tmp_path / "reviews.tsv", rows))
    teacher, _ = learn("classification", reviews, reviews, passes=1)
    files = {"teacher": str(teacher), "train": reviews, "dev": reviews}
    settings = DistillSettings.of(given(**files, student="cnn", copies=2))
    assert train(settings, tmp_path / "out", quiet=True).report["dev.accuracy"] > 0
    words = (tmp_path / "out" / "words.txt").read_text(encoding="utf-8").split()[5:]
    assert words[:3] == ["很", "好", "差"]
    assert {"酒店", "服务", "房间", "早餐", "wifi"} <= set(words)
    assert [each["text_a"] for each in predict_texts(tmp_path / "out", ["酒店很好"])] == ["酒店很好"]


def test_the_command(given, films_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [word for name, value in given(passes=1).items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["distill", *words, "--quiet", "--output", "out"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["evaluate", "--run", "out", "--input", str(films_folder / "dev.tsv")]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == report["dev.accuracy"]
    assert main(["distill", *words, "--quiet", "--output", "out", "--seed", "9"]) == 2
    assert "out holds another run (seed 1 there, 9 here)" in capsys.readouterr().err


@pytest.mark.parametrize("student", ["bow", "lstm"])
def test_a_student_is_published_like_every_run(student, given, tmp_path):
    distill(output=tmp_path / "out", **given(student=student)).run(steps=3)
    write(tmp_path / "out", tmp_path / "model", "ada/student")
    texts = ["a lovely film", "a poor plot"]
    published, own = ([*predict_texts(tmp_path / name, texts)] for name in ("model", "out"))
    assert published == own
    told = f"the student `{student}` ({student}) of a trained model, trained by that model (`onion distill`) with onion"
    assert told in (tmp_path / "model" / "README.md").read_text()


def test_recipes_and_what_is_given_over_them(given):
    settings = DistillSettings.of({name: given()[name] for name in ("teacher", "student", "train", "dev")})
    assert (settings.passes, settings.batch_size, settings.weight_decay, settings.copies) == (10, 100, 0.0, 0)
    assert DistillSettings.of(given(passes=2)).passes == 2
    assert DistillSettings.of(settings.as_file()) == settings


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"student": "gru"}, "student must be one of bow, cnn, lstm, tiny, got 'gru'"),
        ({"teacher_weight": 0, "copies": 2}, "teacher_weight is 0, but rows without labels and altered copies"),
        ({"encoder": "minilm"}, "unknown setting 'encoder'; a distillation has teacher"),
        ({"temperature": 0}, "temperature must be a number > 0"),
        ({"student": "tiny", "layers": 3}, "--layers 3: the teacher has 2; choose at most as many"),
        ({"student": "tiny", "vocabulary": 9}, "vocabulary has no effect: tiny has its teacher's words"),
        ({"student": "tiny", "logits": "kept"}, "logits has no effect: tiny has its teacher's words, and asks it anew"),
        ({"layers": 9}, "layers has no effect: bow has no layers of its teacher; leave it out"),
        ({"teacher_weight": 0, "temperature": 2}, "temperature has no effect: teacher_weight is 0"),
        ({"teacher": "nowhere"}, "nowhere holds no run of onion"),
        ({"words": "chinese", "train": "{empty}"}, "there is nothing|no row|is empty"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(changes, told, given, tmp_path):
    empty = write_tsv(tmp_path / "empty.tsv", [])
    before = snapshot(tmp_path)
    changes = {name: str(empty) if value == "{empty}" else value for name, value in changes.items()}
    with pytest.raises(OnionError, match=told):
        distill(output=tmp_path / "out", **given(**changes))
    assert snapshot(tmp_path) == before


def test_labels_that_the_teacher_does_not_know(given, tmp_path):
    rows = write_tsv(tmp_path / "odd.tsv", [("a film", "good"), ("a plot", "odd")])
    with pytest.raises(DataError, match=r"odd.tsv:3: .*'odd'"):
        distill(output=tmp_path / "out", **given(train=str(rows)))


def test_texts_without_a_word(given, tmp_path):
    rows = write_tsv(tmp_path / "blank.tsv", [("　", "good"), ("　", "bad")])
    with pytest.raises(DataError, match="the vocabulary is empty"):
        distill(output=tmp_path / "out", **given(train=str(rows)))


def test_teachers_of_other_tasks(learn, given, tmp_path):
    numbers = write_tsv(tmp_path / "n.tsv", [(text, str(len(text))) for text, _ in films(20, seed=1)])
    other, _ = learn("regression", numbers, numbers, passes=1)
    with pytest.raises(DataError, match="is of the task regression; students learn classification and matching"):
        distill(output=tmp_path / "out", **given(teacher=str(other)))
    pairs = write_tsv(
        tmp_path / "p.tsv", [("a film", "a lovely film", "a plot")] * 20, ("text_a", "text_b", "text_b_neg")
    )
    other, _ = learn("matching", pairs, pairs, passes=1)
    with pytest.raises(DataError, match="was trained pairwise; give a run that was trained on labels"):
        distill(output=tmp_path / "out", **given(teacher=str(other)))


def test_logits_of_other_texts_are_refused(given, more, tmp_path):
    logits = str(tmp_path / "logits")
    distill(output=tmp_path / "one", **given(logits=logits)).run(steps=1)
    with pytest.raises(CheckpointError, match="holds the logits of another teacher or of other texts"):
        distill(output=tmp_path / "other", **given(logits=logits, unlabelled=str(more)))
    assert not (tmp_path / "other").exists()


def test_another_teacher_or_other_rows_need_force_and_the_same_ones_may_have_moved(
    given, make_settings, films_folder, tmp_path
):
    fine_tuned(make_settings(passes=1), tmp_path / "teacher")
    settings = given(teacher=str(tmp_path / "teacher"), passes=1)
    train(DistillSettings.of(settings), tmp_path / "out", quiet=True)
    (tmp_path / "teacher").rename(tmp_path / "moved")
    moved = {**settings, "teacher": str(tmp_path / "moved")}
    assert train(DistillSettings.of(moved), tmp_path / "out", quiet=True).report["step"] == 4
    fine_tuned(make_settings(passes=1, seed=2), tmp_path / "teacher")
    with pytest.raises(CheckpointError, match=r"out holds another run .*the weights of the teacher are different"):
        train(DistillSettings.of(settings), tmp_path / "out", quiet=True)
    fewer = write_tsv(tmp_path / "fewer.tsv", films(64, seed=1))
    with pytest.raises(CheckpointError, match="out holds another run"):
        train(DistillSettings.of({**moved, "train": str(fewer)}), tmp_path / "out", quiet=True)
    forced = DistillSettings.of({**moved, "train": str(fewer), "passes": 4})
    assert train(forced, tmp_path / "out", force_resume=True, quiet=True).report["step"] > 4
    assert np.load(tmp_path / "out" / "teacher" / LOGITS_FILE).shape == (64, 2)


def test_a_run_of_an_earlier_version_has_no_digest_of_its_teacher_and_is_resumed(given, tmp_path):
    settings = DistillSettings.of(given(passes=1))
    train(settings, tmp_path / "out", quiet=True)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    del record["teacher_sha256"]
    (tmp_path / "out" / "run.json").write_text(json.dumps(record))
    assert train(settings, tmp_path / "out", quiet=True).report["step"] == 4


def test_a_tiny_student_does_not_resume_with_another_teacher(given, make_settings, tmp_path):
    fine_tuned(make_settings(passes=1), tmp_path / "teacher")
    settings = DistillSettings.of(given(student="tiny", teacher=str(tmp_path / "teacher"), **{**TINY, "passes": 1}))
    train(settings, tmp_path / "out", quiet=True)
    shutil.rmtree(tmp_path / "teacher")
    fine_tuned(make_settings(passes=1, seed=2), tmp_path / "teacher")
    with pytest.raises(CheckpointError, match="the weights of the teacher are different"):
        train(settings, tmp_path / "out", quiet=True)


@pytest.mark.parametrize("content", ["{", "[]", '{"digest": "x"}'])
def test_a_damaged_record_of_logits(content, given, tmp_path):
    logits = tmp_path / "logits"
    logits.mkdir()
    (logits / ABOUT_FILE).write_text(content)
    with pytest.raises(CheckpointError, match=r"holds damaged logits of a teacher; delete the folder"):
        distill(output=tmp_path / "out", **given(logits=str(logits)))


def test_the_runner_is_that_of_a_fine_tuning(given, tmp_path):
    runner = distill(output=tmp_path / "out", **given())
    assert runner[Saver].folder == tmp_path / "out"
    assert runner[GradientMachine].network.encoder.config.model_type == "bow"
