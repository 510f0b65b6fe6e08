import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.networks.reader import Reader
from onion.tasks.question_answering.positions import UNKNOWN
from onion.tasks.question_answering.task import QuestionAnswering
from tests.tasks.arrays import features_of, tensors
from tests.tasks.squad_files import TINY, squad

CONTEXT = "the film was warm and it was a great plot ."
TASK = QuestionAnswering(**TINY, with_negative=True, language="en")


@pytest.fixture
def examples(tmp_path, tokenizer):
    data = squad(tmp_path / "a.json", (CONTEXT, "film was", [("warm", 13)]), ("a plot", "film", []))
    return features_of(TASK, data, tokenizer)[:]


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    network = Reader(Encoder.from_pretrained(encoder_folder), 5, 3)
    network.eval()
    return network


def test_cost_is_the_mean_of_both_cross_entropies_over_the_tokens_of_a_window(network, examples):
    batch = tensors(TASK.collate(examples, pad_id=0))
    with paddle.no_grad():
        logits = network(batch)
        loss = float(network.loss(logits, batch))
    each = []
    for row, example in zip(logits.numpy(), examples, strict=True):
        scores = row[: len(example["ids"])].astype(np.float64)
        logs = scores - np.log(np.exp(scores).sum(axis=0))
        each += [-logs[example["start"], 0], -logs[example["end"], 1]]
    assert loss == pytest.approx(np.mean(each), rel=1e-5)


def test_a_window_that_nothing_is_known_of_does_not_count(network, examples):
    batch = tensors(TASK.collate(examples, pad_id=0))
    unknown = [{**examples[1], "start": UNKNOWN, "end": UNKNOWN}]
    more = tensors(TASK.collate([*examples, *unknown], pad_id=0))
    alone = tensors(TASK.collate(unknown, pad_id=0))
    with paddle.no_grad():
        losses = [float(network.loss(network(each), each)) for each in (batch, more, alone)]
    assert losses == pytest.approx([losses[0], losses[0], 0.0], rel=1e-5)


def test_decoded_spans_are_of_the_context(network, examples):
    batch = TASK.collate(examples, pad_id=0)
    logits = np.zeros((4, 12, 2), np.float32)
    logits[0, 6, 0] = logits[0, 7, 1] = 5  # tokens 2 and 3 of the context: was warm
    logits[0, 0] = logits[0, 3] = 9  # [CLS] and [SEP] are no answers
    logits[0, 0, 1] = 7
    spans = network.decode(paddle.to_tensor(logits), batch)[0]
    begin, end = spans.places[0]
    assert CONTEXT[begin:end] == "was warm"
    assert (spans.logits[0].tolist(), spans.null.tolist(), len(spans.places)) == ([5, 5], [9, 7], 5)


def test_every_parameter_but_the_poolers_gets_a_gradient(network, examples):
    batch = tensors(TASK.collate(examples, pad_id=0))
    network.loss(network(batch), batch).backward()
    without = {path.split(".")[1] for path, parameter in network.named_parameters() if parameter.grad is None}
    assert without <= {"pooler"}
    assert network.dropout.p == 0.0
