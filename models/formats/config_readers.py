"""Find a folder's config, and convert its four formats to one set of names.

    config.json            flat: Hugging Face's, PaddleNLP's (since 2.4.9) and onion's
    model_config.json      nested: PaddleNLP's until 2.4.2, a task model that contains the description of its encoder
    ernie_config.json      static ERNIE's, before PaddleNLP
    bert_config.json       the first BERT's; flat

Sources: transformers ``models/{bert,roberta,ernie}/configuration_*.py``; PaddleNLP 2.8.1
``transformers/{bert,roberta,ernie}/{configuration,modeling}.py``; ERNIE (static graph) ``ernie/model/ernie.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onion.errors import WeightsError
from onion.models.formats.layouts import holds_static
from onion.models.formats.paths import is_file, is_folder, reading

CONFIG_FILE = "config.json"
STATIC_FILE = "ernie_config.json"
CONFIG_FILES = (CONFIG_FILE, "model_config.json", STATIC_FILE, "bert_config.json")

# Static ERNIE uses the LayerNorm of Paddle 1.x; no config contains its epsilon.
STATIC_EPS = 1e-5
# Defaults of PaddleNLP 2.x for what its nested config, which contains the given arguments only, omits.
_PADDLENLP = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 16,
    "pad_token_id": 0,
}
# ERNIE's default in transformers and PaddleNLP.
_ERNIE_TASKS = 3
# "ErnieForSequenceClassification" -> "Ernie"; ErnieGram, ErnieM, XLMRoberta and others are different encoders.
_CLASS = re.compile(r"([A-Z]\w*?)(?:Model|LMHeadModel|For[A-Z]\w*)")
# The only supported values.
MUST_BE = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}

# Keys of foreign configs that do not affect an encoder's outputs; all others are unknown.
_HARMLESS = """
    architectures init_class init_args transformers_version paddlenlp_version torch_dtype dtype _name_or_path
    _attn_implementation attn_implementation _commit_hash tokenizer_class language finetuning_task prefix
    classifier_dropout dropout num_labels num_classes num_choices id2label label2id problem_type task_specific_params
    output_attentions output_hidden_states output_scores output_past return_dict return_dict_in_generate use_cache
    use_return_dict torchscript use_bfloat16 tie_word_embeddings tie_encoder_decoder gradient_checkpointing
    chunk_size_feed_forward pruned_heads is_encoder_decoder cross_attention_hidden_size keys_to_ignore_at_inference
    bos_token_id eos_token_id cls_token_id sep_token_id mask_token_id unk_token_id decoder_start_token_id
    forced_bos_token_id forced_eos_token_id max_length min_length do_sample early_stopping num_beams num_beam_groups
    diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
    encoder_no_repeat_ngram_size bad_words_ids num_return_sequences exponential_decay_length_penalty suppress_tokens
    begin_suppress_tokens remove_invalid_values tf_legacy_loss use_flash_attention fuse fuse_attention_qkv
    fuse_attention_ffn quantization_config recompute recompute_use_reentrant tensor_parallel_degree
    tensor_parallel_output tensor_parallel_rank sep_parallel_degree
    directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
    task_ids
"""
PASSED_OVER = frozenset(_HARMLESS.split()) | frozenset(MUST_BE)


def find(path: Path) -> Path:
    """Return the config file of a path: the file itself, or the one in the folder that belongs to its weights."""
    if not is_folder(path):
        return path if path.suffix == ".json" or is_file(path) else path / CONFIG_FILE
    named = [path / name for name in CONFIG_FILES if is_file(path / name)]
    # ERNIE 3.0 was published with one per size: ernie_config.base.json, ...
    static = sorted(path.glob("ernie_config*.json"))
    if static and (not named or holds_static(path)):
        return _only(path, static)
    if not named:
        raise WeightsError(f"{path}: contains no config: none of {', '.join(CONFIG_FILES)}")
    return named[0]


def _only(folder: Path, static: list[Path]) -> Path:
    """Return the config of static ERNIE's weights."""
    if folder / STATIC_FILE in static:
        return folder / STATIC_FILE
    if len(static) > 1:
        raise WeightsError(f"{folder}: several configs, give one: {', '.join(path.name for path in static)}")
    return static[0]


def read_values(path: Path) -> dict[str, Any]:
    """Return the content of a config file; raise a WeightsError unless it is a JSON object."""
    try:
        with reading(path):
            values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WeightsError(f"{path}: not a JSON file: {error}") from error
    except RecursionError as error:
        raise WeightsError(f"{path}: not a JSON file: nested too deeply") from error
    if not isinstance(values, dict):
        raise WeightsError(f"{path}: contains a JSON {type(values).__name__}, not an object")
    return values


def model_type_of(values: Mapping[str, Any], name: str = CONFIG_FILE) -> object:
    """Return the ``model_type`` of a config of any format, unchecked: as given, or derived from the class name."""
    if _is_static_ernie(values, name):
        return "ernie"
    return _family(_nested(values) if _is_nested(values) else values)


def translate(values: Mapping[str, Any], name: str = CONFIG_FILE) -> dict[str, Any]:
    """Convert a config of any format to the names of ``EncoderConfig``; other keys stay.

    Static ERNIE's older configs are recognized by the name of the file.

    Raises:
        WeightsError: the model is not supported, or keys are missing that nothing else checks.
    """
    if _is_static_ernie(values, name):
        values = _static_ernie(values)
    elif _is_nested(values):
        values = _nested(values)
    refuse_variants(values, MUST_BE)
    values = {**values, "model_type": _family(values)}
    if values["model_type"] == "roberta":
        return _roberta(values)
    if values["model_type"] == "ernie":
        values.setdefault("task_type_vocab_size", _ERNIE_TASKS)
    if values["model_type"] == "bert" and values.get("pool_act", "tanh") != "tanh":
        values["pool_act"] = "linear"  # PaddleNLP's BERT applies tanh or nothing
    return values


def refuse_variants(values: Mapping[str, Any], supported: Mapping[str, Any]) -> None:
    """Raise a WeightsError if a config has another value than the supported one, which is also the default."""
    for key, only in supported.items():
        if values.get(key, only) != only:
            raise WeightsError(f"{key} {values[key]!r} is not supported, only {only!r} is")


def _is_static_ernie(values: Mapping[str, Any], name: str) -> bool:
    return name.startswith("ernie_config") or "sent_type_vocab_size" in values


def _is_nested(values: Mapping[str, Any]) -> bool:
    return "init_class" in values or "init_args" in values


def _family(values: Mapping[str, Any]) -> object:
    """Return the model type, as given or derived from the class name; BERT's first configs have neither."""
    if "model_type" in values:
        return values["model_type"]
    named = values.get("init_class") or values.get("architectures")
    if not named:
        return "bert"
    named = named[0] if isinstance(named, list) else named
    match = _CLASS.fullmatch(str(named))
    if match is None:
        raise WeightsError(f"the model {named} is not supported: this is not the name of a model class")
    return match[1].lower()


def _static_ernie(values: Mapping[str, Any]) -> dict[str, Any]:
    """Sentence types have two names; the feed-forward width is not given, and task embeddings are off by default."""
    types = values.get("sent_type_vocab_size") or values.get("type_vocab_size")
    if types is None:
        raise WeightsError("missing keys: sent_type_vocab_size (or type_vocab_size)")
    found = {key: value for key, value in values.items() if key != "sent_type_vocab_size"}
    found |= {"model_type": "ernie", "type_vocab_size": types, "use_task_id": bool(values.get("use_task_id"))}
    found.setdefault("layer_norm_eps", STATIC_EPS)
    if isinstance(values.get("hidden_size"), int):
        found.setdefault("intermediate_size", 4 * values["hidden_size"])
    return found


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the innermost description, the encoder's, with PaddleNLP's defaults."""
    while True:
        arguments = values.get("init_args")
        places = [*(arguments if isinstance(arguments, list) else [arguments]), *values.values()]
        inner = [place for place in places if isinstance(place, dict) and "init_class" in place]
        if not inner:
            return {**_PADDLENLP, **values}
        values = inner[0]


def _roberta(values: dict[str, Any]) -> dict[str, Any]:
    """Distinguish two kinds of RoBERTa, which have the same class in PaddleNLP.

    RoBERTa-wwm (Chinese) is a BERT with BERT's vocabulary, padding id 0, and positions from 0. RoBERTa proper always
    pads with 1, which is also the default of a config without a padding id (in a nested one it is 0). ``cls_token_id``
    does not help: by default PaddleNLP writes 101, that of BERT's vocabulary, for both, and omitted it from the nested
    configs of RoBERTa-wwm. (PaddleNLP 2.8.1 counts positions from the padding id + 1 for both; RoBERTa-wwm was trained
    from 0, and its authors publish it as a BERT for transformers.)
    """
    values = {"pad_token_id": 1, **values}
    if values["pad_token_id"] == 0 and "position_offset" not in values:
        values["model_type"] = "bert"
    return values
