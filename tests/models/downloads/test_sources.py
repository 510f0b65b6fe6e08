from urllib.parse import urlsplit

import pytest

from onion.models.config import EncoderConfig
from onion.models.downloads.repository import is_repository
from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES, Archive, Files

HOSTS = {"bj.bcebos.com", "baidu-nlp.bj.bcebos.com", "ernie.bj.bcebos.com"}
FILES = {name: source for name, source in SOURCES.items() if isinstance(source, Files)}
URLS = {name: source.urls for name, source in FILES.items()}
URLS |= {name: {source.file: source.url} for name, source in SOURCES.items() if isinstance(source, Archive)}
# The names that users of the three know.
ERNIE = ["ernie-1.0", "ernie-2.0-en", "ernie-2.0-large-en", "ernie-tiny"]
PADDLENLP = ["ernie-1.0-base-zh", "ernie-2.0-base-en", "bert-base-uncased", "bert-base-cased", "bert-large-uncased"]
PADDLENLP += ["bert-base-chinese", "bert-base-multilingual-cased", "roberta-wwm-ext", "roberta-wwm-ext-large"]
PADDLENLP += ["ernie-1.0-base-zh-cw", "ernie-2.0-base-en-finetuned-squad", "rbt3", "rbtl3"]
PADDLENLP += [f"ernie-3.0-tiny-{size}-v2-zh" for size in ("base", "medium", "mini", "micro", "nano", "pico")]
PADDLENLP += [f"ernie-3.0-{size}-zh" for size in ("xbase", "base", "medium", "mini", "micro", "nano")]
PALM = ["bert-en-uncased-base", "bert-zh-base", "ernie-v1-zh-base", "ernie-v2-en-large", "roberta-zh-base"]


@pytest.mark.parametrize("name", [*ERNIE, *PADDLENLP, *PALM, "minilm", "roberta-base"])
def test_the_names_that_people_know(name):
    assert name in {*SOURCES, *REPOSITORIES, *ALIASES}


def test_names_are_plain_and_stand_in_one_table():
    assert len({*SOURCES, *REPOSITORIES, *ALIASES}) == len(SOURCES) + len(REPOSITORIES) + len(ALIASES)
    assert all(name == name.lower() for name in (*SOURCES, *REPOSITORIES, *ALIASES))
    assert not set("/\\: @") & set("".join(SOURCES))  # they become folders
    assert set(ALIASES.values()) <= set(SOURCES)
    assert all(map(is_repository, REPOSITORIES.values()))


@pytest.mark.parametrize("name", URLS)
def test_addresses_and_files_are_plain(name):
    for file, url in URLS[name].items():
        address = urlsplit(url)
        assert (address.scheme, address.query) == ("https", "")
        assert address.hostname in HOSTS
        assert not set("/\\: ") & set(file)


def test_no_two_models_share_their_weights():
    urls = [next(iter(urls.values())) for urls in URLS.values()]
    assert len(urls) == len(set(urls))


@pytest.mark.parametrize("name", FILES)
def test_a_model_of_several_files_has_all_that_it_needs(name):
    source = FILES[name]
    assert {"model_state.pdparams", "vocab.txt"} <= set(source.urls)
    assert set(source.written) == {"config.json", "tokenizer_config.json"}
    config = source.written["config.json"]
    assert EncoderConfig.from_dict(config).hidden_size == config["hidden_size"]


def test_written_configs_are_those_of_the_reference():
    """Source: PaddleNLP transformers/ernie/configuration.py; systems.md 3.1 of the static ones."""
    tiny = FILES["ernie-tiny"].written["config.json"]
    assert (tiny["hidden_size"], tiny["num_hidden_layers"], tiny["intermediate_size"]) == (1024, 3, 4096)
    assert (tiny["max_position_embeddings"], tiny["vocab_size"], tiny["hidden_act"]) == (600, 50006, "relu")
    base = FILES["ernie-1.0-base-zh"].written["config.json"]
    assert (base["max_position_embeddings"], base["vocab_size"], base["type_vocab_size"]) == (513, 18000, 2)
    assert (base["hidden_act"], base["use_task_id"]) == ("relu", False)
    reworked = FILES["ernie-1.0-base-zh-cw"].written["config.json"]
    assert (reworked["task_type_vocab_size"], reworked["vocab_size"], reworked["hidden_act"]) == (3, 40000, "gelu")
    pico = FILES["ernie-3.0-tiny-pico-v2-zh"].written["config.json"]
    assert (pico["hidden_size"], pico["num_attention_heads"], pico["use_task_id"]) == (128, 2, False)
    medium = FILES["ernie-3.0-medium-zh"].written["config.json"]
    assert (medium["max_position_embeddings"], medium["task_type_vocab_size"]) == (2048, 16)
    assert medium["use_task_id"] is True
    assert FILES["ernie-3.0-base-zh"].written["config.json"]["task_type_vocab_size"] == 3
