"""What is exported of a run predicts what the run predicts, for every kind of task and format; or is refused."""

import json
import logging
import shutil
from pathlib import Path

import attrs
import numpy as np
import pytest

from onion.errors import CheckpointError, DataError, WeightsError
from onion.tasks.export.comparison import answers, compare
from onion.tasks.export.export import export
from onion.tasks.export.manifest import read_manifest
from onion.tasks.export.samples import sample_lines
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.regression import Regression
from onion.tasks.task import TEXT_VECTOR
from tests.tasks.export.conftest import KINDS, training_files

pytest.importorskip("onnxruntime")


def rounded(value):
    """Numbers may differ in the last digit that is printed."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return pytest.approx(value, abs=2e-6, rel=1e-6) if isinstance(value, float) else value


def kept_answers(folder):
    kept = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    return [each["row"] for each in kept], [each["prediction"] for each in kept]


@pytest.mark.parametrize("form", ["onnx", "paddle", "huggingface"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_model_answers_what_the_run_answers(kind, form, run_of, tmp_path):
    manifest = export(run_of(kind), tmp_path / "model", form)
    assert manifest["compared"]["largest_difference"] <= 1e-5
    assert manifest["compared"]["changed"] == 0
    run, exported = Predictor.load(run_of(kind)), Predictor.load(tmp_path / "model")
    lines, kept = kept_answers(tmp_path / "model")
    assert len(lines) == manifest["compared"]["rows"] >= 10
    assert kept == answers(run, lines) == rounded(answers(exported, lines))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_computed_by_onnx_runtime_without_an_export(kind, run_of):
    run, other = Predictor.load(run_of(kind)), Predictor.load(run_of(kind), engine="onnx", threads=1)
    lines = sample_lines(run.task, run.tokenizer)
    assert compare(run, other, lines).largest_difference <= 1e-5
    assert answers(run, lines) == rounded(answers(other, lines))


@pytest.mark.parametrize("kind", KINDS)
def test_with_8_bits_an_answer_does_not_depend_on_the_texts_beside_it(kind, run_of, tmp_path):
    manifest = export(run_of(kind), tmp_path / "model", int8="dynamic")
    assert 0 < manifest["compared"]["largest_difference"] == manifest["compared"]["bound"] < 0.2
    exported = Predictor.load(tmp_path / "model")
    lines = sample_lines(exported.task, exported.tokenizer)
    alone = [answers(exported, [line])[0] for line in lines]
    if "question" in kind:  # the id of a question is the number of its line
        alone = [{**each, "id": str(number)} for number, each in enumerate(alone, start=1)]
    assert answers(exported, lines) == alone
    stored = [json.loads(line) for line in (tmp_path / "model" / "answers.jsonl").read_text().splitlines()]
    assert [each["prediction"] for each in stored] == answers(Predictor.load(run_of(kind)), lines)
    assert [each["exported"] for each in stored] == [answers(exported, [line])[0] for line in lines]


def test_nothing_is_logged_of_single_tensors(run_of, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        export(run_of("classification"), tmp_path / "model", int8="dynamic")
    assert not [each for each in caplog.records if "onnx" in each.pathname]
    assert not logging.getLogger().filters


@pytest.mark.parametrize("kind", KINDS)
def test_static_ranges_are_measured_on_a_file(kind, run_of, tmp_path):
    run = Predictor.load(run_of(kind))
    (tmp_path / "rows.jsonl").write_text("\n".join(sample_lines(run.task, run.tokenizer)) + "\n")
    manifest = export(run_of(kind), tmp_path / "model", int8="static", calibrate=tmp_path / "rows.jsonl")
    assert 0 < manifest["compared"]["largest_difference"] < 0.3
    assert manifest["compared"]["bound"] == manifest["compared"]["largest_difference"]
    whole = export(run_of(kind), tmp_path / "whole")
    assert _size(manifest) < _size(whole)


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("classification", "train.tsv", "text_a\tlabel\na good film\tgood\nthe plot is dull\tbad\n"),
        ("classification", "train.csv", 'text_a,label\n"a good film, and warm",good\n'),
        ("token-classification", "train.tsv", "text_a\tlabel\na\x02film\tO\x02O\n"),
        ("token-classification", "train.conll", "a O\nfilm O\n\nthe O\nplot O\n"),
        ("classification", "train.json", '[{"text_a": "a good film"}, {"text_a": "the plot is dull"}]'),
        ("masked-lm", "train.txt", "a good film\nthe plot is dull and the story was grim\n"),  # without [MASK]
    ],
)
def test_static_ranges_are_measured_on_a_training_file(kind, name, content, run_of, tmp_path):
    (tmp_path / name).write_text(content)
    manifest = export(run_of(kind), tmp_path / "model", int8="static", calibrate=tmp_path / name)
    assert 0 < manifest["compared"]["largest_difference"] < 1


def test_static_ranges_of_a_reader_are_measured_on_its_training_file(run_of, tmp_path):
    path, _ = training_files("question-answering", tmp_path)
    manifest = export(run_of("question-answering"), tmp_path / "model", int8="static", calibrate=path)
    assert manifest["int8"] == "static"


def test_rows_without_anything_to_predict_have_no_ranges(run_of, tmp_path):
    (tmp_path / "rows.txt").write_text("。\n")
    with pytest.raises(DataError, match="calibrate: no row has anything to predict"):
        export(run_of("masked-lm"), tmp_path / "model", int8="static", calibrate=tmp_path / "rows.txt")
    assert not (tmp_path / "model").exists()


def test_a_model_that_no_row_compares_is_refused(run_of, tmp_path):
    (tmp_path / "rows.txt").write_text("a good film\n")
    with pytest.raises(DataError, match="texts: no row has anything to predict"):
        export(run_of("masked-lm"), tmp_path / "model", texts=tmp_path / "rows.txt")
    (tmp_path / "rows.txt").write_text("a good film\na [MASK] film\n")
    assert export(run_of("masked-lm"), tmp_path / "model", texts=tmp_path / "rows.txt")["compared"]["rows"] == 2


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rows.txt", "a film\n\na\tb\n", r"rows\.txt, row 2: 2 tab-separated cells; this model reads text_a"),
        ("rows.tsv.gz", "", r"rows\.tsv\.gz: cannot tell the format by the ending"),
        ("rows.csv", "sentence\na film\n", r"rows\.csv, row 1: there is no 'text_a' in this object; it has 'sentence'"),
    ],
)
def test_a_row_that_the_task_does_not_read_is_named(name, content, told, run_of, tmp_path):
    (tmp_path / name).write_text(content)
    for given in ({"texts": tmp_path / name}, {"int8": "static", "calibrate": tmp_path / name}):
        with pytest.raises(DataError, match=told):
            export(run_of("classification"), tmp_path / "model", **given)


def test_what_stands_behind_an_activation_keeps_32_bits_where_ranges_are_static(run_of, tmp_path):
    onnx = pytest.importorskip("onnx")
    run = Predictor.load(run_of("classification"))
    (tmp_path / "rows.jsonl").write_text("\n".join(sample_lines(run.task, run.tokenizer)) + "\n")
    export(run_of("classification"), tmp_path / "model", int8="static", calibrate=tmp_path / "rows.jsonl")
    graph = onnx.load(tmp_path / "model" / "model.onnx").graph
    whole = {each.name for each in graph.initializer if each.data_type == onnx.TensorProto.FLOAT}
    layer = "encoder.encoder.layers.1."
    assert f"{layer}linear2.weight" in whole
    assert whole.isdisjoint({f"{layer}linear1.weight", f"{layer}self_attn.k_proj.weight"})


def _size(manifest):
    return manifest["files"]["model.onnx"]["size"]


def test_rows_of_a_file_are_answered_too(run_of, tmp_path):
    (tmp_path / "rows.txt").write_text("a good film\n\nthe plot is dull\n")
    export(run_of("classification"), tmp_path / "model", texts=tmp_path / "rows.txt")
    assert kept_answers(tmp_path / "model")[0] == ["a good film", "the plot is dull"]


@pytest.mark.parametrize("form", ["onnx", "huggingface"])
def test_a_setting_for_after_the_training_goes_along(form, run_of, tmp_path):
    export(run_of("multilabel"), tmp_path / "model", form, settings={"threshold": 0.9})
    assert Predictor.load(tmp_path / "model").task.threshold == 0.9
    assert Predictor.load(tmp_path / "model", {"threshold": 0.1}).task.threshold == 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "tensorrt"}, "format 'tensorrt': must be one of onnx, paddle, huggingface"),
        ({"int8": "fp8"}, "int8 'fp8': must be one of dynamic, static"),
        ({"int8": "dynamic", "format": "paddle"}, "int8 is for the format onnx only"),
        ({"int8": "static"}, "int8 static needs a calibration file"),
        ({"calibrate": "rows.txt"}, "calibrate is for int8 static only; leave it out"),
        ({"texts": "nowhere.txt"}, "nowhere.txt"),
        ({"settings": {"labels": ["a", "b"]}}, "cannot be changed after training"),
    ],
)
def test_arguments_that_are_wrong_leave_nothing(arguments, message, run_of, tmp_path):
    with pytest.raises(DataError, match=message):
        export(run_of("classification"), tmp_path / "model", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("texts",), ("calibrate", "int8")])
def test_a_file_without_rows_is_refused(arguments, run_of, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    given = {name: "static" if name == "int8" else tmp_path / "blank.txt" for name in arguments}
    with pytest.raises(DataError, match=r"blank\.txt: has no row"):
        export(run_of("classification"), tmp_path / "model", **given)
    assert not (tmp_path / "model").exists()


def test_nothing_is_overwritten(run_of, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").touch()
    with pytest.raises(DataError, match="is not empty, and nothing is overwritten"):
        export(run_of("classification"), tmp_path / "model")


def test_an_export_is_not_exported_again(run_of, tmp_path):
    export(run_of("classification"), tmp_path / "model")
    with pytest.raises(DataError, match="was made by onion export"):
        export(tmp_path / "model", tmp_path / "again")


def test_a_task_that_does_not_tell_its_head_is_refused(run_of, tmp_path, monkeypatch):
    kind = type(Predictor.load(run_of("regression")).task)
    monkeypatch.setattr(kind, "head_over", None)
    with pytest.raises(DataError, match="regression cannot be exported: it does not say what its head is over"):
        export(run_of("regression"), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_network_of_ones_own_says_anew_what_its_head_is_over():
    class Own(Regression):
        def network(self, encoder):
            return super().network(encoder)

    @attrs.frozen(kw_only=True)
    class Told(Own):
        head_over = TEXT_VECTOR
        network = Own.network

    class Renamed(Regression):
        name = "renamed"

    assert (Regression.head_over, Own.head_over, Told.head_over) == (TEXT_VECTOR, None, TEXT_VECTOR)
    assert Renamed.head_over == TEXT_VECTOR


@pytest.mark.parametrize("form", ["onnx", "paddle"])
def test_a_model_that_differs_is_refused(form, run_of, tmp_path, monkeypatch):
    from onion.models.graphs import transformer

    embedded = transformer._embedded
    monkeypatch.setattr(transformer, "_embedded", lambda o, config, *rest: embedded(o, config, *rest) * 1.01)
    with pytest.raises(WeightsError, match=r"outputs differ from the original's by .* more than 1e-05; nothing was"):
        export(run_of("classification"), tmp_path / "model", form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("int8", [None, "dynamic"])
def test_a_model_without_numbers_is_refused(int8, run_of, tmp_path, monkeypatch):
    from onion.models.graphs import transformer

    embedded = transformer._embedded
    broken = lambda o, config, *rest: embedded(o, config, *rest) * float("nan")  # noqa: E731
    monkeypatch.setattr(transformer, "_embedded", broken)
    with pytest.raises(WeightsError, match="nothing was written"):
        export(run_of("classification"), tmp_path / "model", int8=int8)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def exported(run_of, tmp_path):
    export(run_of("token-classification, crf"), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "name", ["model.onnx", "decoder.safetensors", "task.json", "config.json", "tokenizer.json", "answers.jsonl"]
)
def test_a_file_that_was_changed_or_lost_is_named(name, exported):
    content = (exported / name).read_bytes()
    (exported / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=f"{name} is not what onion export wrote"):
        read_manifest(exported)
    (exported / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        read_manifest(exported)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format_version": "x"}', "[" * 100_000])
def test_a_damaged_manifest_is_an_error_in_a_sentence(content, exported):
    (exported / "export.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"export.json is missing or damaged; export the model again"):
        Predictor.load(exported)


def test_a_manifest_of_a_later_onion_is_refused(exported):
    manifest = attrs.asdict(read_manifest(exported))
    (exported / "export.json").write_text(json.dumps({**manifest, "format_version": 2, "more": 1}))
    with pytest.raises(CheckpointError, match="of a later onion; this one reads up to 1"):
        Predictor.load(exported)


def test_a_manifest_does_not_reach_out_of_its_folder(exported, tmp_path):
    (tmp_path / "secret").write_text("secret")
    manifest = attrs.asdict(read_manifest(exported))
    manifest["files"]["../secret"] = {"size": 6, "sha256": "0"}
    (exported / "export.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=f"{Path('model') / 'secret'} is missing"):
        Predictor.load(exported)


def test_a_folder_for_one_engine_is_not_run_by_another(exported):
    with pytest.raises(DataError, match="is for the engine onnx; export the run again for paddle"):
        Predictor.load(exported, engine="paddle")
    with pytest.raises(DataError, match="engine 'tensorrt': must be one of paddle, onnx"):
        Predictor.load(exported, engine="tensorrt")


def test_a_model_that_is_no_model_is_an_error_in_a_sentence(exported):
    manifest = attrs.asdict(read_manifest(exported))
    (exported / "model.onnx").write_bytes(b"no model")
    del manifest["files"]["model.onnx"]
    (exported / "export.json").write_text(json.dumps(manifest))
    with pytest.raises(WeightsError, match=r"model.onnx: ONNX Runtime .* cannot load it"):
        Predictor.load(exported)


def test_the_run_need_not_be_there_any_more(run_of, tmp_path):
    shutil.copytree(run_of("classification"), tmp_path / "run")
    export(tmp_path / "run", tmp_path / "model")
    shutil.rmtree(tmp_path / "run")
    lines, kept = kept_answers(tmp_path / "model")
    assert rounded(answers(Predictor.load(tmp_path / "model"), lines)) == kept


def test_the_file_holds_the_weights_as_they_are(run_of, tmp_path):
    onnx = pytest.importorskip("onnx")
    export(run_of("classification"), tmp_path / "model")
    stored = {each.name: each for each in onnx.load(tmp_path / "model" / "model.onnx").graph.initializer}
    for path, parameter in Predictor.load(run_of("classification")).network.named_parameters():
        if "q_proj" not in path:  # which are scaled
            assert np.array_equal(onnx.numpy_helper.to_array(stored[path]), parameter.numpy()), path
