import numpy as np
import paddle
import pytest

from onion import (
    DataProvider,
    Forward,
    GradientMachine,
    Logger,
    ParameterUpdater,
    Progress,
    RunnerItem,
    Saver,
    Signals,
    Tester,
)
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classifier
from onion.tasks.collector import Collector
from onion.tasks.labels import Labels
from onion.tasks.metrics import ClassificationMetric
from onion.tasks.onions import evaluation_onion, prediction_onion, training_onion
from onion.tasks.optimization import fine_tuning_optimizer
from onion.tasks.texts import batch_of, encode, label_names, read_table

LABELS = Labels(["bad", "good"])


@pytest.fixture(scope="module")
def examples(encoder_folder, films_folder):
    table = read_table(films_folder / "dev.tsv", labelled=True)
    assert Labels.of(label_names(table)) == LABELS
    return encode(table, Tokenizer.from_pretrained(encoder_folder), 16, LABELS)


@pytest.fixture(scope="module")
def network(encoder_folder):
    paddle.seed(3)
    return Classifier(Encoder.from_pretrained(encoder_folder), 2)


@pytest.fixture(scope="module")
def logits(network, examples):
    """Of every row, computed alone."""
    network.eval()
    with paddle.no_grad():
        return np.concatenate([network(batch_of([example])).numpy() for example in examples])


def test_prediction_gives_every_row_its_own_logits_in_the_order_of_the_file(network, examples, logits):
    collector = Collector(len(examples))
    prediction_onion(network, examples, collector).run(passes=1)
    np.testing.assert_allclose(np.stack(collector.outputs), logits, atol=1e-5)


def test_evaluation_measures_what_the_logits_say(network, examples, logits):
    state = evaluation_onion(network, examples, ClassificationMetric(LABELS)).run(passes=1)
    truth = [example.label for example in examples]
    assert state.metrics["accuracy"] == np.mean(logits.argmax(axis=1) == truth)
    assert state.metrics.keys() == {"accuracy", "f1", "f1_macro"}


def test_evaluation_leaves_the_network_in_training_mode_if_it_was(network, examples):
    network.train()
    evaluation_onion(network, examples, ClassificationMetric(LABELS)).run(passes=1)
    assert network.training
    assert network.dropout.training


def test_training_onion(network, examples, tmp_path):
    """Its rings in their order; and the test stands inside the saver and the logger, so that they see its metrics."""
    test = evaluation_onion(network, examples, ClassificationMetric(LABELS))
    runner = training_onion(
        network,
        fine_tuning_optimizer(network, 1e-3, 3),
        examples,
        test,
        tmp_path,
        batch_size=32,
        seed=1,
        test_every=2,
    )
    rings = [Progress, Signals, Saver, Logger, Tester, DataProvider, ParameterUpdater, GradientMachine]
    assert [type(item) for item in runner.items] == rings
    seen = []

    class Look(RunnerItem):
        def on_batch(self, state):
            yield
            seen.append((state.step, dict(state.reported)))

    state = runner.insert_before(Saver, Look()).run(passes=1)
    assert state.step == 3
    assert seen == [(1, {}), (2, dict.fromkeys(["dev.accuracy", "dev.f1", "dev.f1_macro"], 2)), (3, seen[1][1])]
    assert {path.name for path in tmp_path.iterdir()} == {"metrics.jsonl", "step-00000002", "step-00000003"}


def test_a_prediction_onion_is_a_training_onion_with_rings_replaced(network, examples, tmp_path):
    test = evaluation_onion(network, examples, ClassificationMetric(LABELS))
    assert [type(item) for item in test.items][-1] is Forward
