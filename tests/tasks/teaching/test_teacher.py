"""What can teach: a run of one task that Paddle computes; other folders are refused before anything is written."""

import pytest

from onion.errors import CheckpointError, DataError
from onion.host import launch
from onion.tasks.export.export import export
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.students.distill import train
from onion.tasks.students.settings import DistillSettings
from onion.tasks.teaching.teacher import encoder_of_layers, load_teacher


def test_a_run_is_a_teacher_and_its_encoder_has_layers(trained):
    teacher, folder = load_teacher(str(trained[0]), "--teacher")
    assert folder == trained[0]
    assert encoder_of_layers(teacher, folder, "--teacher") is teacher.network.encoder


def test_a_model_that_was_exported_for_another_engine_is_refused(trained, tmp_path):
    pytest.importorskip("onnxruntime")
    export(trained[0], tmp_path / "model")
    with pytest.raises(CheckpointError, match="model was made by onion export and has no checkpoint; give the run it"):
        load_teacher(str(tmp_path / "model"), "--teacher")
    export(trained[0], tmp_path / "for transformers", "huggingface")
    teacher, _ = load_teacher(str(tmp_path / "for transformers"), "--teacher")
    assert teacher.task.name == "classification"


def test_several_processes_are_refused(trained, monkeypatch):
    monkeypatch.setattr(launch, "world_size", lambda: 2)
    with pytest.raises(DataError, match="runs in one process; start it without a launcher"):
        load_teacher(str(trained[0]), "--teacher")


def test_a_student_has_no_layers_to_take(trained, films_folder, tmp_path):
    files = {"train": str(films_folder / "train.tsv"), "dev": str(films_folder / "dev.tsv")}
    student = {"teacher": str(trained[0]), "student": "bow", **files, "passes": 1}
    train(DistillSettings.of(student), tmp_path / "bow", quiet=True)
    with pytest.raises(DataError, match=r"--run: .*bow has a BagOfWords, of which no layers can be taken; give a run"):
        encoder_of_layers(Predictor.load(tmp_path / "bow"), tmp_path / "bow", "--run")
    tiny = {**student, "teacher": str(tmp_path / "bow"), "student": "tiny"}
    with pytest.raises(DataError, match="has a BagOfWords"):
        train(DistillSettings.of(tiny), tmp_path / "tiny", quiet=True)
    assert not (tmp_path / "tiny").exists()
