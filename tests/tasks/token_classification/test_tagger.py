import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.token_classification.tagger import CrfTagger, Tagger, grid
from onion.tasks.token_classification.task import DECODERS, TokenClassification
from tests.tasks.helpers import write_tsv
from tests.tasks.tagged import LABELS, examples_of, joined, tagged


@pytest.fixture
def words_task():
    return TokenClassification(max_length=8, labels=LABELS, characters=False)


def test_a_batch_by_hand(tmp_path, words_task, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [joined(["film."], ["O"]), joined("a" * 9, ["B-bad"] + ["O"] * 8)])
    _, examples = examples_of(words_task, tokenizer, path)
    batch = words_task.collate(examples[:], pad_id=0)
    assert batch["input_ids"].shape == (3, 8)
    # Of 4, 8 and 7 tokens; the first token of each row is [CLS].
    assert batch["firsts"].tolist() == [1, *range(5, 11), *range(13, 18)]
    assert (batch["words"], batch["own"]) == ([1, 6, 5], [(0, 1), (0, 5), (1, 5)])
    assert (batch["rows"], batch["begins"]) == ([0, 1, 1], [0, 0, 5])
    assert batch["tags"].tolist() == [0, 1, 0, 0, 0, 0, IGNORED, IGNORED, 0, 0, 0, 0]
    assert batch["tags"].dtype == batch["firsts"].dtype == np.int64


def test_grid():
    assert grid(np.array([3, 0]), [2, 4]).tolist() == [[3, 4, 4, 4], [0, 1, 2, 3]]


@pytest.fixture(params=DECODERS)
def network(request, encoder_folder):
    paddle.seed(3)
    network = DECODERS[request.param](Encoder.from_pretrained(encoder_folder), len(LABELS))
    network.eval()
    if request.param == "crf":
        network.crf.transitions.set_value(np.random.default_rng(4).normal(size=(5, 5)).astype(np.float32))
    return network


@pytest.fixture
def examples(tmp_path, words_task, tokenizer):
    rows = [*tagged(4, seed=5), *tagged(2, seed=6, longest=30)]
    return examples_of(words_task, tokenizer, write_tsv(tmp_path / "rows.tsv", rows))[1]


def with_tensors(batch):
    return {name: paddle.to_tensor(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}


def test_logits_are_those_of_the_first_tokens(network, words_task, examples):
    """By the encoder's padded output, each example alone."""
    batch = words_task.collate(examples[:], pad_id=0)
    logits = network(with_tensors(batch)).numpy()
    assert logits.shape == (sum(batch["words"]), len(LABELS))
    wanted = []
    for example in examples:
        ids, types = (paddle.to_tensor(example[name][None].astype(np.int64)) for name in ("ids", "types"))
        vectors = network.encoder(ids, types).sequence_output[0].numpy()[example["firsts"]]
        wanted.append(vectors @ network.classifier.weight.numpy() + network.classifier.bias.numpy())
    np.testing.assert_allclose(logits, np.concatenate(wanted), atol=1e-5)


def test_cost_and_tags_do_not_depend_on_the_other_examples_of_the_batch(network, words_task, examples):
    with paddle.no_grad():
        batch = with_tensors(words_task.collate(examples[:], pad_id=0))
        logits = network(batch)
        together, whole = network.decode(logits, batch), float(network.loss(logits, batch))
        losses, words = [], []
        for example, tags in zip(examples, together, strict=True):
            batch = with_tensors(words_task.collate([example], pad_id=0))
            logits = network(batch)
            assert network.decode(logits, batch)[0].tolist() == tags.tolist()
            losses.append(float(network.loss(logits, batch)))
            words.append(len(tags))
    assert whole == pytest.approx(np.average(losses, weights=words), rel=1e-4)
    assert sum(words) == sum((example["tags"] != IGNORED).sum() for example in examples)


def test_cost_of_words_for_themselves_by_its_definition(encoder_folder):
    network = Tagger(Encoder.from_pretrained(encoder_folder), 3)
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -2.0], [0.1, 0.2, 0.3]])
    batch = {"tags": paddle.to_tensor([2, IGNORED, 0]), "own": [(0, 1), (1, 2)]}
    logs = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    found = network.loss(paddle.to_tensor(values, dtype="float32"), batch)
    assert float(found) == pytest.approx(-(logs[0, 2] + logs[2, 0]) / 2, rel=1e-5)


def test_a_chain_is_followed_across_the_border_and_learned_up_to_it(encoder_folder):
    """Of four words the last two belong to the window; a text cannot begin with tag 1, but they may have it."""
    network = CrfTagger(Encoder.from_pretrained(encoder_folder), 2)
    network.crf.start.set_value(np.array([0.0, -100.0], np.float32))
    values = np.array([[5, 0], [0, 5], [0, 5], [0, 5]], np.float32)
    tags = paddle.to_tensor([IGNORED, IGNORED, 0, 1])
    batch = {"words": [4], "own": [(2, 4)], "tags": tags}
    (found,) = network.decode(paddle.to_tensor(values), batch)
    assert found.tolist() == [1, 1]
    # Of the two words alone; each is certain of tag 1, which the first cannot have.
    loss = float(network.loss(paddle.to_tensor(values), batch))
    assert loss == pytest.approx(np.log(1 + np.exp(-5)) / 2, rel=1e-3)


def test_every_parameter_but_the_poolers_gets_a_gradient(network, words_task, examples):
    batch = with_tensors(words_task.collate(examples[:], pad_id=0))
    network.loss(network(batch), batch).backward()
    without = {path for path, parameter in network.named_parameters() if parameter.grad is None}
    assert without == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}
