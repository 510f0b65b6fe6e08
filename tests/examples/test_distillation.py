"""The example of distillation: a teacher, its student and a lonely one, on a tiny encoder of 6 layers."""

import attrs
import numpy as np
import paddle
import pytest

from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.inference import evaluate
from onion.tasks.finetune.predictor import Predictor
from tests.examples.in_process import run_example
from tests.tasks.helpers import films, tiny_encoder, write_tsv


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the data, an encoder of 6 layers, and a trained teacher."""
    place = tmp_path_factory.mktemp("distillation")
    write_tsv(place / "train.tsv", films(256, seed=1))
    write_tsv(place / "dev.tsv", films(48, seed=2))
    tokenizer = Tokenizer.from_pretrained(tiny_encoder(place / "two"))
    config = attrs.evolve(EncoderConfig.read(place / "two"), num_hidden_layers=6, max_position_embeddings=128)
    paddle.seed(3)
    Encoder(config).save_pretrained(place / "six")
    tokenizer.save_pretrained(place / "six")
    return place


def run(place, role, out, *more, **cut):
    """Run the example; return what its last line tells, and all that it printed."""
    words = [place, "--role", role, "--output", place / out, "--encoder", place / "six", *more]
    return run_example("distillation.py", *words, **cut)


@pytest.fixture(scope="module")
def told(place):
    teacher, drawing = run(place, "teacher", "teacher")
    assert "outputs_to_batch" not in drawing
    student, drawing = run(place, "student", "student", "--teacher", place / "teacher")
    assert "OutputsToBatch(field='teacher')" in drawing
    assert "GradientMachine(WithHiddenStates, Distillation)" in drawing
    return {"teacher": teacher, "student": student, "alone": run(place, "alone", "alone")[0]}


def test_the_last_line_tells_what_is_to_be_compared(told, place):
    for role, figures in told.items():
        assert (figures["example"], figures["role"], figures["seed"]) == ("distillation", role, 1)
        assert figures["accuracy"] == evaluate(place / role, str(place / "dev.tsv"))["accuracy"]
        assert figures["examples_per_second"] > 0
        assert figures["layers"] == (6 if role == "teacher" else 2)
        assert len(figures["losses"]) == (3 if role == "student" else 0)
    assert told["student"]["parameters"] == told["alone"]["parameters"] < told["teacher"]["parameters"]


def test_the_student_and_the_lonely_one_begin_alike_and_become_different(told, place):
    begun = [Encoder.from_pretrained(place / role / "begin").state_dict() for role in ("student", "alone")]
    whole = Encoder.from_pretrained(place / "six").state_dict()
    for name, value in begun[0].items():
        np.testing.assert_array_equal(value.numpy(), begun[1][name].numpy())
        np.testing.assert_array_equal(value.numpy(), whole[name].numpy())  # the layers 1 and 2 are copied
    ends = [Predictor.load(place / role).network.classifier.weight.numpy() for role in ("student", "alone")]
    assert not np.array_equal(*ends)


@pytest.mark.parametrize("words", [["--role", "student"], ["--role", "alone", "--teacher", "x"]])
def test_a_student_needs_a_teacher_and_nobody_else_does(place, words, capsys):
    with pytest.raises(SystemExit):
        run_example("distillation.py", place, "--output", place / "refused", *words)
    assert "--role student needs --teacher" in capsys.readouterr().err
    assert not (place / "refused").exists()
