"""MultiHead: one encoder under the networks of several tasks."""

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataError,
    DataProvider,
    Evaluator,
    Forward,
    Freeze,
    GradientMachine,
    ParameterUpdater,
    Runner,
    Saver,
    StopGradient,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.checkpointing import checkpoint
from onion.checkpointing.run_state import best_checkpoint
from onion.items.gradient_machine import load_network
from onion.models.encoder import Encoder
from onion.tasks.classification import Classifier
from onion.tasks.collector import Decoder
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.regression import Regressor
from onion.testing import Batches
from tests.tasks.helpers import HIDDEN, VOCAB


@pytest.fixture
def encoder(encoder_folder):
    paddle.seed(2)
    return Encoder.from_pretrained(encoder_folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def batch_of(task, seed=0, rows=3, columns=6):
    random = np.random.default_rng(seed)
    labels = random.random(rows).astype(np.float32) if task == "score" else random.integers(0, 2, rows)
    return {
        "input_ids": random.integers(5, len(VOCAB), (rows, columns)),
        "token_type_ids": np.zeros((rows, columns), np.int64),
        "lengths": [columns] * rows,
        "places": list(range(rows)),
        "labels": labels,
        "task": task,
    }


def tensors(batch):
    return {**batch, "labels": paddle.to_tensor(batch["labels"])}


def values(layer):
    return {name: tensor.numpy().tobytes() for name, tensor in layer.state_dict().items()}


def heads(encoder):
    return {"kind": Classifier(encoder, 2, dropout=0.0), "score": Regressor(encoder, dropout=0.0)}


# -- to the network of its task ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["kind", "score"])
def test_outputs_loss_and_decoded_are_those_of_the_tasks_network(encoder, task):
    networks = heads(encoder)
    joint = MultiHead(encoder, networks)
    batch = tensors(batch_of(task))
    outputs, expected = joint(batch), networks[task](batch)
    assert np.array_equal(outputs.numpy(), expected.numpy())
    assert float(joint.loss(outputs, batch)) == float(networks[task].loss(expected, batch))
    assert np.array_equal(joint.decode(outputs, batch), networks[task].decode(expected, batch))
    assert joint.tasks == ("kind", "score")


@pytest.mark.parametrize("task", ["other", None])
def test_a_batch_of_no_known_task_is_told(encoder, task):
    with pytest.raises(DataError, match=f"the batch is of the task {task!r}; the heads are for kind, score"):
        MultiHead(encoder, heads(encoder))({"task": task} if task else {})


def test_costs_are_weighted_by_task(encoder):
    joint = MultiHead(encoder, heads(encoder), weights={"score": 0.25})
    for task, weight in (("kind", 1.0), ("score", 0.25)):
        batch = tensors(batch_of(task))
        outputs = joint(batch)
        assert float(joint.loss(outputs, batch)) == weight * float(joint.networks[task].loss(outputs, batch))


def test_a_shared_head_is_one_network_with_two_names(encoder):
    head = Classifier(encoder, 2)
    joint = MultiHead(encoder, {"one": head, "two": head, "other": Classifier(encoder, 2)})
    assert joint.networks["one"] is joint.networks["two"]
    assert len(joint.parameters()) == len(encoder.parameters()) + 2 * 2
    saved = GradientMachine(joint).state_dict()
    assert "networks.one.classifier.weight" in saved
    assert not [name for name in saved if name.startswith("networks.two.")]


# -- ids of tasks ------------------------------------------------------------------------------------------------------


def ernie():
    from onion.models.config import EncoderConfig

    config = EncoderConfig(
        vocab_size=len(VOCAB),
        hidden_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=HIDDEN,
        max_position_embeddings=16,
        type_vocab_size=2,
        task_type_vocab_size=3,
        use_task_id=True,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    paddle.seed(1)
    return Encoder(config)


def test_the_encoder_is_told_the_id_of_the_task():
    encoder = ernie()
    networks = {name: Classifier(encoder, 2, dropout=0.0) for name in ("first", "second", "own")}
    joint = MultiHead(encoder, networks, task_ids={"first": 1, "second": 2})
    for name, task_id in (("first", 1), ("second", 2), ("own", 0)):
        batch = tensors(batch_of(name))
        expected = networks[name]({**batch, "task_type_ids": task_id}).numpy()
        assert np.array_equal(joint(batch).numpy(), expected)
        others = [networks[name]({**batch, "task_type_ids": other}).numpy() for other in {0, 1, 2} - {task_id}]
        assert all(not np.array_equal(expected, other) for other in others)
        assert "task_type_ids" not in batch


def test_only_the_ids_embedding_of_the_task_gets_a_gradient():
    encoder = ernie()
    joint = MultiHead(encoder, {"a": Classifier(encoder, 2)}, task_ids={"a": 2})
    batch = tensors(batch_of("a"))
    joint.loss(joint(batch), batch).backward()
    gradient = np.abs(encoder.embeddings.task_type_embeddings.weight.grad.numpy()).sum(axis=1)
    assert gradient[2] > 0
    assert gradient[:2].tolist() == [0, 0]


@pytest.mark.parametrize("task_id", [-1, 3, 1.5, "1", None])
def test_an_id_that_the_encoder_has_not_is_refused(task_id):
    encoder = ernie()
    with pytest.raises(CompositionError, match=f"id of the task 'a' is {task_id!r}; the encoder has ids of tasks"):
        MultiHead(encoder, {"a": Classifier(encoder, 2)}, task_ids={"a": task_id})


def test_an_encoder_without_ids_of_tasks_takes_none(encoder):
    with pytest.raises(CompositionError, match="id of the task 'kind' is 0; the encoder has no ids of tasks"):
        MultiHead(encoder, heads(encoder), task_ids={"kind": 0})


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_networks_over_another_encoder_are_refused_by_name(encoder, encoder_folder):
    other = Encoder.from_pretrained(encoder_folder)
    with pytest.raises(CompositionError, match=r"the task 'score' \(Regressor\) is over another encoder"):
        MultiHead(encoder, {"kind": Classifier(encoder, 2), "score": Regressor(other)})


def test_what_is_no_network_of_a_task_is_refused(encoder):
    with pytest.raises(CompositionError, match=r"the task 'a' \(Linear\) is over another encoder"):
        MultiHead(encoder, {"a": paddle.nn.Linear(2, 2)})
    bare = paddle.nn.Linear(2, 2)
    bare.encoder = encoder
    with pytest.raises(CompositionError, match="the task 'a' has no method loss"):
        MultiHead(encoder, {"a": bare})
    with pytest.raises(CompositionError, match="has no networks"):
        MultiHead(encoder, {})
    with pytest.raises(CompositionError, match=r"'v1.0' cannot be part of a parameter's path"):
        MultiHead(encoder, {"v1.0": Classifier(encoder, 2)})


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf"), "2", None, True])
def test_a_weight_is_a_number_above_0(encoder, weight):
    with pytest.raises(CompositionError, match="the weight of the task 'kind' is"):
        MultiHead(encoder, heads(encoder), weights={"kind": weight})


def test_an_encoder_that_is_no_transformer_has_no_ids_of_tasks():
    encoder = paddle.nn.Linear(2, 2)
    head = paddle.nn.Linear(2, 2)
    head.encoder, head.loss = encoder, print
    with pytest.raises(CompositionError, match="the encoder has no ids of tasks"):
        MultiHead(encoder, {"a": head}, task_ids={"a": 0})


@pytest.mark.parametrize(("what", "given"), [("weights", [1.0]), ("task_ids", {1})])
def test_what_is_not_given_by_task_is_refused(encoder, what, given):
    with pytest.raises(CompositionError, match=f"MultiHead: {what} is a {type(given).__name__}; give it by task"):
        MultiHead(encoder, heads(encoder), **{what: given})


def test_networks_come_by_task(encoder):
    with pytest.raises(CompositionError, match=r"MultiHead takes its networks by task, .* not as a list"):
        MultiHead(encoder, [Classifier(encoder, 2)])


@pytest.mark.parametrize(("name", "said"), [(3, "3 is a int"), ("training", "a setting of its own as 'training'")])
def test_a_name_that_cannot_be_one_is_refused(encoder, name, said):
    with pytest.raises(CompositionError, match=said):
        MultiHead(encoder, {name: Classifier(encoder, 2)})


@pytest.mark.parametrize("name", ["keys", "encoder", "weight", "a/b", "loss", "eval", "items", "name"])
def test_other_names_do_whatever_else_they_mean(encoder, name):
    joint = MultiHead(encoder, {name: Classifier(encoder, 2), "other": Regressor(encoder)})
    joint.train()
    batch = tensors(batch_of(name))
    joint.loss(joint(batch), batch).backward()
    joint.eval()
    assert joint.tasks == (name, "other")
    assert f"networks.{name}.classifier.weight" in GradientMachine(joint).state_dict()


def test_a_head_that_takes_wider_vectors_is_refused_by_name(encoder):
    wide = Classifier(encoder, 2)
    wide.classifier = paddle.nn.Linear(2 * HIDDEN, 2)
    with pytest.raises(CompositionError, match=r"the network of the task 'b' does not fit .*: classifier takes"):
        MultiHead(encoder, {"a": Classifier(encoder, 2), "b": wide})


@pytest.mark.parametrize("what", ["weights", "task_ids"])
def test_names_that_are_no_tasks_are_refused(encoder, what):
    with pytest.raises(CompositionError, match=f"{what} names the task 'knid'; there are kind, score"):
        MultiHead(encoder, heads(encoder), **{what: {"knid": 1}})


def test_a_sampler_with_a_task_that_has_no_head_is_refused_with_the_drawing(encoder):
    tasks = {name: TaskData(DataProvider([batch_of(name)], 1)) for name in ("kind", "rank")}
    with pytest.raises(CompositionError, match=r"the task 'rank', for which .* has no head(.|\n)*GradientMachine\("):
        Runner(TaskSampler(tasks), GradientMachine(MultiHead(encoder, heads(encoder))))


def joint_run(joint, parameters, *rings):
    tasks = {name: TaskData(DataProvider([batch_of(name)], 1, collate=lambda rows: rows[0])) for name in joint.tasks}
    updater = ParameterUpdater(paddle.optimizer.Adam(0.01, parameters=parameters))
    return Runner(TaskSampler(tasks), *rings, updater, GradientMachine(joint))


def test_an_optimizer_that_lacks_a_head_is_refused_by_task(encoder):
    joint = MultiHead(encoder, heads(encoder))
    lacking = encoder.parameters() + joint.own_parameters("kind")
    with pytest.raises(CompositionError, match=r"no optimizer around gradient_machine has .* of the task 'score'"):
        joint_run(joint, lacking)
    joint_run(joint, joint.parameters())
    joint_run(joint, [{"params": lacking}, {"params": joint.own_parameters("score")}])


def test_a_head_may_be_another_optimizers_or_frozen(encoder):
    joint = MultiHead(encoder, heads(encoder))
    kind = joint.own_parameters("kind")
    other = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=joint.own_parameters("score")))
    joint_run(joint, kind, other)
    joint_run(joint, kind, Freeze(joint, "networks.score.classifier.*"))
    joint_run(joint, kind, StopGradient(joint, "networks.score.classifier.*"))
    with pytest.raises(CompositionError, match="of the task 'score'"):
        joint_run(joint, kind, Freeze(joint, "networks.kind.classifier.bias"))
    for parameter in joint.own_parameters("score"):
        parameter.stop_gradient = True
    joint_run(joint, kind)


def test_own_parameters_are_those_of_the_head(encoder):
    joint = MultiHead(encoder, heads(encoder))
    head = joint.networks["kind"].classifier
    assert [id(each) for each in joint.own_parameters("kind")] == [id(head.weight), id(head.bias)]


# -- what moves --------------------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "adamw with decay and clipping": lambda p: paddle.optimizer.AdamW(
        0.01, parameters=p, weight_decay=0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)
    ),
    "momentum with decay": lambda p: paddle.optimizer.Momentum(0.01, parameters=p, weight_decay=0.1),
    "adam": lambda p: paddle.optimizer.Adam(0.01, parameters=p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_only_the_active_head_moves_though_the_other_has_momentum_and_decay(encoder, name):
    joint = MultiHead(encoder, heads(encoder))
    batches = [batch_of("kind"), batch_of("score"), batch_of("kind", seed=1), batch_of("kind", seed=2)]
    steps = [values(joint)]

    class Look(ParameterUpdater):
        def on_batch(self, state):
            yield from super().on_batch(state)
            steps.append(values(joint))

    Runner(Batches(batches), Look(OPTIMIZERS[name](joint.parameters())), GradientMachine(joint)).run(passes=1)
    for number, batch in enumerate(batches):
        moved = {path for path, value in steps[number + 1].items() if value != steps[number][path]}
        other = {"kind": "score", "score": "kind"}[batch["task"]]
        assert f"networks.{batch['task']}.classifier.weight" in moved
        assert f"networks.{other}.classifier.weight" not in moved
        assert f"networks.{other}.classifier.bias" not in moved
        assert "encoder.embeddings.word_embeddings.weight" in moved


def test_rates_by_group_of_parameters(encoder):
    """The encoder at a hundredth of the heads' rate: Adam's first step is as long as the rate."""
    joint = MultiHead(encoder, heads(encoder))
    of_encoder = {id(parameter) for parameter in encoder.parameters()}
    groups = [
        {"params": encoder.parameters(), "learning_rate": 0.01},
        {"params": [each for each in joint.parameters() if id(each) not in of_encoder]},
    ]
    optimizer = paddle.optimizer.AdamW(0.1, parameters=groups, weight_decay=0.0)
    before = {name: tensor.numpy().copy() for name, tensor in joint.state_dict().items()}
    Runner(Batches([batch_of("kind")]), ParameterUpdater(optimizer), GradientMachine(joint)).run(passes=1)
    step = {name: np.abs(tensor.numpy() - before[name]).max() for name, tensor in joint.state_dict().items()}
    assert step["encoder.pooler.dense.weight"] == pytest.approx(0.001, rel=0.01)
    assert step["networks.kind.classifier.weight"] == pytest.approx(0.1, rel=0.01)
    assert step["networks.score.classifier.weight"] == 0


# -- saved and resumed -------------------------------------------------------------------------------------------------


def training(encoder_folder, folder, seed=0, every=4, groups=False):
    paddle.seed(seed)
    encoder = Encoder.from_pretrained(encoder_folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    joint = MultiHead(encoder, heads(encoder), weights={"score": 0.5})
    of_encoder = {id(parameter) for parameter in encoder.parameters()}
    parameters = [
        {"params": encoder.parameters(), "learning_rate": 0.1},
        {"params": [each for each in joint.parameters() if id(each) not in of_encoder], "weight_decay": 0.0},
    ]
    schedule = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.PolynomialDecay(0.01, 20), 3, 0.0, 0.01)
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.AdamW(
        schedule, parameters=parameters if groups else joint.parameters(), weight_decay=0.1, grad_clip=clip
    )

    def data(task, count, **options):
        batches = [{k: v for k, v in batch_of(task, seed=i).items() if k != "task"} for i in range(count)]
        return DataProvider(batches, 1, collate=lambda examples: examples[0], shuffle=True, **options)

    tasks = {"kind": TaskData(data("kind", 5)), "score": TaskData(data("score", 3, seed=1), 0.6)}
    test = Runner(
        data("score", 2), Evaluator(Spread()), Decoder(joint.networks["score"]), Forward(joint.networks["score"])
    )
    return Runner(
        Saver(folder, every=every, monitor="score.spread", keep_last=1),
        Tester(test, every=3, name="score"),
        TaskSampler(tasks, seed=4),
        ParameterUpdater(optimizer),
        GradientMachine(joint),
    )


class Spread:
    """A figure of decoded scores."""

    def reset(self):
        self.scores = []

    def update(self, outputs, batch):
        self.scores += [float(each) for each in outputs]

    def result(self):
        return {"spread": max(self.scores) - min(self.scores)}


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("cut", [2, 5])
def test_a_joint_run_that_was_cut_goes_on_to_the_same_bits(encoder_folder, tmp_path, cut, groups):
    uncut = training(encoder_folder, tmp_path / "uncut", groups=groups)
    expected = uncut.run(passes=2)
    training(encoder_folder, tmp_path / "cut", groups=groups).run(steps=cut)
    resumed = training(encoder_folder, tmp_path / "cut", seed=1, groups=groups)
    state = resumed.run(passes=2)
    assert values(resumed[GradientMachine].network) == values(uncut[GradientMachine].network)
    assert (state.step, state.metrics) == (expected.step, expected.metrics)
    assert resumed[TaskSampler].state_dict() == uncut[TaskSampler].state_dict()


def test_the_checkpoint_has_every_parameter_once(encoder_folder, tmp_path):
    runner = training(encoder_folder, tmp_path)
    runner.run(passes=1)
    saved = checkpoint.newest(tmp_path).items["gradient_machine"]
    joint = runner[GradientMachine].network
    assert len(saved) == len(joint.parameters()) < len(joint.state_dict())
    assert {name.partition(".")[0] for name in saved} == {"encoder", "networks"}
    assert {name for name in saved if name.startswith("networks.")} == {
        f"networks.{task}.classifier.{part}" for task in ("kind", "score") for part in ("weight", "bias")
    }


@pytest.mark.parametrize("task", ["kind", "score"])
def test_the_network_of_one_task_is_taken_out_of_the_best_checkpoint(encoder_folder, tmp_path, task):
    runner = training(encoder_folder, tmp_path)
    runner.run(passes=2)
    best = best_checkpoint(tmp_path)
    joint = runner[GradientMachine].network
    load_network(joint, best.items["gradient_machine"])
    alone = heads(Encoder.from_pretrained(encoder_folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))[
        task
    ]
    saved = joint.saved_task(task)
    assert saved.keys() == alone.state_dict().keys()
    load_network(alone, {name: tensor.numpy() for name, tensor in saved.items()})
    batch = tensors(batch_of(task))
    assert np.array_equal(alone(batch).numpy(), joint(batch).numpy())
