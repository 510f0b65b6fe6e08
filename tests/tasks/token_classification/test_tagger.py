from itertools import pairwise, product

import numpy as np
import paddle
import pytest
from paddle import text
from scipy.special import logsumexp

from onion.models.encoder import Encoder
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.token_classification.tagger import TAGGERS, CrfTagger, LinearChain, Tagger
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.arrays import tensors
from tests.tasks.helpers import write_tsv
from tests.tasks.tagged import LABELS, examples_of, tagged


@pytest.fixture
def words_task():
    return TokenClassification(max_length=8, labels=LABELS, characters=False)


@pytest.fixture(params=TAGGERS)
def network(request, encoder_folder):
    paddle.seed(3)
    network = TAGGERS[request.param](Encoder.from_pretrained(encoder_folder), len(LABELS))
    network.eval()
    if request.param == "crf":
        network.crf.transitions.set_value(np.random.default_rng(4).normal(size=(5, 5)).astype(np.float32))
    return network


@pytest.fixture
def examples(tmp_path, words_task, tokenizer):
    rows = [*tagged(4, seed=5), *tagged(2, seed=6, longest=30)]
    return examples_of(words_task, tokenizer, write_tsv(tmp_path / "rows.tsv", rows))[1]


def test_logits_are_those_of_the_first_tokens(network, words_task, examples):
    """By the encoder's padded output, each example alone."""
    batch = words_task.collate(examples[:], pad_id=0)
    logits = network(tensors(batch)).numpy()
    assert logits.shape == (sum(batch["words"]), len(LABELS))
    wanted = []
    for example in examples:
        ids, types = (paddle.to_tensor(example[name][None].astype(np.int64)) for name in ("ids", "types"))
        vectors = network.encoder(ids, types).sequence_output[0].numpy()[example["firsts"]]
        wanted.append(vectors @ network.classifier.weight.numpy() + network.classifier.bias.numpy())
    np.testing.assert_allclose(logits, np.concatenate(wanted), atol=1e-5)


def test_cost_and_tags_do_not_depend_on_the_other_examples_of_the_batch(network, words_task, examples):
    with paddle.no_grad():
        batch = tensors(words_task.collate(examples[:], pad_id=0))
        logits = network(batch)
        together, whole = network.decode(logits, batch), float(network.loss(logits, batch))
        losses, words = [], []
        for example, tags in zip(examples, together, strict=True):
            batch = tensors(words_task.collate([example], pad_id=0))
            logits = network(batch)
            assert network.decode(logits, batch)[0].numbers.tolist() == tags.numbers.tolist()
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
    assert found.numbers.tolist() == [1, 1]
    assert found.probabilities == pytest.approx([1 / (1 + np.exp(-5))] * 2, abs=1e-6)
    # Of the two words alone; each is certain of tag 1, which the first cannot have.
    loss = float(network.loss(paddle.to_tensor(values), batch))
    assert loss == pytest.approx(np.log(1 + np.exp(-5)) / 2, rel=1e-3)


def test_every_parameter_but_the_poolers_gets_a_gradient(network, words_task, examples):
    batch = tensors(words_task.collate(examples[:], pad_id=0))
    network.loss(network(batch), batch).backward()
    without = {path for path, parameter in network.named_parameters() if parameter.grad is None}
    assert without == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}


BATCH, STEPS, TAGS = 4, 5, 3
LENGTHS = [5, 1, 3, 2]


@pytest.fixture
def chance():
    return np.random.default_rng(7)


@pytest.fixture
def crf(chance):
    crf = LinearChain(TAGS)
    for parameter in crf.parameters():
        parameter.set_value(chance.normal(size=parameter.shape).astype(np.float32))
    return crf


@pytest.fixture
def scores(chance):
    return chance.normal(size=(BATCH, STEPS, TAGS)).astype(np.float32)


def every_path(crf, scores, length):
    """All paths over the first words of one text, and what each scores by the definition."""
    steps, start, end = crf.transitions.numpy(), crf.start.numpy(), crf.end.numpy()
    paths = list(product(range(TAGS), repeat=length))
    totals = [
        start[path[0]]
        + sum(scores[place][tag] for place, tag in enumerate(path))
        + sum(steps[one][other] for one, other in pairwise(path))
        + end[path[-1]]
        for path in paths
    ]
    return paths, np.array(totals, np.float64)


def test_likelihoods_by_going_through_all_paths(crf, scores, chance):
    tags = chance.integers(0, TAGS, (BATCH, STEPS))
    found = crf(paddle.to_tensor(scores), paddle.to_tensor(tags), LENGTHS)
    assert found.shape == [BATCH]
    for row, length in enumerate(LENGTHS):
        paths, totals = every_path(crf, scores[row], length)
        own = totals[paths.index(tuple(tags[row, :length]))]
        assert float(found[row]) == pytest.approx(own - logsumexp(totals), abs=1e-5)


def test_best_paths_by_going_through_all_paths(crf, scores):
    found = crf.best_paths(scores, LENGTHS)
    assert [len(path) for path in found] == LENGTHS
    for row, length in enumerate(LENGTHS):
        paths, totals = every_path(crf, scores[row], length)
        assert tuple(found[row]) == paths[totals.argmax()]


def test_marginals_by_going_through_all_paths(crf, scores):
    crf.transitions.set_value(10 * crf.transitions.numpy())  # some transitions are hardly possible
    found = crf.marginals(scores, LENGTHS)
    for row, length in enumerate(LENGTHS):
        paths, totals = every_path(crf, scores[row], length)
        wanted = np.zeros((length, TAGS))
        for path, chance in zip(paths, np.exp(totals - logsumexp(totals)), strict=True):
            wanted[np.arange(length), path] += chance
        np.testing.assert_allclose(found[row, :length], wanted, atol=1e-6)


def test_best_paths_are_those_of_paddle(chance):
    kinds, lengths = 9, chance.integers(1, 30, 16)
    crf = LinearChain(kinds)
    crf.transitions.set_value(chance.normal(size=(kinds, kinds)).astype(np.float32))
    scores = chance.normal(size=(16, 29, kinds)).astype(np.float32)
    _, wanted = text.viterbi_decode(
        paddle.to_tensor(scores), crf.transitions, paddle.to_tensor(lengths), include_bos_eos_tag=False
    )
    for path, row, length in zip(crf.best_paths(scores, lengths), wanted.numpy(), lengths, strict=True):
        assert path.tolist() == row[:length].tolist()


def test_gradients_are_what_moving_a_number_does(crf, scores, chance):
    given = paddle.to_tensor(scores, stop_gradient=False)
    tags = paddle.to_tensor(chance.integers(0, TAGS, (BATCH, STEPS)))
    crf(given, tags, LENGTHS).sum().backward()
    for tensor in (given, *crf.parameters()):
        start, gradient = tensor.numpy().copy(), tensor.grad.numpy()
        for place in np.ndindex(start.shape):
            sides = []
            for move in (1e-2, -1e-2):
                moved = start.copy()
                moved[place] += move
                tensor.set_value(moved)
                sides.append(float(crf(given, tags, LENGTHS).sum()))
            tensor.set_value(start)
            assert (sides[0] - sides[1]) / 2e-2 == pytest.approx(gradient[place], abs=3e-3)


def test_padding_has_no_part_in_anything(crf, scores, chance):
    tags = chance.integers(0, TAGS, (BATCH, STEPS))
    others, other_tags = scores.copy(), tags.copy()
    for row, length in enumerate(LENGTHS):
        others[row, length:] = 50
        other_tags[row, length:] = TAGS - 1 - tags[row, length:]
    one = crf(paddle.to_tensor(scores), paddle.to_tensor(tags), LENGTHS)
    other = crf(paddle.to_tensor(others), paddle.to_tensor(other_tags), LENGTHS)
    np.testing.assert_array_equal(one.numpy(), other.numpy())
    for path, other_path in zip(crf.best_paths(scores, LENGTHS), crf.best_paths(others, LENGTHS), strict=True):
        assert path.tolist() == other_path.tolist()


def test_large_scores_stay_finite(crf):
    scores = np.full((1, 3, TAGS), -1e4, np.float32)
    scores[:, :, 1] = 1e4
    found = crf(paddle.to_tensor(scores), paddle.to_tensor([[1, 1, 1]]), [3])
    assert float(found[0]) == pytest.approx(0, abs=1e-2)
    assert crf.best_paths(scores, [3])[0].tolist() == [1, 1, 1]


def test_the_rate_is_heeded_by_the_optimizer():
    crf, slow = LinearChain(2, rate=20.0), LinearChain(2)
    optimizer = paddle.optimizer.AdamW(0.001, parameters=[*crf.parameters(), *slow.parameters()], weight_decay=0.0)
    tags = paddle.to_tensor([[0, 1]])
    for each in (crf, slow):
        (-each(paddle.zeros([1, 2, 2]), tags, [2]).sum()).backward()
    optimizer.step()
    np.testing.assert_allclose(crf.transitions.numpy(), 20 * slow.transitions.numpy(), rtol=1e-3)
    assert abs(slow.transitions.numpy()).max() == pytest.approx(0.001, rel=1e-3)
