"""paddle.inference, plain: a padded BERT as a program, with oneDNN and all optimisations that it has by itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import inference, nn

from benchmarks.inference.work import Engine, Job, by_length, head_of, mean_of, probabilities
from onion.data.batching import pad
from onion.models.encoder import Encoder
from onion.models.layers import EncoderLayer
from onion.models.tokenizer import Tokenizer

LIBRARIES = ("paddlepaddle",)


class Padded(nn.Layer):
    """The same parameters, computed as most write it: [batch, length, hidden] throughout."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: paddle.Tensor, mask: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """int64 and float32 [batch, length] -> [batch, length, hidden] and [batch, hidden]."""
        tables = self.encoder.embeddings
        words, places = tables.word_embeddings.weight, tables.position_embeddings.weight
        rows, length = paddle.shape(ids)[0], paddle.shape(ids)[1]
        flat = paddle.gather(words, ids.reshape([-1])).reshape([rows, length, words.shape[1]])
        x = tables.layer_norm(flat + places[:length] + tables.token_type_embeddings.weight[0])  # type: ignore[union-attr]  # BERT has them
        bias = ((mask - 1.0) * 1e9).unsqueeze([1, 2])
        for layer in self.encoder.encoder.layers:
            x = _through(layer, x, bias, rows)
        pooler = self.encoder.pooler.dense
        return x, paddle.tanh(F.linear(x[:, 0], pooler.weight, pooler.bias))


def _through(layer: EncoderLayer, x: paddle.Tensor, bias: paddle.Tensor, rows: paddle.Tensor) -> paddle.Tensor:
    attention = layer.self_attn
    size = round(attention.scale**-2)
    query, key, value = (
        F.linear(x, part.weight, part.bias).reshape([rows, -1, x.shape[2] // size, size]).transpose([0, 2, 1, 3])
        for part in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    scores = paddle.matmul(query, key, transpose_y=True) * attention.scale + bias
    merged = paddle.matmul(F.softmax(scores), value).transpose([0, 2, 1, 3]).reshape([rows, -1, x.shape[2]])
    x = layer.norm1(x + F.linear(merged, attention.out_proj.weight, attention.out_proj.bias))
    inner = layer.activation(F.linear(x, layer.linear1.weight, layer.linear1.bias))
    return layer.norm2(x + F.linear(inner, layer.linear2.weight, layer.linear2.bias))


def ways(job: Job) -> dict[str, Engine]:
    tokenizer = Tokenizer.from_pretrained(job["folder"])
    weight, bias = head_of(job)
    with TemporaryDirectory() as folder:
        predictor = _predictor(Encoder.from_pretrained(job["folder"]), Path(folder) / "model")
    handles = [predictor.get_input_handle(name) for name in ("ids", "mask")]
    outputs = [predictor.get_output_handle(name) for name in predictor.get_output_names()]

    def run(texts: Sequence[str], which: int) -> tuple[np.ndarray, np.ndarray]:
        ids = [found.ids for found in tokenizer(list(texts), max_length=job["max_length"])]
        mask = pad([np.ones(len(each)) for each in ids], 0, np.float32)
        for handle, array in zip(handles, (pad(ids, 0, np.int64), mask), strict=True):
            handle.copy_from_cpu(array)
        predictor.run()
        return outputs[which].copy_to_cpu(), mask

    return {
        "classify": by_length(lambda texts: probabilities(run(texts, 1)[0] @ weight + bias)),
        "embed": by_length(lambda texts: mean_of(*run(texts, 0))),
    }


def _predictor(encoder: Encoder, path: Path) -> inference.Predictor:
    encoder.eval()
    given = [paddle.static.InputSpec([None, None], *each) for each in (("int64", "ids"), ("float32", "mask"))]
    paddle.jit.save(paddle.jit.to_static(Padded(encoder), full_graph=True, input_spec=given), str(path))
    config = inference.Config(f"{path}.json", f"{path}.pdiparams")
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    config.enable_new_executor()
    config.enable_new_ir(True)
    config.enable_mkldnn()
    config.enable_memory_optim()
    return inference.create_predictor(config)
