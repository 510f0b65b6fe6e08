import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from onion.tasks.metrics.ranking import PairMetric, RankingMetric, decisions, order, ranking

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=20
)


def figures_of(figures, rows):
    scores, relevant, questions = (np.array(side) for side in zip(*rows, strict=True))
    return figures(scores.astype(np.float64), relevant > 0, questions)


def test_equal_scores_are_put_in_the_worst_order():
    # the relevant row is the last of three -> 1/3, wherever it stands in the file
    for place in range(3):
        rows = [(0.5, int(row == place), 0) for row in range(3)]
        assert figures_of(ranking, rows) == pytest.approx({"mrr": 1 / 3, "map": 1 / 3})
        assert figures_of(order, rows) == {"accuracy": 0.0}


def textbook(rows):
    """Mean reciprocal rank and mean average precision, a row at a time; the worst order for equal scores."""
    first, average = [], []
    for question in {row[2] for row in rows}:
        ranked = [label for _, label in sorted((-score, label) for score, label, mine in rows if mine == question)]
        first.append(1 / (ranked.index(1) + 1) if 1 in ranked else 0)
        shares = [sum(ranked[:rank]) / rank for rank in range(1, len(ranked) + 1) if ranked[rank - 1]]
        average.append(sum(shares) / len(shares) if shares else 0)
    return {"mrr": sum(first) / len(first), "map": sum(average) / len(average)}


@settings(max_examples=300)
@given(ROWS)
def test_ranking_against_the_textbook(rows):
    assert figures_of(ranking, rows) == pytest.approx(textbook(rows))


@settings(max_examples=200)
@given(ROWS)
def test_order_against_all_pairs(rows):
    pairs = [(a > b) for a, fits, mine in rows if fits for b, other, its in rows if not other and mine == its]
    assert figures_of(order, rows)["accuracy"] == pytest.approx(sum(pairs) / max(len(pairs), 1))


@settings(max_examples=100)
@given(ROWS)
def test_decisions_and_order_against_scikit_learn(rows):
    true, said = [row[1] for row in rows], [int(row[0] > 0.5) for row in rows]
    assert figures_of(decisions, rows) == pytest.approx(
        {"accuracy": accuracy_score(true, said), "f1": f1_score(true, said, zero_division=0)}
    )
    apart = [(place / len(rows), label, 0) for place, (_, label, _) in enumerate(rows)]
    if len(set(true)) == 2:
        scores = [row[0] for row in apart]
        assert figures_of(order, apart)["accuracy"] == pytest.approx(roc_auc_score(true, scores))


@settings(max_examples=50)
@given(ROWS, st.data())
def test_batches_may_come_in_any_order_and_a_pass_be_resumed(rows, data):
    mixed = data.draw(st.permutations(range(len(rows))))
    metric = RankingMetric([decisions, ranking], [question for _, _, question in rows])
    for places in np.array_split(mixed, data.draw(st.integers(1, len(rows)))):
        other = RankingMetric([decisions, ranking], metric.questions)
        other.load_state_dict(metric.state_dict())
        batch = {"labels": np.array([rows[place][1] for place in places]), "places": list(places)}
        other.update([rows[place][0] for place in places], batch)
        metric = other
    assert metric.result() == pytest.approx({**figures_of(decisions, rows), **textbook(rows)})


def test_pairs_by_hand():
    metric = PairMetric()
    metric.update([np.array([0.6, 0.4]), np.array([0.5, 0.5])], {})  # equal scores are not in the right order
    metric.update([np.array([0.2, 0.3]), np.array([0.9, 0.1])], {})
    assert metric.result() == {"accuracy": 2 / 4}
