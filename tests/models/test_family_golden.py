"""Small random ELECTRAs and XLNets, saved by transformers, loaded and run by us.

scripts/make_golden_encoders.py made the folders, of classifiers: the poolers of these families are parts of such heads.
"""

from pathlib import Path

import attrs
import numpy as np
import paddle
import pytest

from onion.models.auto import load_encoder
from onion.models.families import read_config
from onion.models.weights import read_weights

GOLDEN = Path(__file__).parent / "golden"
FOLDERS = [
    "electra/huggingface",
    "electra/torch",
    "electra_equal/huggingface",
    "xlnet/huggingface",
    "xlnet/torch",
    "xlnet_clamped/huggingface",
]
HEADS = ("classifier.", "logits_proj.", "mask_emb")
"""Parameters that get a gradient there and are no part of our encoders, or get none."""


def test_every_golden_folder_is_tested():
    models = [path.parent for name in ("electra", "xlnet") for path in GOLDEN.glob(f"{name}*/expected.npz")]
    assert {f"{model.name}/{path.name}" for model in models for path in model.iterdir() if path.is_dir()} == set(
        FOLDERS
    )


def expected_of(folder):
    return dict(np.load(GOLDEN / Path(folder).parent / "expected.npz"))


def encoded(encoder, golden, **more):
    return encoder(
        golden["input_ids"],
        token_type_ids=golden["token_type_ids"],
        attention_mask=golden["attention_mask"],
        **more,
    )


def close(found, expected, what=""):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(abs(expected).max(), 1), err_msg=what)


@pytest.mark.parametrize("folder", FOLDERS)
def test_outputs_and_all_gradients_agree(folder, caplog):
    golden, encoder = expected_of(folder), load_encoder(GOLDEN / folder)
    encoder.eval()
    assert not caplog.records  # nothing was missing or unknown
    outputs = dict(zip(("sequence_output", "pooled_output"), encoded(encoder, golden), strict=True))
    tokens = golden["attention_mask"][:, :, None]
    close(outputs["sequence_output"].numpy(), golden["sequence_output"] * tokens)
    close(outputs["pooled_output"].numpy(), golden["pooled_output"])

    sum((out * paddle.to_tensor(golden[f"factor:{name}"])).sum() for name, out in outputs.items()).backward()
    gradients = {key.removeprefix("gradient:"): array for key, array in golden.items() if key.startswith("gradient:")}
    parameters = {name: p for name, p in encoder.named_parameters() if not name.startswith(HEADS)}
    assert parameters.keys() == {name for name in gradients if not name.startswith(HEADS)}
    for name, parameter in parameters.items():
        close(parameter.grad.numpy(), gradients[name], name)


@pytest.mark.parametrize("folder", FOLDERS)
def test_prediction_agrees_too(folder):
    golden, encoder = expected_of(folder), load_encoder(GOLDEN / folder)
    encoder.eval()
    with paddle.no_grad():
        close(encoded(encoder, golden).sequence_output.numpy()[0], golden["sequence_output"][0])
        close(encoded(encoder, golden, cls_only=True).pooled_output.numpy(), golden["pooled_output"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_distinguishes_the_cases_matters(folder):
    """Otherwise the tests above would not show that it is right."""
    golden, config = expected_of(folder), read_config(GOLDEN / folder)
    change = {
        "electra": {"layer_norm_eps": 1e-5},
        "electra_equal": {"layer_norm_eps": 1e-5},
        "xlnet": {"clamp_len": 2},
        "xlnet_clamped": {"clamp_len": -1},
    }[Path(folder).parent.name]
    assert all(getattr(config, name) != value for name, value in change.items())
    encoder = load_encoder(GOLDEN / folder, **change)
    encoder.eval()
    assert abs(encoded(encoder, golden).pooled_output.numpy() - golden["pooled_output"]).max() > 1e-4


@pytest.mark.parametrize("name", ["electra", "xlnet"])
def test_all_layouts_hold_the_same_weights(name):
    one, other = (read_weights(GOLDEN / name / layout) for layout in ("huggingface", "torch"))
    assert one.arrays.keys() == other.arrays.keys()
    assert all(np.array_equal(array, other.arrays[key]) for key, array in one.arrays.items())


@pytest.mark.parametrize("layout", ["onion", "huggingface", "paddlenlp"])
@pytest.mark.parametrize("folder", ["electra/huggingface", "xlnet/huggingface"])
def test_what_is_saved_is_loaded_again(folder, layout, tmp_path):
    encoder, golden = load_encoder(GOLDEN / folder), expected_of(folder)
    encoder.save_pretrained(tmp_path, layout)
    again = load_encoder(tmp_path)
    assert (type(again), again.config) == (type(encoder), encoder.config)
    assert read_weights(tmp_path).ignored == ()
    for one in (encoder, again):
        one.eval()
    assert np.array_equal(*(encoded(one, golden).pooled_output.numpy() for one in (encoder, again)))


@pytest.mark.parametrize("folder", ["electra/huggingface", "xlnet/huggingface"])
def test_without_padding_and_with_padding_on_either_side_the_same(folder):
    encoder = load_encoder(GOLDEN / folder)
    encoder.eval()
    ids, types = np.array([[7, 8, 9]]), np.array([[0, 1, 1]])
    alone = encoder(ids, types).pooled_output.numpy()
    right = encoder(np.pad(ids, ((0, 0), (0, 2))), np.pad(types, ((0, 0), (0, 2)))).pooled_output.numpy()
    close(right, alone)
    if folder.startswith("xlnet"):  # positions are absolute in the other
        left = encoder(np.pad(ids, ((0, 0), (2, 0))), np.pad(types, ((0, 0), (2, 0)))).pooled_output.numpy()
        close(left, alone)


@pytest.mark.parametrize("folder", ["electra/huggingface", "xlnet/huggingface"])
def test_the_first_layers_alone_share_the_parameters(folder):
    golden, encoder = expected_of(folder), load_encoder(GOLDEN / folder)
    encoder.eval()
    first = encoder.first_layers(1)
    assert first.config == attrs.evolve(encoder.config, num_hidden_layers=1)
    names = dict(encoder.named_parameters())
    assert all(parameter is names[name] for name, parameter in first.named_parameters())
    assert len(dict(first.named_parameters())) < len(names)
    assert not np.allclose(encoded(first, golden).pooled_output.numpy(), golden["pooled_output"], atol=1e-3)
