"""What the files of sentence-transformers in an encoder's folder say about its vectors."""

import json

import numpy as np
import pytest

from onion.errors import WeightsError
from onion.tasks.embedding.declared import declared_pooling, pooling_for
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.pooling import Pooling
from tests.tasks.helpers import tiny_encoder

TRANSFORMER, POOLING, NORMALIZE = "Transformer", "Pooling", "Normalize"
PREFIXES = {  # of the first and of the newest versions
    TRANSFORMER: "sentence_transformers.base.modules.transformer.",
    **dict.fromkeys((POOLING, NORMALIZE, "Dense"), "sentence_transformers.models."),
}
TEXTS = ["a fine film", "a dull story about a film"]


@pytest.fixture
def declare(tmp_path):
    """Write the files of sentence-transformers into an encoder's folder, which is returned."""
    tiny_encoder(tmp_path)

    def write(modules=(TRANSFORMER, POOLING, NORMALIZE), pooling=None, transformer=None, **files):
        paths = {POOLING: "1_Pooling", NORMALIZE: "2_Normalize"}
        listed = [
            {"type": name if "." in name else PREFIXES[name] + name, "path": paths.get(name, "")} for name in modules
        ]
        (tmp_path / "1_Pooling").mkdir(exist_ok=True)
        written = {
            "modules": listed,
            "1_Pooling/config": {"pooling_mode_mean_tokens": True} if pooling is None else pooling,
            "sentence_bert_config": {"max_seq_length": 16} if transformer is None else transformer,
            **files,
        }
        for name, content in written.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return write


def test_vectors_are_made_as_the_folder_says(declare):
    folder = declare()
    assert declared_pooling(folder) == Pooling("mean", normalize=True, max_length=16)
    said = Embedder.from_pretrained(folder)
    asked = Embedder.from_pretrained(folder, "mean", normalize=True, max_length=16)
    assert said.max_length == 16
    assert np.array_equal(said(TEXTS), asked(TEXTS))
    assert np.linalg.norm(said(TEXTS), axis=1) == pytest.approx([1, 1])


def test_what_is_asked_for_replaces_it(declare):
    folder = declare()
    assert pooling_for(folder, "cls") == Pooling("cls")
    assert pooling_for(folder, layer=1, max_length=9) == Pooling("mean", 1, True, 9)
    assert pooling_for(folder, normalize=False) == Pooling("mean", max_length=16)
    assert pooling_for(declare((TRANSFORMER, POOLING)), normalize=True).normalize


def test_a_folder_without_such_files_has_the_default(tmp_path):
    tiny_encoder(tmp_path)
    assert declared_pooling(tmp_path) is None
    assert pooling_for(tmp_path) == Pooling()
    assert pooling_for(tmp_path, default=Pooling("mean", normalize=True), max_length=7) == Pooling(
        "mean", None, True, 7
    )


@pytest.mark.parametrize(
    ("pooling", "mode"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "cls", "include_prompt": True}, "cls"),
        ({"pooling_mode": ["mean"]}, "mean"),
        ({}, "mean"),  # of none that is switched on, as sentence-transformers has it
    ],
)
def test_flags_and_names_of_poolings(declare, pooling, mode):
    assert declared_pooling(declare(pooling=pooling)).pooling == mode


@pytest.mark.parametrize(
    ("transformer", "files", "length"),
    [
        ({}, {}, 24),  # the encoder's
        ({"max_seq_length": 512}, {}, 24),
        ({"max_seq_length": 20}, {"tokenizer_config": {"model_max_length": 10}}, 20),
        ({"max_seq_length": None}, {"tokenizer_config": {"model_max_length": 20}}, 20),
        ({}, {"tokenizer_config": {"model_max_length": 10**30}}, 24),
    ],
)
def test_the_length_is_that_of_the_model_or_else_of_the_tokenizer(declare, transformer, files, length):
    assert declared_pooling(declare(transformer=transformer, **files)).max_length == length


@pytest.mark.parametrize("place", ["..", "../other", "/etc", ""])
def test_the_pooling_is_in_a_folder_beside(declare, place):
    folder = declare()
    listed = json.loads((folder / "modules.json").read_text())
    listed[1]["path"] = place
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(WeightsError, match="which is not the name of a folder"):
        declared_pooling(folder)


def test_an_older_model_has_its_settings_in_a_file_of_another_name(declare):
    folder = declare()
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    assert declared_pooling(folder).max_length == 16


def test_an_encoder_without_limit_reads_as_many_tokens_as_without_such_files(declare, tmp_path):
    folder = declare(transformer={})
    sizes = {"d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8}
    (folder / "config.json").write_text(json.dumps({"model_type": "xlnet", "vocab_size": 40, **sizes}))
    assert declared_pooling(folder) == Pooling("mean", normalize=True)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    with pytest.raises(WeightsError, match="the vector of XLNet's first token"):
        declared_pooling(folder)


def test_lower_case_is_what_a_tokenizer_without_case_makes_anyway(declare):
    assert declared_pooling(declare(transformer={"do_lower_case": True})).max_length == 24
    with pytest.raises(WeightsError, match="do_lower_case with a tokenizer that keeps capitals"):
        declared_pooling(declare(transformer={"do_lower_case": True}, tokenizer_config={"do_lower_case": False}))


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"modules": (TRANSFORMER, POOLING, "Dense")}, r"modules\.json: the modules Transformer, Pooling, Dense"),
        ({"modules": (TRANSFORMER, NORMALIZE, POOLING)}, "the modules Transformer, Normalize, Pooling, in this order,"),
        ({"modules": (TRANSFORMER,)}, "the modules Transformer, in this order, is not supported"),
        ({"modules": ("custom_st.Transformer", POOLING)}, "the modules custom_st.Transformer, Pooling"),
        (
            {"pooling": {"pooling_mode_max_tokens": True}},
            r"1_Pooling/config\.json: pooling \['pooling_mode_max_tokens'\]",
        ),
        ({"pooling": {"pooling_mode": ["cls", "mean"]}}, "pooling \\['cls', 'mean'\\] is not supported"),
        ({"pooling": {"pooling_mode": 5}}, "pooling 5 is not supported"),
        (
            {"pooling": {"pooling_mode": [["cls"]]}},
            "pooling .* is not supported; choose a pooling \\(cls, mean, pooler",
        ),
        ({"config_sentence_transformers": {"default_prompt_name": "query"}}, "the prompt 'query' before each text"),
        ({"transformer": {"max_seq_length": "256"}}, "max_seq_length is '256'; it must be a positive integer"),
        ({"transformer": {"max_seq_length": True}}, "max_seq_length is True"),
    ],
)
def test_what_is_not_computed_is_refused_unless_a_pooling_is_asked_for(declare, files, told):
    folder = declare(**files)
    with pytest.raises(WeightsError, match=told):
        Embedder.from_pretrained(folder)
    assert Embedder.from_pretrained(folder, "mean", max_length=16)(TEXTS).shape[0] == 2


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", "{"),
        ("modules.json", "[5]"),
        ("modules.json", '[{"type": 1}]'),
        ("1_Pooling/config.json", "[]"),
    ],
)
def test_a_damaged_or_missing_file_is_named(declare, file, content):
    folder = declare()
    (folder / file).write_text(content)
    with pytest.raises(WeightsError, match=file):
        pooling_for(folder)
    (folder / "1_Pooling" / "config.json").unlink()
    declare_again = "missing, which modules.json names" if file != "modules.json" else "modules.json is damaged"
    with pytest.raises(WeightsError, match=declare_again):
        pooling_for(folder)
