import numpy as np
import paddle
import pytest

from onion import (
    DataProvider,
    Forward,
    GradientMachine,
    Logger,
    NanGuard,
    Observer,
    ParameterUpdater,
    Progress,
    Runner,
    Saver,
    Signals,
    Tester,
)
from onion.errors import DataError
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.classification import Classification
from onion.tasks.collector import Collector
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.recipes import best_figure, evaluation_onion, prediction_onion, training_data, training_onion
from onion.tasks.finetune.settings import TrainingSettings
from onion.tasks.matching import Matching
from onion.tasks.metrics.question_answering import ReadingMetric, alike
from onion.tasks.networks.classifier import Classifier
from onion.tasks.probabilities import softmax
from onion.tasks.question_answering.questions import Answer, Question
from onion.tasks.regression import Regression
from tests.tasks.helpers import write_tsv
from tests.tasks.metrics.of_tasks import METRICS


@pytest.fixture(scope="module")
def task(films_folder):
    return Classification(max_length=16).fitted(films_folder / "dev.tsv")


@pytest.fixture(scope="module")
def examples(task, tokenizer, films_folder):
    return cached_features(task, films_folder / "dev.tsv", tokenizer)


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


def test_training_onion(task, measure, network, examples, tmp_path):
    """Its rings in their order; and the test is inside the saver and the logger, so that they see its metrics."""
    test = measure(network, examples)
    runner = training_onion(
        network,
        fine_tuning_optimizer(network, 1e-3, 3),
        training_data(task, examples, batch_size=32, seed=1),
        [Tester(test, every=2, name="dev")],
        tmp_path,
        TrainingSettings(),
        test_every=2,
        monitor="dev.accuracy",
    )
    rings = [Progress, Signals, Saver, Logger, Tester, DataProvider, ParameterUpdater, NanGuard, GradientMachine]
    assert [type(item) for item in runner.items] == rings
    seen = []

    note = Observer(on_batch_end=lambda state: seen.append((state.step, dict(state.reported))))
    state = runner.insert_before(Saver, note).run(passes=1)
    assert state.step == 3
    assert seen == [
        (1, {}),
        (2, dict.fromkeys(["dev.accuracy", "dev.f1", "dev.f1_macro", "dev.matthews"], 2)),
        (3, seen[1][1]),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"metrics.jsonl", "step-00000002", "step-00000003"}


class Texts(Classification):
    """A kind whose rows are not one example each."""

    def count(self, rows, tokenizer):
        return 0


def test_only_tasks_that_count_rows_skip_them():
    assert Classification().makes_one_each
    assert not Texts().makes_one_each


def test_balanced_classes_are_drawn_equally_often(tokenizer, tmp_path):
    rows = [("a good film", "good")] * 20 + [("a bad film", "bad")] * 180
    path = write_tsv(tmp_path / "rare.tsv", rows)
    task = Classification(max_length=16).fitted(path)
    data = training_data(task, cached_features(task, path, tokenizer), 20, seed=1, class_balanced=True)
    counts = [np.bincount(batch["labels"]) for pass_id in range(5) for batch in data.loader.batches(pass_id)]
    assert len(counts) == 50
    assert abs(np.sum(counts, axis=0)[0] - 500) < 5 * np.sqrt(1000) / 2  # five standard deviations


@pytest.mark.parametrize("kind", [Regression(), Matching(learning="pairwise")], ids=type)
def test_a_task_without_classes_has_none_to_balance(kind, examples):
    with pytest.raises(
        DataError, match=rf"class_balanced: the examples of this task \({kind.name}\) are not of one class"
    ):
        training_data(kind, examples, 20, seed=1, class_balanced=True)


def test_a_stream_comes_out_of_its_buffer_in_the_order_of_the_seed(task, tokenizer, films_folder):
    stream = FeatureStream(task, films_folder / "dev.tsv", tokenizer)

    def places(seed, buffer=30):
        loader = training_data(task, stream, 32, seed, shuffle_buffer=buffer).loader
        return [place for batch in loader.batches(0) for place in batch["places"]]

    assert places(1) == places(1) != places(2)
    assert sorted(places(1)) == places(1, None) == list(range(70))


def reading(*answers, with_negative=False):
    questions = [Question("here", "id", "who?", "he is", (Answer(text, 0),) if text else ()) for text in answers]
    return ReadingMetric(questions, lambda question, spans: None, alike, with_negative)


@pytest.mark.parametrize(
    ("name", "figure", "mode"),
    [
        ("classification", "f1_macro", "max"),
        ("correlation", "spearman", "max"),
        ("correlation", "mean_squared_error", "min"),
        ("ranking", "mrr", "max"),
        ("pairs", "accuracy", "max"),
        ("multilabel", "f1_micro", "max"),
        ("chunks", "f1.x", "max"),
        ("perplexity", "perplexity", "min"),
    ],
)
def test_a_figure_is_found_by_either_name(name, figure, mode):
    metric = METRICS[name].make()
    assert best_figure(metric, figure) == best_figure(metric, f"dev.{figure}") == (figure, mode)


@pytest.mark.parametrize("name", METRICS)
def test_an_unknown_figure_is_refused_with_those_that_there_are(name):
    known = ", ".join(METRICS[name].make().result())
    with pytest.raises(DataError, match=f"^monitor: the test has no metric 'acuracy'; it has {known}$"):
        best_figure(METRICS[name].make(), "acuracy")


def test_reading_has_the_figures_that_its_questions_will_have():
    assert best_figure(reading("he"), "f1") == ("f1", "max")
    for wanted in ("has_answer_f1", "no_answer_f1", "best_f1"):
        with pytest.raises(DataError, match=r"it has exact_match, f1$"):
            best_figure(reading("he"), wanted)
    assert best_figure(reading("he", None), "has_answer_f1") == ("has_answer_f1", "max")
    assert best_figure(reading("he", None), "no_answer_exact_match") == ("no_answer_exact_match", "max")
    assert best_figure(reading("he", None, with_negative=True), "best_f1") == ("best_f1", "max")
    with pytest.raises(DataError, match="no metric 'best_f1_threshold'"):
        best_figure(reading("he", None, with_negative=True), "best_f1_threshold")


class Own:
    """A metric of the user's that cannot tell anything of nothing."""

    less_is_better = frozenset({"distance"})

    def result(self):
        raise ZeroDivisionError


def test_of_a_metric_that_cannot_tell_yet_every_figure_is_taken():
    assert best_figure(Own(), "dev.distance") == ("distance", "min")
    assert best_figure(Own(), "likeness") == ("likeness", "max")
