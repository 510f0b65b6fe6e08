"""The graphs of all encoders give what the encoders give, by ONNX Runtime and by Paddle, wherever padding stands."""

import numpy as np
import paddle
import pytest

from onion.errors import WeightsError
from onion.models.auto import new_encoder
from onion.models.electra.config import ElectraConfig
from onion.models.graphs.encoded import Inputs
from onion.models.graphs.encoders import encoder_graph, reads_types
from onion.models.graphs.onnx_operations import OnnxOperations
from onion.models.graphs.paddle_operations import PaddleOperations
from onion.models.pretrained_encoder import arrays_of
from onion.models.words.config import WordsConfig
from onion.models.xlnet.config import XLNetConfig
from tests.models.helpers import VARIANTS

onnxruntime = pytest.importorskip("onnxruntime")

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
WORDS = {"vocab_size": 40, "embedding_size": 10, "hidden_size": 12}
CONFIGS = {
    **VARIANTS,
    "electra": ElectraConfig(vocab_size=40, embedding_size=10, max_position_embeddings=16, **SIZES),
    "xlnet": XLNetConfig(vocab_size=40, **SIZES),
    "xlnet, near distances": XLNetConfig(vocab_size=40, clamp_len=4, **SIZES),
    **{kind: WordsConfig(model_type=kind, **WORDS) for kind in ("bow", "cnn", "lstm")},
    **{f"{kind}, pairs": WordsConfig(model_type=kind, pairs=True, **WORDS) for kind in ("bow", "cnn", "lstm")},
}
BOUND = 1e-5


def masks(batch, length):
    """Of tokens in a batch whose first row is full: everything, padding on either side, holes."""
    generator = np.random.default_rng(length)
    lengths = generator.integers(1, length + 1, batch)
    lengths[0] = length
    right = np.arange(length) < lengths[:, None]
    holes = generator.random((batch, length)) < 0.6
    holes[:, length // 2] = True
    return {"none": np.ones_like(right), "right": right, "left": right[:, ::-1], "holes": holes}


def batches(config):
    """Inputs of several sizes, up to the longest, with every kind of padding; what stands on padding is arbitrary."""
    generator = np.random.default_rng(1)
    for batch, length in ((1, 1), (1, 6), (3, 9), (5, min(config.max_length, 24))):
        for mask in masks(batch, length).values():
            types = generator.integers(0, max(1, min(2, getattr(config, "type_vocab_size", 2))), mask.shape)
            ids = generator.integers(0, config.vocab_size, mask.shape)
            # By its padding id a family of words tells padding; others are told by the mask alone.
            tokens = np.where(ids == config.pad_token_id, 6, ids)
            yield np.where(mask, tokens, ids), types, mask


@pytest.fixture(params=CONFIGS, scope="module")
def encoder(request):
    paddle.seed(1)
    made = new_encoder(CONFIGS[request.param])
    generator = np.random.default_rng(2)
    for parameter in made.parameters():
        parameter.set_value(generator.normal(0, 0.3, parameter.shape).astype(np.float32))
    made.eval()
    return made


def expected(encoder, ids, types, mask):
    one_vector = isinstance(encoder.config, WordsConfig)
    given = types if reads_types(encoder.config) else None
    with paddle.no_grad():
        found = encoder(ids, given, attention_mask=mask, cls_only=one_vector)
        return found.pooled_output.numpy(), None if one_vector else found.sequence_output.numpy()


def assert_alike(ours, theirs, mask):
    """Differences are bounded; NaN is not."""
    assert np.abs(ours[0] - theirs[0]).max() <= BOUND
    if ours[1] is not None:
        assert np.abs(ours[1][mask] - theirs[1][mask]).max() <= BOUND


def session_of(encoder):
    o = OnnxOperations(arrays_of(encoder))
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if reads_types(encoder.config) else [])]
    given = {name: o.input(name, ["batch", "length"]) for name in names}
    inputs = Inputs(given["input_ids"], given.get("token_type_ids"), given["attention_mask"])
    graph = encoder_graph(o, encoder.config, inputs, "")
    o.output("pooled", graph.pooled, ["batch", "hidden"])
    if graph.tokens is not None:
        o.output("tokens", graph.tokens, ["batch", "length", "hidden"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = o.model("onion", "0").SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def test_an_onnx_file_gives_what_the_encoder_gives(encoder):
    session = session_of(encoder)
    names = [each.name for each in session.get_inputs()]
    for ids, types, mask in batches(encoder.config):
        given = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.astype(np.int64)}
        found = session.run(None, {name: given[name] for name in names})
        assert_alike(expected(encoder, ids, types, mask), [*found, None], mask)


def test_paddle_computes_what_the_encoder_gives(encoder):
    o = PaddleOperations(dict(encoder.named_parameters()), arrays_of(encoder), getattr(encoder, "lstm", None))
    for ids, types, mask in batches(encoder.config):
        inputs = Inputs(*(paddle.to_tensor(each) for each in (ids, types, mask.astype(np.int64))))
        with paddle.no_grad():
            graph = encoder_graph(o, encoder.config, inputs, "")
            found = graph.pooled.numpy(), None if graph.tokens is None else graph.tokens.numpy()
        assert_alike(expected(encoder, ids, types, mask), found, mask)


def test_all_operators_are_of_the_standard(encoder):
    o = OnnxOperations(arrays_of(encoder))
    inputs = Inputs(*(o.input(name, ["batch", "length"]) for name in ("ids", "types", "mask")))
    o.output("pooled", encoder_graph(o, encoder.config, inputs, "").pooled, ["batch", "hidden"])
    model = o.model("onion", "0")
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 17)]
    assert {node.domain for node in model.graph.node} == {""}


def test_an_unknown_family_is_refused():
    class Other:
        model_type = "other"

    with pytest.raises(WeightsError, match="other encoders have no graph"):
        encoder_graph(None, Other(), None)
