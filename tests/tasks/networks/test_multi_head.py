"""MultiHead: one encoder under the networks of several tasks."""

from copy import deepcopy

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
    Observer,
    ParameterUpdater,
    Runner,
    Saver,
    StopGradient,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.checkpointing import checkpoint, rng
from onion.checkpointing.run_state import best_checkpoint
from onion.items.gradient_machine import load_network
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.tasks.batches import arguments
from onion.tasks.collector import Decoder
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.multi_head import MultiHead, refuse_unfit
from onion.tasks.networks.regressor import Regressor
from onion.tasks.registry import TASKS, get_task
from onion.testing import Batches
from tests.tasks.arrays import tensors
from tests.tasks.helpers import HIDDEN, VOCAB
from tests.toys import bits

CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture
def encoder(encoder_folder):
    paddle.seed(2)
    return Encoder.from_pretrained(encoder_folder, **CALM)


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
    sizes = {
        "vocab_size": len(VOCAB),
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN,
        "max_position_embeddings": 16,
    }
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 4, "type_vocab_size": 2, "task_type_vocab_size": 3}
    paddle.seed(1)
    return Encoder(EncoderConfig(**sizes, **CALM, use_task_id=True))


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
    with pytest.raises(CompositionError, match=f"id of the task 'a' is {task_id!r}; the encoder has task ids"):
        MultiHead(encoder, {"a": Classifier(encoder, 2)}, task_ids={"a": task_id})


# -- what is refused ---------------------------------------------------------------------------------------------------


def no_loss(encoder):
    bare = paddle.nn.Linear(2, 2)
    bare.encoder = encoder
    return {"a": bare}


def wide(encoder):
    head = Classifier(encoder, 2)
    head.classifier = paddle.nn.Linear(2 * HIDDEN, 2)
    return {"a": Classifier(encoder, 2), "b": head}


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        (lambda encoder: {"a": paddle.nn.Linear(2, 2)}, r"the task 'a' \(Linear\) has another encoder"),
        (lambda encoder: {"b": Regressor(deepcopy(encoder))}, r"the task 'b' \(Regressor\) has another encoder"),
        (no_loss, "the task 'a' has no method loss"),
        (wide, r"the network of the task 'b' does not fit .*: classifier takes"),
        (lambda encoder: {}, "has no networks"),
        (lambda encoder: [Classifier(encoder, 2)], "MultiHead takes its networks by task, .* not as a list"),
        (lambda encoder: {"v1.0": Classifier(encoder, 2)}, r"'v1.0' cannot be part of a parameter's path"),
        (lambda encoder: {3: Classifier(encoder, 2)}, "the name of a task must be a string, got 3"),
        (lambda encoder: {"training": Classifier(encoder, 2)}, "'training' is an attribute of Paddle's layers"),
    ],
)
def test_networks_that_do_not_do_are_refused(encoder, networks, message):
    with pytest.raises(CompositionError, match=message):
        MultiHead(encoder, networks(encoder))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            ({"weights": {"kind": weight}}, "the weight of the task 'kind' must be a number > 0, got")
            for weight in (0, -1.0, float("nan"), float("inf"), "2", None, True)
        ),
        ({"weights": [1.0]}, "MultiHead: weights is a list; give it by task"),
        ({"task_ids": {1}}, "MultiHead: task_ids is a set; give it by task"),
        ({"weights": {"knid": 1}}, "weights names the task 'knid'; the tasks are kind, score"),
        ({"task_ids": {"knid": 1}}, "task_ids names the task 'knid'; the tasks are kind, score"),
        ({"task_ids": {"kind": 0}}, "id of the task 'kind' is 0; the encoder has no task ids"),
    ],
)
def test_weights_and_ids_that_do_not_do_are_refused(encoder, given, message):
    with pytest.raises(CompositionError, match=message):
        MultiHead(encoder, heads(encoder), **given)


def test_an_encoder_that_is_no_transformer_has_no_ids_of_tasks():
    encoder = paddle.nn.Linear(2, 2)
    head = paddle.nn.Linear(2, 2)
    head.encoder, head.loss = encoder, print
    with pytest.raises(CompositionError, match="the encoder has no task ids"):
        MultiHead(encoder, {"a": head}, task_ids={"a": 0})


@pytest.mark.parametrize("name", ["keys", "encoder", "weight", "a/b", "loss", "eval", "items", "name"])
def test_other_names_do_whatever_else_they_mean(encoder, name):
    joint = MultiHead(encoder, {name: Classifier(encoder, 2), "other": Regressor(encoder)})
    joint.train()
    batch = tensors(batch_of(name))
    joint.loss(joint(batch), batch).backward()
    joint.eval()
    assert joint.tasks == (name, "other")
    assert f"networks.{name}.classifier.weight" in GradientMachine(joint).state_dict()


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
    steps = [bits(joint)]
    look = Observer(on_batch_end=lambda state: steps.append(bits(joint)))
    updater = ParameterUpdater(OPTIMIZERS[name](joint.parameters()))
    Runner(Batches(batches), look, updater, GradientMachine(joint)).run(passes=1)
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
    shared = {id(parameter) for parameter in encoder.parameters()}
    groups = [
        {"params": encoder.parameters(), "learning_rate": 0.01},
        {"params": [each for each in joint.parameters() if id(each) not in shared]},
    ]
    optimizer = paddle.optimizer.AdamW(0.1, parameters=groups, weight_decay=0.0)
    before = {name: tensor.numpy().copy() for name, tensor in joint.state_dict().items()}
    Runner(Batches([batch_of("kind")]), ParameterUpdater(optimizer), GradientMachine(joint)).run(passes=1)
    step = {name: np.abs(tensor.numpy() - before[name]).max() for name, tensor in joint.state_dict().items()}
    assert step["encoder.pooler.dense.weight"] == pytest.approx(0.001, rel=0.01)
    assert step["networks.kind.classifier.weight"] == pytest.approx(0.1, rel=0.01)
    assert step["networks.score.classifier.weight"] == 0


# -- saved and resumed -------------------------------------------------------------------------------------------------


def training(encoder_folder, folder):
    paddle.seed(0)
    encoder = Encoder.from_pretrained(encoder_folder, **CALM)
    joint = MultiHead(encoder, heads(encoder), weights={"score": 0.5})
    optimizer = paddle.optimizer.AdamW(0.01, parameters=joint.parameters(), weight_decay=0.1)

    def data(task, count, **options):
        batches = [{k: v for k, v in batch_of(task, seed=i).items() if k != "task"} for i in range(count)]
        return DataProvider(batches, 1, collate=lambda examples: examples[0], shuffle=True, **options)

    tasks = {"kind": TaskData(data("kind", 5)), "score": TaskData(data("score", 3, seed=1), 0.6)}
    test = Runner(
        data("score", 2), Evaluator(Spread()), Decoder(joint.networks["score"]), Forward(joint.networks["score"])
    )
    return Runner(
        Saver(folder, every=4, monitor="score.spread", keep_last=1),
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
    alone = heads(Encoder.from_pretrained(encoder_folder, **CALM))[task]
    saved = joint.saved_task(task)
    assert saved.keys() == alone.state_dict().keys()
    load_network(alone, {name: tensor.numpy() for name, tensor in saved.items()})
    batch = tensors(batch_of(task))
    assert np.array_equal(alone(batch).numpy(), joint(batch).numpy())


# -- the width of vectors ----------------------------------------------------------------------------------------------


class Own(paddle.nn.Layer):
    """A network of a user, with layers one after the other over the pooled output."""

    def __init__(self, encoder, *layers, field=None):
        super().__init__()
        self.encoder, self.layers, self.field = encoder, paddle.nn.Sequential(*layers), field
        self.calls = 0

    def forward(self, batch):
        self.calls += 1
        assert not self.training
        assert self.field is None or batch[self.field]
        return self.layers(self.encoder(**arguments(batch)).pooled_output)


class Drawing(paddle.nn.Layer):
    def forward(self, vectors):
        return vectors + paddle.randn(vectors.shape)


def linear(taken, given=2):
    return paddle.nn.Linear(taken, given)


@pytest.mark.parametrize("taken", [HIDDEN // 2, HIDDEN * 2])
def test_a_layer_of_another_width_is_named_with_both(encoder, taken):
    network = Own(encoder, paddle.nn.Dropout(0.1), linear(taken))
    with pytest.raises(
        CompositionError, match=rf"^mine does not .*: layers.1 takes vectors of size {taken}, .*{HIDDEN}"
    ):
        refuse_unfit(network, "mine")


def test_what_fits_is_not_run_and_layers_further_on_have_their_own_width(encoder):
    simple = Own(encoder, linear(HIDDEN))
    refuse_unfit(simple, "mine")
    assert simple.calls == 0
    deep = Own(encoder, linear(HIDDEN, 7), linear(7))
    refuse_unfit(deep, "mine")
    assert deep.calls == 1


@pytest.mark.parametrize("name", TASKS)
def test_the_networks_of_all_tasks_fit(encoder, name):
    settings = {"labels": ("bad", "good")} if name in ("classification", "multilabel", "token-classification") else {}
    refuse_unfit(get_task(name, settings).network(encoder), name)


def test_no_trace_is_left(encoder):
    network = Own(encoder, Drawing(), linear(HIDDEN, 7), paddle.nn.Dropout(0.5), linear(7))
    network.layers[2].eval()
    before = rng.capture()
    refuse_unfit(network, "mine")
    assert network.calls == 1
    assert rng.capture() == before
    assert network.training
    assert not network.layers[2].training
    assert not any(layer._forward_pre_hooks for layer in network.sublayers())


def test_other_batches_and_other_errors_are_let_be(encoder):
    refuse_unfit(Own(encoder, linear(HIDDEN, 7), linear(8), field="image"), "mine")
    longer = Own(encoder, paddle.nn.Flatten(0), paddle.nn.Unflatten(0, [1, 16, 2]), linear(16))  # not on one token
    refuse_unfit(longer, "mine")
    assert longer.calls == 1


def test_an_encoder_that_does_not_tell_its_width_is_let_be():
    network = Own(linear(8, 16), linear(9))
    refuse_unfit(network, "mine")
    assert network.calls == 0
