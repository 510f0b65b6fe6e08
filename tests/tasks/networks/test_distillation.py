"""The losses of distillation against plain numpy, text by text without padding; and a student that learns from them."""

import attrs
import numpy as np
import paddle
import pytest
from scipy.special import log_softmax

from onion import CompositionError, Forward, GradientMachine, OutputsToBatch, ParameterUpdater, Runner
from onion.models.encoder import Encoder
from onion.models.hidden_states import HiddenStates, WithHiddenStates, record_hidden_states
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.distillation import (
    AttentionDistribution,
    AttentionScores,
    Distillation,
    EveryHiddenState,
    HiddenStatesLoss,
    SoftTargets,
    copied_layers,
    layer_map,
    with_layers,
    write_smaller,
)
from onion.testing import Batches
from tests.models.helpers import MASKS, SMALL, small_encoder

DEEP = attrs.evolve(SMALL, num_hidden_layers=4)
LENGTHS = [7, 3, 5]


def classifier(config=SMALL, seed=1, labels=3):
    network = Classifier(small_encoder(seed, config), labels)
    network.eval()
    return network


def batch_of(seed=0, lengths=LENGTHS, **fields):
    ids = np.random.default_rng(seed).integers(1, SMALL.vocab_size, (len(lengths), max(lengths)))
    return {"input_ids": ids, "token_type_ids": 0 * ids, "lengths": lengths, **fields}


def singly(batch):
    """Every text in a batch of its own, so that there is no padding."""
    for ids, length in zip(batch["input_ids"], batch["lengths"], strict=True):
        yield {"input_ids": ids[None, :length], "token_type_ids": 0 * ids[None, :length], "lengths": [length]}


def logits(*values):
    return HiddenStates(paddle.to_tensor(np.array(values, np.float32)))


def divergence(wanted, given):
    wanted, given = (log_softmax(each.astype(np.float64), axis=-1) for each in (wanted, given))
    return (np.exp(wanted) * (wanted - given)).sum(-1)


@pytest.mark.parametrize(("ours", "pairs"), [(1, [(0, 0), (1, 4)]), (2, [(0, 0), (1, 2), (2, 4)])])
def test_hidden_states_are_compared_at_evenly_spaced_layers_and_added_up(ours, pairs):
    draw = np.random.default_rng(0)
    student, teacher = ({layer: draw.normal(size=(5, 3)) for layer in range(depth + 1)} for depth in (ours, 4))
    given = [
        HiddenStates(hidden={layer: paddle.to_tensor(each) for layer, each in of.items()}) for of in (student, teacher)
    ]
    expected = sum(((student[mine] - teacher[theirs]) ** 2).mean() for mine, theirs in pairs)
    assert float(EveryHiddenState(weight=0.1)(*given)) == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_soft_targets_are_the_divergence_at_a_temperature_times_its_square(temperature):
    ours, theirs = np.random.default_rng(0).normal(0, 2, (2, 5, 3)).astype(np.float32)
    found = SoftTargets(temperature)(logits(*ours), logits(*theirs))
    wanted = temperature**2 * divergence(theirs / temperature, ours / temperature).mean()
    np.testing.assert_allclose(float(found), wanted, rtol=1e-5)


@pytest.fixture
def pair():
    """A student and a teacher."""
    return classifier(), classifier(DEEP, seed=2)


def hidden_states(networks, batch):
    return [WithHiddenStates(network)(batch) for network in networks]


def test_hidden_states_of_the_tokens_without_padding(pair):
    batch = batch_of()
    loss = HiddenStatesLoss({0: 0, 1: 2, 2: 4})
    found = float(loss(*hidden_states(pair, batch)))
    squares = {layer: [] for layer in loss.layers}
    for text in singly(batch):
        ours, theirs = hidden_states(pair, text)
        for layer, taught in loss.layers.items():
            squares[layer].append(((ours.hidden[layer] - theirs.hidden[taught]) ** 2).numpy())
    wanted = np.mean([np.concatenate(each).mean() for each in squares.values()])
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def scores(network, text, layer):
    """Attention before the softmax, from the projections' weights: [heads, length, length]."""
    encoder = network.encoder
    with record_hidden_states(encoder) as inside:
        encoder(text["input_ids"])
    attention, below = encoder.encoder.layers[layer - 1].self_attn, inside.hidden[layer - 1].numpy()
    split = []
    for projection in (attention.q_proj, attention.k_proj):
        vectors = below @ projection.weight.numpy() + projection.bias.numpy()
        split.append(vectors.reshape(len(below), encoder.config.num_attention_heads, -1).transpose(1, 0, 2))
    return split[0] @ split[1].transpose(0, 2, 1) / np.sqrt(encoder.config.head_size)


def test_attention_scores_of_pairs_of_tokens_without_padding(pair):
    student, teacher = pair
    batch = batch_of()
    found = float(AttentionScores({1: 2, 2: 4})(*hidden_states(pair, batch)))
    each = [
        np.concatenate([((scores(student, t, ours) - scores(teacher, t, theirs)) ** 2).ravel() for t in singly(batch)])
        for ours, theirs in ((1, 2), (2, 4))
    ]
    np.testing.assert_allclose(found, np.mean([squares.mean() for squares in each]), rtol=1e-4)


def test_the_attention_distribution_of_tokens_without_padding(pair):
    student, teacher = pair
    batch = batch_of()
    found = float(AttentionDistribution({2: 4})(*hidden_states(pair, batch)))
    each = [divergence(scores(teacher, text, 4), scores(student, text, 2)).ravel() for text in singly(batch)]
    np.testing.assert_allclose(found, np.concatenate(each).mean(), rtol=1e-4)


INNER = [
    HiddenStatesLoss({1: 1, 2: 2}),
    AttentionScores({1: 1, 2: 2}),
    AttentionDistribution({1: 1, 2: 2}),
    SoftTargets(),
]


@pytest.mark.parametrize("loss", INNER, ids=lambda loss: type(loss).__name__)
def test_of_its_own_teacher_a_loss_is_nothing_and_padding_has_no_part_in_it(loss):
    networks = classifier(), classifier(seed=3)
    batch = batch_of()
    own, theirs = hidden_states(networks, batch)
    assert float(loss(own, own)) == pytest.approx(0, abs=1e-6)
    assert float(loss(own, theirs)) > 1e-4
    longer = batch_of(lengths=[*LENGTHS, 12])
    wider = {name: value[:3] for name, value in longer.items()}
    wider["input_ids"][:, :7] = batch["input_ids"]
    assert wider["input_ids"].shape == (3, 12)
    again = loss(*hidden_states(networks, wider))
    np.testing.assert_allclose(float(again), float(loss(own, theirs)), rtol=1e-3)


def told(student, teacher, batch):
    return WithHiddenStates(student)(batch), {**batch, "teacher": WithHiddenStates(teacher)(batch)}


def test_the_loss_is_the_weighted_sum_with_that_of_the_labels(pair):
    student, teacher = pair
    batch = batch_of(labels=paddle.to_tensor([0, 2, 1]))
    ours, batch = told(student, teacher, batch)
    soft, hidden = SoftTargets(3.0, weight=0.5), HiddenStatesLoss({2: 4}, weight=0.25)
    found = Distillation(student, teacher, soft, hidden, labels=2.0)(ours, batch)
    of_labels = float(student.loss(ours.outputs, batch))
    wanted = 2 * of_labels + 0.5 * float(soft(ours, batch["teacher"])) + 0.25 * float(hidden(ours, batch["teacher"]))
    np.testing.assert_allclose(float(found), wanted, rtol=1e-6)
    np.testing.assert_allclose(float(Distillation(student, teacher)(ours, batch)), of_labels, rtol=1e-6)


def test_texts_without_labels_do_where_these_have_no_weight(pair):
    student, teacher = pair
    ours, batch = told(*pair, batch_of())
    loss = Distillation(student, teacher, SoftTargets(), labels=0)
    np.testing.assert_allclose(float(loss(ours, batch)), float(SoftTargets()(ours, batch["teacher"])), rtol=1e-6)


def test_a_loss_without_weight_is_not_computed(pair):
    student, teacher = pair
    ours, batch = told(*pair, batch_of(labels=paddle.to_tensor([0, 2, 1])))
    batch["teacher"] = None
    Distillation(student, teacher, SoftTargets(weight=0))(ours, batch)


@pytest.mark.parametrize(
    ("losses", "weights", "message"),
    [
        ([HiddenStatesLoss({1: 5})], {}, r"HiddenStatesLoss: the teacher has no layer 5, but 0 to 4"),
        ([HiddenStatesLoss({3: 1})], {}, r"HiddenStatesLoss: the student has no layer 3, but 0 to 2"),
        ([AttentionScores({0: 0})], {}, r"AttentionScores: the student has no layer 0, but 1 to 2"),
        ([AttentionScores({1: "last"})], {}, r"the teacher has no layer 'last'"),
        ([AttentionDistribution({})], {}, r"AttentionDistribution has no layers; give it some"),
        ([SoftTargets(0)], {}, r"temperature must be a number > 0, got 0"),
        ([SoftTargets(float("nan"))], {}, r"temperature must be a number > 0, got nan"),
        ([SoftTargets(weight=-1.0)], {}, r"the weight of SoftTargets must be a number >= 0, got -1\.0"),
        ([SoftTargets()], {"labels": float("inf")}, r"the weight of labels must be a number >= 0, got inf"),
        ([SoftTargets(weight=0)], {"labels": 0}, r"every weight is 0"),
    ],
)
def test_what_cannot_be_is_refused_when_the_loss_is_made(losses, weights, message):
    with pytest.raises(CompositionError, match=message):
        Distillation(classifier(), classifier(DEEP), *losses, **weights)


@pytest.mark.parametrize(
    ("changes", "loss", "message"),
    [
        (
            {"hidden_size": 32},
            HiddenStatesLoss({1: 1}),
            r"HiddenStatesLoss needs .* hidden_size; the student's is 24, .* 32",
        ),
        ({"num_attention_heads": 6}, AttentionScores({1: 1}), r"num_attention_heads; the student's is 4, .* 6"),
        ({"vocab_size": 50}, SoftTargets(), r"Distillation needs .* vocab_size; the student's is 40, .* 50"),
    ],
)
def test_encoders_that_cannot_be_compared_are_refused(changes, loss, message):
    with pytest.raises(CompositionError, match=message):
        Distillation(classifier(), classifier(attrs.evolve(SMALL, **changes)), loss)


def test_a_narrower_student_still_learns_soft_targets_and_attention():
    student, teacher = classifier(attrs.evolve(SMALL, hidden_size=16)), classifier(DEEP)
    loss = Distillation(student, teacher, SoftTargets(), AttentionDistribution({2: 4}), labels=0)
    assert float(loss(*told(student, teacher, batch_of()))) > 0


def test_a_student_of_the_teachers_size_becomes_the_teacher():
    teacher, student = classifier(seed=1), classifier(seed=2)
    batches = [batch_of(seed) for seed in range(4)]
    before = [parameter.numpy().copy() for parameter in teacher.parameters()]
    loss = Distillation(student, teacher, *INNER, labels=0)
    trail = []
    runner = Runner(
        Batches(batches),
        Forward(WithHiddenStates(teacher)),
        OutputsToBatch("teacher"),
        ParameterUpdater(paddle.optimizer.Adam(3e-3, parameters=student.parameters())),
        GradientMachine(WithHiddenStates(student), lambda *given: trail.append(found := loss(*given)) or found),
    )
    runner.run(passes=25)
    losses = [float(each) for each in trail]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) / 5
    assert all((one == now.numpy()).all() for one, now in zip(before, teacher.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_an_encoder_of_some_layers_computes_what_they_do():
    encoder = small_encoder(config=DEEP)
    fewer = with_layers(encoder, [2, 4])
    fewer.eval()
    assert fewer.config == attrs.evolve(DEEP, num_hidden_layers=2)
    mask = np.array(MASKS["right"])
    ids = np.full(mask.shape, 3)
    with record_hidden_states(fewer) as inside:
        fewer(ids, attention_mask=mask)
    x = inside.hidden[0]
    for layer in (encoder.encoder.layers[1], encoder.encoder.layers[3]):
        x = layer(x, inside.packing)
    np.testing.assert_array_equal(inside.hidden[2].numpy(), x.numpy())
    for part in ("embeddings", "pooler"):
        for one, other in zip(getattr(fewer, part).parameters(), getattr(encoder, part).parameters(), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_the_copies_are_copies():
    encoder = small_encoder()
    fewer = with_layers(encoder, [1])
    before = encoder.pooler.dense.bias.numpy().copy()
    fewer.pooler.dense.bias.set_value(paddle.zeros_like(fewer.pooler.dense.bias))
    np.testing.assert_array_equal(encoder.pooler.dense.bias.numpy(), before)


@pytest.mark.parametrize("layers", [[], [0], [3], [1, 9], ["2"]])
def test_layers_that_are_not_there_are_refused(layers):
    with pytest.raises(CompositionError, match="the encoder has the layers 1 to 2"):
        with_layers(small_encoder(), layers)


def test_a_smaller_folder_is_an_encoder_with_its_tokenizer(encoder_folder, tmp_path):
    write_smaller(encoder_folder, [2], tmp_path / "small")
    small, whole = Encoder.from_pretrained(tmp_path / "small"), Encoder.from_pretrained(encoder_folder)
    assert small.config.num_hidden_layers == 1
    ours, theirs = small.encoder.layers[0], whole.encoder.layers[1]
    np.testing.assert_array_equal(ours.linear1.weight.numpy(), theirs.linear1.weight.numpy())
    assert (tmp_path / "small" / "tokenizer.json").is_file()


@pytest.mark.parametrize(
    ("layers", "of", "found"),
    [(3, 12, {1: 4, 2: 8, 3: 12}), (3, 6, {1: 2, 2: 4, 3: 6}), (3, 3, {1: 1, 2: 2, 3: 3}), (1, 2, {1: 2})],
)
def test_layers_are_spaced_evenly_up_to_the_last(layers, of, found):
    assert layer_map(layers, of) == found
    assert copied_layers(layers, of) == [1, *(taught + 1 for taught in found.values())][:layers]


def test_more_layers_than_there_are():
    with pytest.raises(CompositionError, match="4 layers of 3: choose a number from 1 to 3"):
        layer_map(4, 3)
