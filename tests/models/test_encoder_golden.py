"""Small random encoders, saved by transformers and PaddleNLP in each of their layouts, loaded and run by us.

``python -m scripts.make_golden encoders`` made the folders. RoBERTa-wwm is a BERT in all but its name; ``bert`` stands
for it. ELECTRA and XLNet are classifiers, because their poolers are part of such heads.
"""

from pathlib import Path

import attrs
import numpy as np
import paddle
import pytest

from onion.models.auto import load_encoder
from onion.models.config import EncoderConfig
from onion.models.families import read_config
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights
from scripts.parity.encoders import differences, outputs_of

GOLDEN = Path(__file__).parent / "golden"
LAYOUTS = {
    "bert": ["huggingface", "huggingface-shards", "torch", "paddlenlp"],
    "roberta": ["huggingface", "torch", "paddlenlp"],
    "ernie_1": ["huggingface", "paddlenlp", "paddlenlp-nested", "static"],
    "ernie_2": ["paddlenlp", "static"],
    "ernie_3": ["huggingface", "paddlenlp", "paddlenlp-nested", "static"],
    "ernie_tiny": ["paddlenlp", "paddlenlp-nested"],
    "electra": ["huggingface", "torch"],
    "electra_equal": ["huggingface"],
    "xlnet": ["huggingface", "torch"],
    "xlnet_clamped": ["huggingface"],
}
FOLDERS = [f"{name}/{layout}" for name, layouts in LAYOUTS.items() for layout in layouts]
CLASSIFIERS = [folder for folder in FOLDERS if folder.startswith(("electra", "xlnet"))]
both_families = pytest.mark.parametrize("folder", ["electra/huggingface", "xlnet/huggingface"])


def expected_of(folder):
    """The folder's own file, or that of the architecture: its weights are the same in all other layouts."""
    own = GOLDEN / folder / "expected.npz"
    return dict(np.load(own if own.is_file() else GOLDEN / Path(folder).parent / "expected.npz"))


def loaded(folder, **settings):
    """An encoder, with its pretraining heads if it has them."""
    load = load_encoder if folder in CLASSIFIERS else EncoderForPretraining.from_pretrained
    network = load(GOLDEN / folder, **settings)
    network.eval()
    return network


def pooled_of(network, golden):
    return outputs_of(network, golden)["pooled_output"].numpy()


def close(found, expected, what=""):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(abs(expected).max(), 1), err_msg=what)


@pytest.mark.parametrize("folder", FOLDERS)
def test_outputs_and_all_gradients_agree(folder, caplog):
    network, golden = loaded(folder), expected_of(folder)
    assert not caplog.records  # nothing was missing or unknown
    if folder in CLASSIFIERS:
        others = tuple(f"gradient:{name}" for name in ("classifier.", "logits_proj."))
        golden = {name: array for name, array in golden.items() if not name.startswith(others)}
    outputs, gradients = differences(network, golden)  # infinite where one side has something more
    assert outputs <= 1e-5
    assert gradients <= 1e-5  # relative to the largest element of a gradient that exceeds 1


@pytest.mark.parametrize("folder", CLASSIFIERS)
def test_prediction_agrees_too(folder):
    golden, encoder = expected_of(folder), loaded(folder)
    with paddle.no_grad():
        close(outputs_of(encoder, golden)["sequence_output"].numpy()[0], golden["sequence_output"][0])
        batch = {name: golden[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
        close(encoder(**batch, cls_only=True).pooled_output.numpy(), golden["pooled_output"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_distinctive_setting_matters(folder):
    """Otherwise the tests above would not show that each folder has the right one."""
    golden, config = expected_of(folder), read_config(GOLDEN / folder)
    if folder.startswith("xlnet"):
        change = {"clamp_len": {-1: 2, 2: -1}[config.clamp_len]}
    else:
        change = {"layer_norm_eps": {1e-12: 1e-5, 1e-5: 1e-12}[config.layer_norm_eps]}
    assert abs(pooled_of(loaded(folder, **change), golden) - golden["pooled_output"]).max() > 1e-4


@pytest.mark.parametrize("name", [name for name, layouts in LAYOUTS.items() if len(layouts) > 1])
def test_all_layouts_of_an_architecture_hold_the_same_weights(name):
    """To the bit; so a parameter that is transposed wrongly cannot hide behind a tolerance."""
    first, *others = (read_weights(GOLDEN / name / layout) for layout in LAYOUTS[name])
    for other in others:
        assert first.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(array, other.arrays[key]) for key, array in first.arrays.items())
        tied = {"cls.predictions.decoder_weight"}  # stored or left out
        assert first.heads.keys() | tied == other.heads.keys() | tied
        assert all(np.array_equal(first.heads[key], other.heads[key]) for key in first.heads.keys() & other.heads)


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in CLASSIFIERS])
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
    assert {f"{model.name}/{path.name}" for model in models for path in model.iterdir() if path.is_dir()} == set(
        FOLDERS
    )


@pytest.mark.parametrize("layout", ["onion", "huggingface", "paddlenlp"])
@both_families
def test_what_is_saved_is_loaded_again(folder, layout, tmp_path):
    encoder, golden = loaded(folder), expected_of(folder)
    encoder.save_pretrained(tmp_path, layout)
    again = load_encoder(tmp_path)
    again.eval()
    assert (type(again), again.config) == (type(encoder), encoder.config)
    assert read_weights(tmp_path).ignored == ()
    assert np.array_equal(pooled_of(encoder, golden), pooled_of(again, golden))


@both_families
def test_padding_on_either_side_does_not_matter(folder):
    encoder = loaded(folder)
    ids, types = np.array([[7, 8, 9]]), np.array([[0, 1, 1]])

    def padded(*sides):
        return encoder(*(np.pad(each, ((0, 0), sides)) for each in (ids, types))).pooled_output.numpy()

    close(padded(0, 2), padded(0, 0))
    if folder.startswith("xlnet"):  # positions are absolute in the other
        close(padded(2, 0), padded(0, 0))


@both_families
def test_the_first_layers_alone_share_the_parameters(folder):
    golden, encoder = expected_of(folder), loaded(folder)
    first = encoder.first_layers(1)
    assert first.config == attrs.evolve(encoder.config, num_hidden_layers=1)
    names = dict(encoder.named_parameters())
    assert all(parameter is names[name] for name, parameter in first.named_parameters())
    assert len(dict(first.named_parameters())) < len(names)
    assert not np.allclose(pooled_of(first, golden), golden["pooled_output"], atol=1e-3)
