"""ServedModel: a folder that gives its stored answers is taken, with 8 bits too, and any other one is refused."""

import json

import attrs
import pytest

from onion.errors import WeightsError
from onion.serving import served_models
from onion.serving.served_models import ServedModel
from onion.tasks.export.export import export
from onion.tasks.export.export_encoder import export_encoder
from onion.tasks.export.manifest import read_manifest, sums_of
from tests.onions.material import encoder

pytest.importorskip("onnxruntime")

TEXTS = ["a good film", "the plot is dull", "a dull film and a good plot"]


@pytest.fixture(params=["dynamic", "static"])
def int8(request, tmp_path):
    """Settings of an export with 8 bits."""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return {"int8": request.param, "calibrate": tmp_path / "texts.txt" if request.param == "static" else None}


@pytest.mark.parametrize("of", ["classification", "embedding"])
def test_a_model_with_8_bits_is_held_against_its_own_answers(of, int8, run_of, tmp_path):
    folder = tmp_path / "model"
    if of == "embedding":
        export_encoder(encoder(), folder, pooling="mean", max_length=12, **int8)
    else:
        export(run_of(of), folder, **int8)
    model = ServedModel("films", str(folder))
    _store(folder, lambda kept: {**kept, "prediction": _other(kept["prediction"])})  # the run's are another matter
    model.reload()
    _store(folder, lambda kept: {**kept, "exported": _other(kept["exported"])})
    with pytest.raises(WeightsError, match=r"other answers to the rows of answers\.jsonl than are stored there"):
        model.reload()
    assert model.now.version == 2
    _store(folder, lambda kept: {name: kept[name] for name in ("row", "prediction")})  # of an older onion
    model.reload()
    assert model.now.version == 3


def test_a_model_is_exchanged_with_its_version(folders):
    model = ServedModel("films", str(folders("classification")))
    before = model.now
    model.reload()
    assert (before.version, model.now.version) == (1, 2)
    assert model.servable is model.now.servable is not before.servable


def test_a_link_that_is_exchanged_during_a_load_does_not_mix_two_models(folders, tmp_path, monkeypatch):
    link, load = tmp_path / "films", served_models.load_servable
    link.symlink_to(folders("classification"))
    model = ServedModel("films", str(link))

    def exchanged_behind(*given):
        loaded = load(*given)
        link.unlink()
        link.symlink_to(folders("multilabel"))
        return loaded

    monkeypatch.setattr(served_models, "load_servable", exchanged_behind)
    model.reload()
    assert (model.now.version, model.servable.task) == (2, "classification")
    model.reload()
    assert (model.now.version, model.servable.task) == (3, "multilabel")


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("classification", ["a\u2028good\x85film", "a plain text"]),
        ("matching", ["a good film\tan awful story"]),
        ("question-answering", ["what was it\tit was a plot"]),
        ("embedding", ["{x} film", '{"a": 1}', '["a"]']),
    ],
)
def test_whatever_rows_a_model_was_compared_by_it_is_served(kind, lines, run_of, tmp_path):
    texts, folder = tmp_path / "texts.txt", tmp_path / "model"
    texts.write_bytes("".join(f"{line}\n" for line in lines).encode())
    if kind == "embedding":
        export_encoder(encoder(), folder, pooling="mean", max_length=12, texts=texts)
    else:
        export(run_of(kind), folder, texts=texts)
    assert ServedModel("films", str(folder)).now.version == 1


def _other(answer):
    """Another answer of the same form."""
    if isinstance(answer, dict):
        return {name: _other(each) for name, each in answer.items()}
    if isinstance(answer, list):
        return [_other(each) for each in answer]
    return answer + 0.5 if isinstance(answer, float) else answer


def _store(folder, change):
    """Change the stored answers of an exported folder, and its checksums with them."""
    path = folder / "answers.jsonl"
    kept = [change(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    manifest = read_manifest(folder)
    path.write_text("".join(json.dumps(each) + "\n" for each in kept), encoding="utf-8")
    attrs.evolve(manifest, files=sums_of(folder)).write(folder)
