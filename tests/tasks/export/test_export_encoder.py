"""An exported encoder gives the vectors of the encoder."""

import json

import attrs
import numpy as np
import pytest

from onion.errors import CheckpointError, DataError
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.export_encoder import export_encoder
from tests.onions.material import encoder

pytest.importorskip("onnxruntime")

TEXTS = ["a good film", "it", "the plot was an awful story and the actor poor"]
POOLINGS = [
    Pooling("cls", max_length=12),
    Pooling("mean", normalize=True, max_length=12),
    Pooling("pooler", max_length=9),
]


@pytest.mark.parametrize("form", ["onnx", "paddle"])
@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda each: each.pooling)
def test_the_vectors_are_those_of_the_encoder(pooling, form, tmp_path):
    manifest = export_encoder(encoder(), tmp_path / "model", form, **attrs.asdict(pooling))
    assert manifest["compared"]["largest_difference"] <= 1e-5
    settings = {"normalize": pooling.normalize, "max_length": pooling.max_length}
    own = Embedder.from_pretrained(encoder(), pooling.pooling, **settings)
    exported = Embedder.from_pretrained(tmp_path / "model")
    assert (exported.max_length, exported.width) == (pooling.max_length, own.width)
    np.testing.assert_allclose(exported(TEXTS[:2]), own(TEXTS[:2]), atol=1e-5)
    np.testing.assert_allclose(exported(TEXTS[:2], TEXTS[1:]), own(TEXTS[:2], TEXTS[1:]), atol=1e-5)
    for number, text in enumerate(TEXTS):  # one alone takes a shorter way
        np.testing.assert_allclose(exported([text]), own(TEXTS)[number : number + 1], atol=1e-5)
    kept = [json.loads(line) for line in (tmp_path / "model" / "answers.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(
        exported([each["row"] for each in kept]), [each["prediction"] for each in kept], atol=1e-5
    )


def test_a_lower_layer(tmp_path):
    export_encoder(encoder(), tmp_path / "model", pooling="mean", layer=1, max_length=12)
    own = Embedder.from_pretrained(encoder(), "mean", layer=1, max_length=12)
    np.testing.assert_allclose(Embedder.from_pretrained(tmp_path / "model")(TEXTS), own(TEXTS), atol=1e-5)


def test_settings_are_those_of_the_export(tmp_path):
    export_encoder(encoder(), tmp_path / "model", pooling="mean", max_length=12)
    assert Embedder.from_pretrained(tmp_path / "model", "mean", batch_size=2)(TEXTS).shape[0] == 3
    for settings in ({"pooling": "cls"}, {"normalize": True}, {"layer": 1}):
        with pytest.raises(DataError, match="exported with pooling mean, layer the last, normalize false"):
            Embedder.from_pretrained(tmp_path / "model", **settings)


def test_eight_bits_keep_the_direction(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    own = Embedder.from_pretrained(encoder(), "mean", normalize=True, max_length=12)(TEXTS)
    (tmp_path / "table.tsv").write_text("text_a\tlabel\na good film\tgood\n")
    export_encoder(encoder(), tmp_path / "of a table", **attrs.asdict(POOLINGS[0]), texts=tmp_path / "table.tsv")
    (kept,) = (tmp_path / "of a table" / "answers.jsonl").read_text().splitlines()
    assert json.loads(kept)["row"] == "a good film"
    for kind, calibrate in (("dynamic", None), ("static", tmp_path / "texts.txt")):
        pooling = Pooling("mean", normalize=True, max_length=12)
        export_encoder(encoder(), tmp_path / kind, **attrs.asdict(pooling), int8=kind, calibrate=calibrate)
        exported = Embedder.from_pretrained(tmp_path / kind)
        assert ((exported(TEXTS) * own).sum(axis=1) > 0.98).all()
    alone = Embedder.from_pretrained(tmp_path / "dynamic")
    assert all((alone([text])[0] == vector).all() for text, vector in zip(TEXTS, alone(TEXTS), strict=True))


def test_the_layout_of_transformers_is_refused(tmp_path):
    with pytest.raises(DataError, match="save_pretrained"):
        export_encoder(encoder(), tmp_path / "model", "huggingface")
    assert not (tmp_path / "model").exists()


def test_a_run_is_no_exported_encoder(run_of, tmp_path):
    from onion.tasks.export.export import export

    export(run_of("classification"), tmp_path / "model")
    with pytest.raises(CheckpointError, match="has a model for the task classification, not an encoder"):
        Embedder.from_exported(tmp_path / "model")
