"""Networks in transformers' names.

That transformers 5.23 computes the same with each of them, to 1e-6, was tried with the encoders of tests/models/golden.
"""

import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.models.auto import load_encoder, new_encoder
from onion.models.config import EncoderConfig
from onion.models.electra.config import ElectraConfig
from onion.models.formats.safetensors_file import read_safetensors
from onion.models.xlnet.config import XLNetConfig
from onion.tasks.finetune.run_files import write_json
from onion.tasks.publishing.transformers_names import config_of
from onion.tasks.publishing.weights import read_network, write_network
from onion.tasks.registry import TASKS, get_task

SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BERT = {**SIZES, "max_position_embeddings": 12}
CONFIGS = {
    "bert": EncoderConfig(**BERT, model_type="bert"),
    "ernie": EncoderConfig(**BERT, model_type="ernie", task_type_vocab_size=3, use_task_id=True),
    "roberta": EncoderConfig(**BERT, model_type="roberta", pad_token_id=1),
    "electra": ElectraConfig(**BERT, embedding_size=4),
    "xlnet": XLNetConfig(**SIZES),
}
OUT = "classifier.out_proj"
SENTENCES = {"bert": "classifier", "ernie": "classifier", "roberta": OUT, "electra": OUT, "xlnet": "logits_proj"}
SETTINGS = {
    "classification": {"labels": ["bad", "so-so", "good"]},
    "matching": {"labels": ["0", "1"], "learning": "pointwise"},
    "multilabel": {"labels": ["bad", "so-so", "good"]},
    "token-classification": {"labels": ["O", "B", "I"], "decoder": "crf"},
}
LAYERS = {"token-classification": "classifier", "question-answering": "qa_outputs"}
ALL = [(task, family) for task in TASKS for family in CONFIGS]


@pytest.mark.parametrize(("name", "family"), ALL)
def test_a_network_is_written_with_transformers_names_and_read_again(name, family, tmp_path):
    task, config = get_task(name, SETTINGS.get(name, {})), CONFIGS[family]
    paddle.seed(1)
    try:
        network = task.network(new_encoder(config))
    except DataError:
        assert (name, family) in {("masked-lm", "electra"), ("masked-lm", "xlnet")}
        return
    written = {path: each.numpy() for path, each in network.state_dict().items()}
    write_network(tmp_path, written, config, name)
    keys = config_of(task, family)
    write_json(tmp_path / "config.json", {**config.to_dict(), **keys})
    read = read_network(tmp_path, name)
    assert read.keys() == written.keys()
    assert all(np.array_equal(read[path], written[path]) for path in read)

    stored = read_safetensors(tmp_path / "model.safetensors")
    if name != "masked-lm":
        layer = LAYERS.get(name, SENTENCES[family])
        assert np.array_equal(stored[f"{layer}.weight"], written["classifier.weight"].T)
        assert np.array_equal(stored[f"{layer}.bias"], written["classifier.bias"])
    if (name, family) == ("classification", "roberta"):  # whose classifier has the pooler again
        assert np.array_equal(stored["classifier.dense.weight"], stored["roberta.pooler.dense.weight"])
    encoder = load_encoder(tmp_path)  # for another task
    word = "word_embedding" if family == "xlnet" else "embeddings.word_embeddings"
    assert np.array_equal(encoder.state_dict()[f"{word}.weight"].numpy(), written[f"encoder.{word}.weight"])


@pytest.mark.parametrize(
    ("name", "settings", "family", "keys"),
    [
        (
            "classification",
            SETTINGS["classification"],
            "bert",
            {
                "architectures": ["BertForSequenceClassification"],
                "problem_type": "single_label_classification",
                "id2label": {"0": "bad", "1": "so-so", "2": "good"},
                "label2id": {"bad": 0, "so-so": 1, "good": 2},
            },
        ),
        (
            "regression",
            {},
            "xlnet",
            {
                "architectures": ["XLNetForSequenceClassification"],
                "problem_type": "regression",
                "id2label": {"0": "value"},
                "label2id": {"value": 0},
            },
        ),
        (
            "matching",
            {"labels": ["0", "1"], "learning": "pairwise"},
            "ernie",
            {
                "architectures": ["ErnieForSequenceClassification"],
                "id2label": {"0": "value"},
                "label2id": {"value": 0},
            },
        ),
        ("question-answering", {}, "xlnet", {"architectures": ["XLNetForQuestionAnsweringSimple"]}),
        ("masked-lm", {}, "roberta", {"architectures": ["RobertaForMaskedLM"]}),
    ],
)
def test_what_the_config_tells_transformers(name, settings, family, keys):
    assert config_of(get_task(name, settings), family) == keys


def test_the_head_of_a_users_own_task_is_kept_under_its_own_name(tmp_path):
    config = CONFIGS["bert"]
    encoder = {f"encoder.{name}": each.numpy() for name, each in new_encoder(config).state_dict().items()}
    head = {"scorer.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    write_network(tmp_path, encoder | head, config, "my-task")
    config.write(tmp_path)
    assert np.array_equal(read_network(tmp_path, "my-task")["scorer.weight"], head["scorer.weight"])
    load_encoder(tmp_path)


def test_sixteen_bits_become_float32(tmp_path):
    config = CONFIGS["bert"]
    network = {f"encoder.{name}": each.numpy() for name, each in new_encoder(config).state_dict().items()}
    ones = {"float16": np.ones(8, np.float16), "bfloat16": np.full(8, 0x3F80, np.uint16)}  # as Paddle gives bfloat16
    for array in ones.values():
        write_network(tmp_path, {**network, "encoder.pooler.dense.bias": array}, config, "classification")
        config.write(tmp_path)
        read = read_network(tmp_path, "classification")["encoder.pooler.dense.bias"]
        assert (read.dtype, read.tolist()) == (np.float32, [1.0] * 8)
