"""The graph of each head over each family of encoders gives the logits of the network."""

from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.models.auto import new_encoder
from onion.models.pretrained_encoder import arrays_of
from onion.models.words.config import WordsConfig
from onion.tasks.batches import mask_of
from onion.tasks.export.exported_network import inputs_of
from onion.tasks.export.graph import graph_of_task
from onion.tasks.export.onnx_file import onnx_model
from onion.tasks.export.sessions import OnnxSession
from onion.tasks.networks.heads import SentenceHead, TokenHead
from onion.tasks.networks.masked_language_model import MaskedLanguageModel
from onion.tasks.task import MASKED_TOKENS, TEXT_VECTOR, TOKEN_VECTORS
from tests.models.graphs.test_encoders import BOUND, CONFIGS

pytest.importorskip("onnxruntime")

OUTPUTS = 5
HEADS = {
    TEXT_VECTOR: lambda encoder: SentenceHead(encoder, OUTPUTS),
    TOKEN_VECTORS: lambda encoder: TokenHead(encoder, OUTPUTS),
    MASKED_TOKENS: MaskedLanguageModel,
}


def suits(config, head):
    if isinstance(config, WordsConfig):  # which have one vector of a text
        return head == TEXT_VECTOR
    return head != MASKED_TOKENS or new_encoder(config).masked_lm


CASES = [(name, head) for name, config in CONFIGS.items() for head in HEADS if suits(config, head)]


def network_of(config, head):
    paddle.seed(1)
    network = HEADS[head](new_encoder(config))
    generator = np.random.default_rng(2)
    for parameter in network.parameters():
        parameter.set_value(generator.normal(0, 0.3, parameter.shape).astype(np.float32))
    network.eval()
    return network


def batches(config):
    generator = np.random.default_rng(3)
    for size, longest in ((1, 1), (1, 7), (4, 13), (2, min(config.max_length, 24))):
        lengths = generator.integers(1, longest + 1, size).tolist()
        lengths[0] = longest
        kinds = max(1, min(2, getattr(config, "type_vocab_size", 2)))
        batch = {
            "input_ids": generator.integers(6, config.vocab_size, (size, longest)),
            "token_type_ids": generator.integers(0, kinds, (size, longest)),
            "lengths": lengths,
        }
        tokens = np.flatnonzero(mask_of(batch))
        yield {**batch, "masked_positions": sorted({int(tokens[0]), int(tokens[-1])})}


@pytest.mark.parametrize(("name", "head"), CASES)
def test_logits_are_those_of_the_network(name, head):
    config = CONFIGS[name]
    network = network_of(config, head)
    task = SimpleNamespace(name="a task", head_over=head)
    session = OnnxSession(onnx_model(graph_of_task(task, config), arrays_of(network)).SerializeToString(), threads=1)
    for batch in batches(config):
        with paddle.no_grad():
            ours = network(batch).numpy()
        theirs = session(inputs_of(batch))
        if head == TOKEN_VECTORS:
            ours, theirs = (each[mask_of(batch)] for each in (ours, theirs))
        assert np.abs(ours - theirs).max() <= BOUND * max(1, np.abs(ours).max())


def test_an_unknown_head_is_refused():
    task = SimpleNamespace(name="mine", head_over="something else")
    graph = graph_of_task(task, CONFIGS["bert"])
    with pytest.raises(DataError, match="the task mine cannot be exported"):
        onnx_model(graph, {})
