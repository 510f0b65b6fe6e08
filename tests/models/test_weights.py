import json
import logging
import os
import struct

import numpy as np
import pytest

from onion.errors import WeightsError
from onion.models.encoder import Encoder
from onion.models.weights import read_weights, write_weights
from tests.models.helpers import arrays_of, assert_equal_bits, hugging_face_arrays, small_encoder, write_folder

IDS = np.array([[5, 6, 7, 0], [8, 9, 0, 0]])


def test_what_is_saved_loads_with_the_same_bits(tmp_path):
    encoder = small_encoder()
    encoder.save_pretrained(tmp_path / "new" / "folder")
    loaded = Encoder.from_pretrained(tmp_path / "new" / "folder")
    assert loaded.config == encoder.config
    assert_equal_bits(arrays_of(loaded), arrays_of(encoder))
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == ["config.json", "model.safetensors"]  # noqa: PTH208


def test_loaded_weights_do_not_depend_on_the_file_any_more(tmp_path):
    encoder = small_encoder()
    encoder.save_pretrained(tmp_path)
    loaded = Encoder.from_pretrained(tmp_path)
    small_encoder(seed=2).save_pretrained(tmp_path)
    assert_equal_bits(arrays_of(loaded), arrays_of(encoder))


def test_names_from_tensorflow_times(tmp_path):
    encoder = small_encoder()
    arrays = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in hugging_face_arrays(encoder).items()
    }
    assert_equal_bits(arrays_of(Encoder.from_pretrained(write_folder(tmp_path, arrays))), arrays_of(encoder))


def test_a_model_without_a_pooler_loads_with_a_warning(tmp_path, caplog):
    encoder = small_encoder()
    arrays = {name: a for name, a in hugging_face_arrays(encoder).items() if "pooler" not in name}
    with caplog.at_level(logging.WARNING):
        loaded = Encoder.from_pretrained(write_folder(tmp_path, arrays))
    assert "contains no pooler; it starts with random weights" in caplog.text
    loaded.eval()
    assert (loaded(IDS).packed.numpy() == encoder(IDS).packed.numpy()).all()


def test_float16_and_float64_become_float32(tmp_path):
    arrays = arrays_of(small_encoder())
    for kind in (np.float16, np.float64):
        found = read_weights(write_folder(tmp_path / kind.__name__, {n: a.astype(kind) for n, a in arrays.items()}))
        assert {a.dtype for a in found.arrays.values()} == {np.dtype(np.float32)}
        assert all((found.arrays[n] == arrays[n].astype(kind).astype(np.float32)).all() for n in arrays)


def test_bfloat16_becomes_float32(tmp_path):
    values = np.array([[1.0, -2.5, 3.140625]], np.float32)  # all of them exact in bfloat16
    data = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    entry = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({"pooler.dense.weight": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    assert (read_weights(tmp_path).arrays["pooler.dense.weight"] == values).all()


def test_paddles_bfloat16_parameters_can_be_saved(tmp_path):
    encoder = small_encoder().to(dtype="bfloat16")
    encoder.save_pretrained(tmp_path)
    expected = {name: p.astype("float32").numpy() for name, p in encoder.named_parameters()}
    assert_equal_bits(arrays_of(Encoder.from_pretrained(tmp_path)), expected)


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(WeightsError, match="nowhere: no such folder"):
        read_weights(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"model\.safetensors: no such file"):
        read_weights(tmp_path)
    with pytest.raises(WeightsError, match="nowhere: neither a folder nor a known model"):
        Encoder.from_pretrained(tmp_path / "nowhere")


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -1000])
def test_a_truncated_file_is_refused(tmp_path, keep):
    small_encoder().save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WeightsError, match=r"model\.safetensors: damaged"):
        Encoder.from_pretrained(tmp_path)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64 + b"<html>not found</html>" * 20)
    with pytest.raises(WeightsError, match="damaged or not a safetensors file"):
        read_weights(tmp_path)


def test_all_that_does_not_fit_is_said_at_once(tmp_path):
    arrays = arrays_of(small_encoder())
    del arrays["encoder.layers.0.linear1.bias"]
    arrays["encoder.layers.7.linear1.bias"] = np.zeros(48, np.float32)
    arrays["embeddings.layer_norm.bias"] = np.zeros(23, np.float32)
    arrays["pooler.dense.bias"] = np.full(24, np.nan, np.float32)
    arrays["encoder.layers.1.norm1.bias"] = np.zeros(24, np.int64)
    with pytest.raises(WeightsError) as caught:
        Encoder.from_pretrained(write_folder(tmp_path, arrays))
    assert str(caught.value).endswith(
        "the weights do not fit the config: missing: encoder.layers.0.linear1.bias; "
        "unexpected: encoder.layers.7.linear1.bias; misshapen: embeddings.layer_norm.bias is [23], not [24]; "
        "not floating-point: encoder.layers.1.norm1.bias; not finite: pooler.dense.bias"
    )


def test_long_lists_are_cut_and_stand_whole_in_the_log(tmp_path, caplog):
    arrays = {name: a for name, a in arrays_of(small_encoder()).items() if "layers.1" not in name}
    caplog.set_level(logging.DEBUG)
    with pytest.raises(WeightsError, match=r"missing: encoder\.layers\.1.* and 11 more$"):
        Encoder.from_pretrained(write_folder(tmp_path, arrays))
    (whole,) = [record.getMessage() for record in caplog.records if "missing: " in record.getMessage()]
    assert whole.count("encoder.layers.1.") == 16


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"vocab_size": 10**12}, r"is \[40, 24\], not \[1000000000000, 24\] \(the config's vocab_size is 10000"),
        ({"intermediate_size": 10**12}, r"linear1\.weight is \[24, 48\], not \[24, 1000000000000\]"),
        ({"max_position_embeddings": 2**70}, "the config's max_position_embeddings is 11805"),
        ({"num_hidden_layers": 10**12}, "its num_hidden_layers is 1000000000000, and there are 39 parameters in all"),
    ],
)
def test_sizes_that_the_weights_do_not_have_are_refused_before_anything_is_made(tmp_path, monkeypatch, size, message):
    folder = write_folder(tmp_path, arrays_of(small_encoder()), **size)
    monkeypatch.setattr(Encoder, "__init__", None)
    with pytest.raises(WeightsError, match=f"the weights do not fit the config: .*{message}"):
        Encoder.from_pretrained(folder)


def test_numbers_beyond_float32_are_not_finite_and_nothing_else_is_said(tmp_path, recwarn):
    arrays = {name: a.astype(np.float64) for name, a in arrays_of(small_encoder()).items()}
    arrays["pooler.dense.bias"][3] = 1e300
    with pytest.raises(WeightsError, match=r"not finite: pooler\.dense\.bias$"):
        Encoder.from_pretrained(write_folder(tmp_path, arrays))
    assert not recwarn.list


def test_half_a_pooler_is_damage(tmp_path):
    arrays = {name: a for name, a in arrays_of(small_encoder()).items() if name != "pooler.dense.bias"}
    with pytest.raises(WeightsError, match=r"missing: pooler\.dense\.bias"):
        Encoder.from_pretrained(write_folder(tmp_path, arrays))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_weights(tmp_path, {"a": np.ones(3, np.float32)})
    before = (tmp_path / "model.safetensors").read_bytes()

    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(WeightsError, match="cannot write: No space left on device"):
        write_weights(tmp_path, {"a": np.zeros(3, np.float32)})
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_transposed_views_are_written_as_they_look(tmp_path):
    view = np.arange(6, dtype=np.float32).reshape(2, 3).T
    write_weights(tmp_path, {"a": view})
    assert (read_weights(tmp_path).arrays["a"] == view).all()


def test_a_folder_in_the_way_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match="cannot create the folder"):
        write_weights(tmp_path / "file" / "folder", {})
