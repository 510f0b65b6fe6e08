"""Weights in every foreign layout: read from files made here by hand or by Paddle, and written back."""

import json
from contextlib import nullcontext

import numpy as np
import paddle
import pytest
import safetensors
import safetensors.numpy

from onion.errors import WeightsError
from onion.models.formats.name_mapping import from_static, place_of, to_hugging_face
from onion.models.weights import read_weights, write_weights
from scripts.reference_outputs.architectures import to_static
from tests.models.foreign_files import paddle_tensor, write_old_torch, write_torch
from tests.models.helpers import (
    HEADS,
    SMALL,
    assert_equal_bits,
    hugging_face_arrays,
    our_heads,
    ours,
    small_encoder,
    write_folder,
)  # fmt: skip

HUGGING_FACE_HEADS = {
    "cls.predictions.transform.weight": ("cls.predictions.transform.dense.weight", "lm_head.dense.weight"),
    "cls.predictions.transform.bias": ("cls.predictions.transform.dense.bias", "lm_head.dense.bias"),
    "cls.predictions.layer_norm.weight": ("cls.predictions.transform.LayerNorm.weight", "lm_head.layer_norm.weight"),
    "cls.predictions.layer_norm.bias": ("cls.predictions.transform.LayerNorm.bias", "lm_head.layer_norm.bias"),
    "cls.predictions.decoder_weight": ("cls.predictions.decoder.weight", "lm_head.decoder.weight"),
    "cls.predictions.decoder_bias": ("cls.predictions.bias", "lm_head.bias"),
}
TRANSPOSED = ("cls.predictions.transform.weight", "cls.seq_relationship.weight")


# Reading


@pytest.mark.parametrize("prefix", ["", "bert.", "ernie.", "roberta."])
def test_paddlenlps_file_as_paddle_writes_it(tmp_path, prefix):
    tensors = {prefix + name: paddle.to_tensor(array) for name, array in ours().items()}
    tensors |= {name: paddle.to_tensor(array) for name, array in our_heads().items()}
    paddle.save(tensors | {"classifier.weight": paddle.ones([24, 2])}, str(tmp_path / "model_state.pdparams"))
    weights = read_weights(tmp_path)
    assert (weights.layout, weights.ignored) == ("paddlenlp", ("classifier.weight",))
    assert_equal_bits(weights.arrays, ours())
    assert_equal_bits(weights.heads, our_heads())


@pytest.mark.parametrize("family", [0, 1])
def test_heads_of_newer_paddlenlp(tmp_path, family):
    """2.8 stores the decoder as a layer, and its bias (of BERT and ERNIE) twice."""
    heads = our_heads()
    stored = dict(heads) | {"cls.predictions.decoder.bias": heads["cls.predictions.decoder_bias"]}
    stored["cls.predictions.decoder.weight"] = stored.pop("cls.predictions.decoder_weight")
    if family:
        stored = {name: a for name, a in heads.items() if name.startswith("cls.seq")}
        stored |= {names[1]: heads[name] for name, names in HUGGING_FACE_HEADS.items()}
    tensors = {("ernie.", "roberta.")[family] + name: paddle.to_tensor(array) for name, array in ours().items()}
    tensors |= {name: paddle.to_tensor(array) for name, array in stored.items()}
    paddle.save(tensors, str(tmp_path / "model_state.pdparams"))
    weights = read_weights(tmp_path)
    assert (weights.layout, weights.ignored) == ("paddlenlp", ())
    assert_equal_bits(weights.arrays, ours())
    assert_equal_bits(weights.heads, heads)


@pytest.mark.parametrize("write", [write_torch, write_old_torch])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_pytorchs_file(tmp_path, write, prefix):
    others = (f"{prefix}embeddings.position_ids", "qa_outputs.bias", "classifier.weight")
    arrays = hugging_face_arrays(small_encoder(), prefix) | {name: np.arange(16)[None] for name in others}
    write(tmp_path / "pytorch_model.bin", arrays)
    weights = read_weights(tmp_path)
    assert (weights.layout, weights.ignored) == ("huggingface", others)
    assert_equal_bits(weights.arrays, ours())


@pytest.mark.parametrize("family", [0, 1])
def test_hugging_faces_heads_are_reported_apart(tmp_path, family):
    heads = our_heads()
    arrays = hugging_face_arrays(small_encoder(), ("bert.", "roberta.")[family])
    for name, array in heads.items():
        stored = HUGGING_FACE_HEADS[name][family] if name in HUGGING_FACE_HEADS else name
        arrays[stored] = np.ascontiguousarray(array.T) if name in TRANSPOSED else array
    tied = ("cls.predictions.decoder.bias", "lm_head.decoder.bias")[family]
    arrays[tied] = heads["cls.predictions.decoder_bias"]
    write_folder(tmp_path, arrays)
    weights = read_weights(tmp_path)
    assert_equal_bits(weights.arrays, ours())
    assert_equal_bits(weights.heads, heads)
    assert weights.check_heads(HEADS) == ()
    arrays[tied] = arrays[tied] + 1
    write_folder(tmp_path, arrays)
    with pytest.raises(WeightsError, match=r"cls\.predictions\.decoder_bias is stored twice"):
        read_weights(tmp_path)


def test_heads_may_be_missing_but_not_misshapen(tmp_path):
    heads = our_heads()
    absent = tuple(name for name in heads if name.startswith("cls.seq_relationship."))
    for name in absent:
        del heads[name]
    write_weights(tmp_path, ours() | heads | {"cls.seq_relationship.weight": np.ones((24, 2), np.float32)})
    with pytest.raises(WeightsError, match=r"missing: cls\.seq_relationship\.bias$"):
        read_weights(tmp_path).check_heads(HEADS)  # half a head is damage
    write_weights(tmp_path, ours() | heads)
    weights = read_weights(tmp_path)
    assert weights.check(SMALL) == ()
    assert weights.check_heads(HEADS) == absent
    write_weights(tmp_path, ours() | our_heads())
    weights = read_weights(tmp_path)
    assert weights.check_heads({"cls.seq_relationship.weight": (24, 2)}) == ()
    with pytest.raises(WeightsError, match=r"misshapen: cls\.seq_relationship\.weight is \[24, 2\], not \[24, 3\]"):
        weights.check_heads({"cls.seq_relationship.weight": (24, 3)})


def write_static(folder, arrays, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        (folder / to_static(name)).write_bytes(paddle_tensor(array, **settings))


@pytest.mark.parametrize("settings", [{}, {"packed": True}, {"levels": (b"\0" * 16, b"\0" * 8)}])
def test_static_ernies_folder(tmp_path, settings):
    arrays = ours() | {"embeddings.task_type_embeddings.weight": np.ones((3, 24), np.float32)}
    heads = {name: array for name, array in our_heads().items() if not name.endswith("decoder_weight")}
    write_static(tmp_path / "params", arrays | heads, **settings)
    others = [
        "learning_rate_0",
        "word_embedding_moment1_0",
        "cls_out_w",
        "pooled_fc.w_0_beta1_pow_acc_0",
        "task_fc.w_0",
    ]
    for name in others:
        (tmp_path / "params" / name).write_bytes(b"not looked at")
    for folder in (tmp_path, tmp_path / "params"):  # the folder above, or the one itself
        weights = read_weights(folder)
        assert weights.layout == "static"
        assert weights.path == tmp_path / "params"
        assert set(weights.ignored) == set(others)
        assert_equal_bits(weights.arrays, arrays)
        assert_equal_bits(weights.heads, heads)


def test_the_files_that_paddles_static_graph_writes(tmp_path):
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    with getattr(paddle.pir_utils, "OldIrGuard", nullcontext)():  # programs of Paddle 1.x and 2.x
        paddle.enable_static()
        try:
            program, start = paddle.static.Program(), paddle.static.Program()
            with paddle.static.program_guard(program, start):
                ids = paddle.static.data("ids", [None], "int64")
                assign = paddle.nn.initializer.Assign(table)
                paddle.static.nn.embedding(ids, [4, 3], param_attr=paddle.ParamAttr("word_embedding", assign))
            executor = paddle.static.Executor(paddle.CPUPlace())
            executor.run(start)
            paddle.static.io.save_vars(executor, str(tmp_path / "params"), program, predicate=lambda v: v.persistable)
        finally:
            paddle.disable_static()
    assert (tmp_path / "params" / "word_embedding").read_bytes() == paddle_tensor(table)
    weights = read_weights(tmp_path)
    assert_equal_bits(weights.arrays, {"embeddings.word_embeddings.weight": table})


@pytest.fixture
def shards(tmp_path):
    """A folder of shards; gives name -> file, and writes the index."""
    arrays = hugging_face_arrays(small_encoder())
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(sorted(arrays))}
    for file in set(files.values()):
        part = {name: array for name, array in arrays.items() if files[name] == file}
        safetensors.numpy.save_file(part, tmp_path / file)
    write_index(tmp_path / "model.safetensors.index.json", files)
    return files


def write_index(path, files):
    path.write_text(json.dumps({"metadata": {}, "weight_map": files}))


def test_shards(tmp_path, shards):
    weights = read_weights(tmp_path)
    assert weights.path.name == "model.safetensors.index.json"
    assert_equal_bits(weights.arrays, ours())


def test_damaged_shards_are_named(tmp_path, shards):
    def refused(message):
        with pytest.raises(WeightsError, match=message):
            read_weights(tmp_path)

    index = tmp_path / "model.safetensors.index.json"
    write_index(index, shards | {"more": "model-00001-of-00002.safetensors"})
    refused(r"index\.json: model-00001-of-00002\.safetensors lacks more \(1 parameters are missing\)")
    for outside in ("../other.safetensors", "/etc/passwd", "..", "a\\b", "a\0b", 3):
        write_index(index, shards | {"more": outside})
        refused("is not a plain file name")
    for content in (b"{}", b"[]", b"{", b'{"weight_map": []}', b"\xff"):
        index.write_bytes(content)
        refused("not an index of weights")
    write_index(index, shards)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    refused(r"model-00002-of-00002\.safetensors: no such file")


def test_shards_of_pytorch(tmp_path):
    arrays = hugging_face_arrays(small_encoder())
    places = {name: "a.bin" if i < 9 else "b.bin" for i, name in enumerate(sorted(arrays))}
    for file in ("a.bin", "b.bin"):
        write_torch(tmp_path / file, {name: arrays[name] for name in arrays if places[name] == file})
    write_index(tmp_path / "pytorch_model.bin.index.json", places)
    assert_equal_bits(read_weights(tmp_path).arrays, ours())


def test_our_file_comes_before_the_others(tmp_path):
    write_weights(tmp_path, ours(seed=2))
    (tmp_path / "pytorch_model.bin").write_bytes(b"not looked at")
    assert_equal_bits(read_weights(tmp_path).arrays, ours(seed=2))


def test_a_folder_without_weights_says_what_was_looked_for(tmp_path):
    with pytest.raises(WeightsError, match=r"no model_state\.pdparams, pytorch_model\.bin or params/word_embedding"):
        read_weights(tmp_path)


# Names


def test_names_there_and_back():
    for name in [*ours(), *HEADS, "embeddings.task_type_embeddings.weight"]:
        for prefix in ("", "bert.", "roberta.", "ernie."):
            stored, transpose = to_hugging_face(name, prefix)
            assert place_of(stored, "huggingface") == (name, transpose)
        if name != "cls.predictions.decoder_weight":  # static ERNIE has no such variable: it is tied
            assert from_static(to_static(name)) == name
