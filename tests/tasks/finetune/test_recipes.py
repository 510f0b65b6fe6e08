import numpy as np
import paddle
import pytest

from onion import (
    DataProvider,
    Forward,
    GradientMachine,
    Logger,
    NanGuard,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    Tester,
)
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification, Classifier
from onion.tasks.collector import Collector
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.texts import batch_of
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.recipes import evaluation_onion, prediction_onion, training_onion
from onion.tasks.networks.heads import softmax


@pytest.fixture(scope="module")
def task(films_folder):
    return Classification(max_length=16).fitted(films_folder / "dev.tsv")


@pytest.fixture(scope="module")
def examples(task, encoder_folder, films_folder):
    return cached_features(task, films_folder / "dev.tsv", Tokenizer.from_pretrained(encoder_folder))


@pytest.fixture(scope="module")
def measure(task):
    return lambda network, examples: evaluation_onion(task, network, examples, task.metric("unread"))


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


def test_prediction_gives_every_row_its_own_probabilities_in_the_order_of_the_file(task, network, examples, logits):
    collector = Collector(len(examples))
    prediction_onion(task, Runner(Forward(network)), examples, collector).run(passes=1)
    np.testing.assert_allclose(np.stack(collector.found), softmax(logits), atol=1e-5)


def test_evaluation_measures_what_the_logits_say(measure, network, examples, logits):
    state = measure(network, examples).run(passes=1)
    truth = [example["label"] for example in examples]
    assert state.metrics["accuracy"] == np.mean(logits.argmax(axis=1) == truth)
    assert state.metrics.keys() == {"accuracy", "f1", "f1_macro", "matthews"}


def test_evaluation_leaves_the_network_in_training_mode_if_it_was(measure, network, examples):
    network.train()
    measure(network, examples).run(passes=1)
    assert network.training
    assert network.dropout.training


def test_training_onion(task, measure, network, examples, tmp_path):
    """Its rings in their order; and the test stands inside the saver and the logger, so that they see its metrics."""
    test = measure(network, examples)
    runner = training_onion(
        task,
        network,
        fine_tuning_optimizer(network, 1e-3, 3),
        examples,
        test,
        tmp_path,
        best="accuracy",
        batch_size=32,
        seed=1,
        test_every=2,
    )
    rings = [Progress, Signals, Saver, Logger, Tester, DataProvider, ParameterUpdater, NanGuard, GradientMachine]
    assert [type(item) for item in runner.items] == rings
    seen = []

    class Look(RunnerItem):
        def on_batch(self, state):
            yield
            seen.append((state.step, dict(state.reported)))

    state = runner.insert_before(Saver, Look()).run(passes=1)
    assert state.step == 3
    assert seen == [
        (1, {}),
        (2, dict.fromkeys(["dev.accuracy", "dev.f1", "dev.f1_macro", "dev.matthews"], 2)),
        (3, seen[1][1]),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"metrics.jsonl", "step-00000002", "step-00000003"}


def test_a_test_onion_is_a_training_onion_with_rings_replaced(measure, network, examples):
    test = measure(network, examples)
    assert [type(item) for item in test.items][-1] is Forward
