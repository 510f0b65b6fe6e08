from itertools import pairwise, product

import numpy as np
import paddle
import pytest
from paddle import text
from scipy.special import logsumexp

from onion.tasks.token_classification.crf import LinearChain

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


def test_probabilities_of_all_paths_add_up_to_one(crf, scores):
    paths = np.array(list(product(range(TAGS), repeat=4)))
    repeated = np.repeat(scores[:1, :4], len(paths), axis=0)
    found = crf(paddle.to_tensor(repeated), paddle.to_tensor(paths), [4] * len(paths))
    assert np.exp(found.numpy()).sum() == pytest.approx(1, abs=1e-5)


def test_best_paths_by_going_through_all_paths(crf, scores):
    found = crf.best_paths(scores, LENGTHS)
    assert [len(path) for path in found] == LENGTHS
    for row, length in enumerate(LENGTHS):
        paths, totals = every_path(crf, scores[row], length)
        assert tuple(found[row]) == paths[totals.argmax()]


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


def test_one_step_and_no_learning_is_softmax(scores, chance):
    tags = chance.integers(0, TAGS, (BATCH, 1))
    found = LinearChain(TAGS)(paddle.to_tensor(scores[:, :1]), paddle.to_tensor(tags), [1] * BATCH).numpy()
    wanted = scores[np.arange(BATCH), 0, tags[:, 0]] - logsumexp(scores[:, 0], axis=1)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


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
