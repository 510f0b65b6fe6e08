from urllib.parse import urlsplit

import pytest

from onion.models.config import EncoderConfig
from onion.models.downloads.sources import ALIASES, SOURCES, Archive, Files, Wheel

FETCHED = {name: source for name, source in SOURCES.items() if not isinstance(source, Wheel)}
HOSTS = {"huggingface.co", "bj.bcebos.com", "baidu-nlp.bj.bcebos.com", "ernie.bj.bcebos.com"}
WEIGHTS = {"model.safetensors", "pytorch_model.bin", "model_state.pdparams"}
# The names that users of the three know.
ERNIE = ["ernie-1.0", "ernie-2.0-en", "ernie-2.0-large-en", "ernie-tiny"]
PADDLENLP = ["ernie-1.0-base-zh", "ernie-2.0-base-en", "bert-base-uncased", "bert-base-cased", "bert-large-uncased"]
PADDLENLP += ["bert-base-chinese", "bert-base-multilingual-cased", "roberta-wwm-ext", "roberta-wwm-ext-large"]
PADDLENLP += ["ernie-1.0-base-zh-cw", "ernie-2.0-base-en-finetuned-squad", "rbt3", "hfl/rbt3", "rbtl3", "hfl/rbtl3"]
PADDLENLP += [f"ernie-3.0-tiny-{size}-v2-zh" for size in ("base", "medium", "mini", "micro", "nano", "pico")]
PADDLENLP += [f"ernie-3.0-{size}-zh" for size in ("xbase", "base", "medium", "mini", "micro", "nano")]
PALM = ["bert-en-uncased-base", "bert-zh-base", "ernie-v1-zh-base", "ernie-v2-en-large", "roberta-zh-base"]


def remotes(source):
    return [source.file] if isinstance(source, Archive) else source.files


@pytest.mark.parametrize("name", [*ERNIE, *PADDLENLP, *PALM, "minilm", "roberta-base"])
def test_the_names_that_people_know(name):
    assert ALIASES.get(name, name) in SOURCES


@pytest.mark.parametrize("name", FETCHED)
def test_addresses_and_names_are_plain(name):
    source = FETCHED[name]
    assert name == name.lower()
    assert not set("/\\: ") & set(name)  # it becomes a folder
    assert source.origin
    names = [remote.name for remote in remotes(source)]
    assert len(names) == len(set(names))
    for remote in remotes(source):
        address = urlsplit(remote.url)
        assert address.scheme == "https"
        assert address.hostname in HOSTS
        assert not address.query
        assert address.path.rpartition("/")[2]
        assert not set("/\\: ") & set(remote.name)


@pytest.mark.parametrize("name", [name for name, source in FETCHED.items() if isinstance(source, Files)])
def test_a_model_of_several_files_has_all_that_it_needs(name):
    source = FETCHED[name]
    names = {remote.name for remote in source.files} | set(source.written)
    assert len(names & WEIGHTS) == 1
    assert "config.json" in names
    assert names & {"vocab.txt", "vocab.json"}
    assert not {remote.name for remote in source.files} & set(source.written)


def test_other_names_lead_to_names_of_the_table_and_hide_none():
    assert set(ALIASES.values()) <= set(SOURCES)
    assert not set(ALIASES) & set(SOURCES)
    assert all(name == name.lower() for name in ALIASES)


def test_no_two_models_share_their_weights():
    urls = [remotes(source)[0].url for source in FETCHED.values()]
    assert len(urls) == len(set(urls))


@pytest.mark.parametrize("name", [name for name, source in FETCHED.items() if isinstance(source, Files)])
def test_written_configs_are_read(name):
    config = SOURCES[name].written.get("config.json")
    assert config is None or EncoderConfig.from_dict(config).hidden_size == config["hidden_size"]


def test_written_configs_are_those_of_the_reference():
    """Source: PaddleNLP transformers/ernie/configuration.py; systems.md 3.1 of the static ones."""
    tiny = SOURCES["ernie-tiny"].written["config.json"]
    assert (tiny["hidden_size"], tiny["num_hidden_layers"], tiny["intermediate_size"]) == (1024, 3, 4096)
    assert (tiny["max_position_embeddings"], tiny["vocab_size"], tiny["hidden_act"]) == (600, 50006, "relu")
    base = SOURCES["ernie-1.0-base-zh"].written["config.json"]
    assert (base["max_position_embeddings"], base["vocab_size"], base["type_vocab_size"]) == (513, 18000, 2)
    assert (base["hidden_act"], base["use_task_id"]) == ("relu", False)
    reworked = SOURCES["ernie-1.0-base-zh-cw"].written["config.json"]
    assert (reworked["task_type_vocab_size"], reworked["vocab_size"], reworked["hidden_act"]) == (3, 40000, "gelu")
    pico = SOURCES["ernie-3.0-tiny-pico-v2-zh"].written["config.json"]
    assert (pico["hidden_size"], pico["num_attention_heads"], pico["use_task_id"]) == (128, 2, False)
    rbt = SOURCES["rbtl3"].written
    assert (rbt["config.json"]["model_type"], rbt["config.json"]["num_hidden_layers"]) == ("bert", 3)
    assert rbt["tokenizer_config.json"]["tokenizer_class"] == "BertTokenizer"
    medium = SOURCES["ernie-3.0-medium-zh"].written["config.json"]
    assert (medium["max_position_embeddings"], medium["task_type_vocab_size"], medium["use_task_id"]) == (
        2048,
        16,
        True,
    )
    assert SOURCES["ernie-3.0-base-zh"].written["config.json"]["task_type_vocab_size"] == 3
