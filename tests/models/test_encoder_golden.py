"""Small random encoders, saved by transformers and PaddleNLP in each of their layouts, loaded and run by us.

scripts/make_golden_encoders.py made the folders. RoBERTa-wwm is a BERT in all but its name; ``bert`` stands for it.
"""

from pathlib import Path

import numpy as np
import paddle
import pytest

from onion.models.config import EncoderConfig
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights

GOLDEN = Path(__file__).parent / "golden"
LAYOUTS = {
    "bert": ["huggingface", "huggingface-shards", "torch", "paddlenlp"],
    "roberta": ["huggingface", "torch", "paddlenlp"],
    "ernie_1": ["huggingface", "paddlenlp", "paddlenlp-nested", "static"],
    "ernie_2": ["paddlenlp", "static"],
    "ernie_3": ["huggingface", "paddlenlp", "paddlenlp-nested", "static"],
    "ernie_tiny": ["paddlenlp", "paddlenlp-nested"],
}
FOLDERS = [f"{name}/{layout}" for name, layouts in LAYOUTS.items() for layout in layouts]
OUTPUTS = ("sequence_output", "pooled_output", "words", "next_sentence")


def expected_of(folder):
    """The folder's own file, or that of the architecture: its weights are the same in all other layouts."""
    own = GOLDEN / folder / "expected.npz"
    return dict(np.load(own if own.is_file() else GOLDEN / Path(folder).parent / "expected.npz"))


def part(golden, name):
    return {key.removeprefix(f"{name}:"): array for key, array in golden.items() if key.startswith(f"{name}:")}


def loaded(folder, **settings):
    network = EncoderForPretraining.from_pretrained(GOLDEN / folder, **settings)
    network.eval()
    return network


def outputs_of(network, golden):
    batch = [golden["input_ids"], golden["token_type_ids"], None, golden["attention_mask"], golden.get("task_type_ids")]
    scores = network(*batch, masked_positions=golden["masked_positions"])
    found = dict(zip(OUTPUTS, (*scores.encoded, scores.words, scores.next_sentence), strict=True))
    return {name: out for name, out in found.items() if out is not None}


@pytest.mark.parametrize("folder", FOLDERS)
def test_outputs_and_all_gradients_agree(folder, caplog):
    golden, network = expected_of(folder), loaded(folder)
    assert not caplog.records  # nothing was missing or unknown
    outputs = outputs_of(network, golden)
    factors = part(golden, "factor")
    assert factors.keys() == outputs.keys()
    for name, found in outputs.items():
        expected = golden[name]
        if name == "sequence_output":
            expected = expected * golden["attention_mask"][:, :, None]  # ours is zero where there is padding
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-5, err_msg=name)

    sum((out * paddle.to_tensor(factors[name])).sum() for name, out in outputs.items()).backward()
    prefix = f"{network.encoder.config.model_type}."
    parameters = {name.removeprefix(prefix): parameter for name, parameter in network.named_parameters()}
    gradients = part(golden, "gradient")
    assert gradients.keys() == parameters.keys()
    for name, expected in gradients.items():
        scale = max(abs(expected).max(), 1)
        found = parameters[name].grad.numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_epsilon_of_the_norms_matters(folder):
    """Otherwise the test above would not show that each has the right one."""
    golden = expected_of(folder)
    eps = {1e-12: 1e-5, 1e-5: 1e-12}[EncoderConfig.read(GOLDEN / folder).layer_norm_eps]
    found = outputs_of(loaded(folder, layer_norm_eps=eps), golden)["pooled_output"].numpy()
    assert abs(found - golden["pooled_output"]).max() > 1e-4


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_layouts_of_an_architecture_hold_the_same_weights(name):
    """To the bit; so a parameter that is read the wrong way round cannot hide behind a tolerance."""
    first, *others = (read_weights(GOLDEN / name / layout) for layout in LAYOUTS[name])
    for other in others:
        assert first.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(array, other.arrays[key]) for key, array in first.arrays.items())
        tied = {"cls.predictions.decoder_weight"}  # stored or left out
        assert first.heads.keys() | tied == other.heads.keys() | tied
        assert all(np.array_equal(first.heads[key], other.heads[key]) for key in first.heads.keys() & other.heads)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_files_are_what_they_should_be(folder):
    name, layout = folder.split("/")
    config = EncoderConfig.read(GOLDEN / folder)
    assert (config.model_type, config.hidden_act, config.type_vocab_size, config.tasks, config.position_offset) == {
        "bert": ("bert", "gelu", 2, 0, 0),
        "roberta": ("roberta", "gelu", 1, 0, 2),
        "ernie_1": ("ernie", "relu", 2, 0, 0),
        "ernie_2": ("ernie", "gelu", 4, 16, 0),
        "ernie_3": ("ernie", "gelu", 4, 3, 0),
        "ernie_tiny": ("ernie", "relu", 2, 0, 0),
    }[name]
    assert config.layer_norm_eps == (1e-5 if name == "roberta" or layout == "static" else 1e-12)
    golden = expected_of(folder)
    assert (len(set(golden["task_type_ids"].flat)) > 2) if config.tasks else "task_type_ids" not in golden
    assert ("next_sentence" in golden) == (name != "roberta")


def test_every_golden_folder_is_tested():
    models = [path.parent for path in GOLDEN.glob("*/expected.npz")]
    found = {f"{model.name}/{path.name}" for model in models for path in model.iterdir() if path.is_dir()}
    families = ("electra", "xlnet")  # test_family_golden.py has them
    assert {name for name in found if not name.startswith(families)} == set(FOLDERS)
