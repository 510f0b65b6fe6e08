"""The network of a pretraining: one encoder, a head for each task, and the folder that others load the encoder from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from paddle import nn

from onion.checkpointing.rng import seeded
from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.auto import encoder_class, new_encoder
from onion.models.encoder import Encoder
from onion.models.families import read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import arrays_of
from onion.models.pretraining_heads import EncoderForPretraining, WordPrediction
from onion.models.tokenizer import Tokenizer
from onion.models.weights import Weights, read_weights
from onion.tasks.data.features.hashing import digest_of_tokenizer
from onion.tasks.data.texts import check_max_length
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.pretraining.token_frequencies import log_frequencies

NEXT_SENTENCE = "next-sentence"
"""The task whose head other systems load too."""

NEXT_FIRST = frozenset({"bert"})
"""Families whose head for pairs has the class of a text that follows first; ERNIE's, as the task, has it second."""


def new_network(config: PretrainedConfig, corpus: Corpus, tasks: Mapping[str, PretrainingTask], seed: int) -> MultiHead:
    """Return a network with random weights.

    The weights of the encoder and of each head are functions of the seed and their own name, and the bias of the masked
    LM head is the logarithm of how often the corpus has each token, so a task that comes later
    finds the weights that it would have had from the beginning.
    """
    with seeded(seed, "encoder"):
        encoder = new_encoder(config)
    return _with_heads(encoder, corpus, tasks, seed)


def pretrained_network(
    name_or_folder: str | Path, corpus: Corpus, tasks: Mapping[str, PretrainingTask], seed: int
) -> MultiHead:
    """Return a network that begins with the weights of a folder: the encoder's, and those of the heads that it has.

    A masked LM head that it has not begins as that of ``new_network``.

    Raises:
        WeightsError: the folder is no model, its tokenizer is another one than the corpus was made with, or it has
            fewer word embeddings.
    """
    folder = hub.resolve(name_or_folder)
    if digest_of_tokenizer(Tokenizer.from_pretrained(folder)) != digest_of_tokenizer(corpus.tokenizer):
        raise WeightsError(
            f"{folder}: its tokenizer is not the one that the corpus was built with; build the corpus with "
            f"--tokenizer {name_or_folder}"
        )
    weights, config = read_weights(folder), read_config(folder)
    if config.vocab_size < corpus.tokenizer.vocab_size:
        raise WeightsError(
            f"{folder}: its tokenizer has {corpus.tokenizer.vocab_size} tokens, and its encoder word embeddings for "
            f"{config.vocab_size}; use a folder in which they fit together"
        )
    with seeded(seed, "encoder"):  # a pooler may be missing
        encoder = encoder_class(config).of(config, weights)
    network = _with_heads(encoder, corpus, tasks, seed)
    _fill_heads(network, weights)
    return network


def _with_heads(encoder: nn.Layer, corpus: Corpus, tasks: Mapping[str, PretrainingTask], seed: int) -> MultiHead:
    if not isinstance(encoder, Encoder):
        raise DataError(
            f"a {type(encoder).__name__} is not pretrained by masked words; use an encoder of BERT, RoBERTa or ERNIE"
        )
    with seeded(seed, "words"):
        words = WordPrediction(encoder.config)
    if any(task.masks for task in tasks.values()):
        words.decoder_bias.set_value(log_frequencies(corpus, encoder.config.vocab_size))
    networks: dict[str, nn.Layer] = {}
    for name, task in tasks.items():
        with seeded(seed, f"head of {name}"):
            networks[name] = PretrainingNetwork(
                encoder, words if task.masks else None, len(task.classes), task.each_token
            )
    ids = {name: task.task_id for name, task in tasks.items()} if encoder.config.tasks else None
    return MultiHead(encoder, networks, task_ids=ids)


def _fill_heads(network: MultiHead, weights: Weights) -> None:
    """Load the pretrained heads that a folder has: masked words, and next sentence."""
    if not weights.heads:
        return
    known = _for_pretraining(network)
    known.cls.fill(weights)
    pair = _pair(network)
    if pair is not None and pair is not known.cls.seq_relationship:
        _swap(known.cls.seq_relationship, pair)


def _for_pretraining(network: MultiHead) -> EncoderForPretraining:
    """Return encoder and heads as other systems know them; the parameters are shared, but for swapped classes."""
    pair = _pair(network)
    with seeded(0, "replaced"):  # heads are drawn only to be replaced: the generators of a run must not notice
        known = EncoderForPretraining(network.encoder, next_sentence=pair is not None)
    words = [each.words for each in network.networks.values() if each.words is not None]
    if words:
        known.cls.predictions = words[0]
    if pair is not None and network.encoder.config.model_type in NEXT_FIRST:
        _swap(pair, known.cls.seq_relationship)
    elif pair is not None:
        known.cls.seq_relationship = pair
    return known


def _pair(network: MultiHead) -> nn.Layer | None:
    """Return the head of ``next-sentence``, if there is one."""
    return network.networks[NEXT_SENTENCE].classifier if NEXT_SENTENCE in network.tasks else None


def _swap(source: nn.Layer, target: nn.Layer) -> None:
    """Copy a head of two classes, in the other order."""
    for name, parameter in target.named_parameters():
        parameter.set_value(np.ascontiguousarray(dict(source.named_parameters())[name].numpy()[..., ::-1]))


def save_encoder(network: MultiHead, folder: Path, tokenizer: Tokenizer, layout: str) -> None:
    """Write the encoder, its tokenizer and the heads that other systems know, as a folder to load or fine-tune.

    Args:
        network: of the pretraining.
        folder: is made; its files are replaced.
        tokenizer: of the corpus.
        layout: of the weights: ``huggingface``, which transformers reads, ``paddlenlp`` or ``onion``.

    Raises:
        WeightsError: they cannot be written.
    """
    tokenizer.save_pretrained(folder)
    if any(each.words is not None for each in network.networks.values()):
        _for_pretraining(network).save_pretrained(folder, layout)
    else:
        network.encoder.save_pretrained(folder, layout)


def digest_of(network: MultiHead) -> str:
    """Return the SHA-256 of an encoder's parameters, by name."""
    found = hashlib.sha256()
    for name, array in sorted(arrays_of(network.encoder).items()):
        found.update(name.encode())
        found.update(array.tobytes())
    return found.hexdigest()


def check_vocabulary(config: PretrainedConfig, tokenizer: Tokenizer, where: str | Path) -> None:
    """Refuse an encoder with fewer word embeddings than the vocabulary has words.

    Raises:
        WeightsError: there are too few.
    """
    size = int(getattr(config, "vocab_size", 0))
    if size < tokenizer.vocab_size:
        raise WeightsError(
            f"{where}: vocab_size is {size}, and the corpus has a vocabulary of {tokenizer.vocab_size} words; set "
            f"vocab_size to {tokenizer.vocab_size} or more"
        )


def check_tasks(config: PretrainedConfig, tasks: Mapping[str, PretrainingTask]) -> None:
    """Refuse tasks whose examples an encoder cannot read.

    Raises:
        DataError: the message names the task and the setting.
    """
    _check_lengths(config, tasks)
    _check_token_types(config, tasks)
    _check_task_ids(config, tasks)


def _check_lengths(config: PretrainedConfig, tasks: Mapping[str, PretrainingTask]) -> None:
    """Refuse tasks with longer examples than an encoder has positions for.

    Raises:
        DataError: the message names the task.
    """
    for name, task in tasks.items():
        check_max_length(task.max_length, config.max_length, f"{name}.max_length")


def _check_token_types(config: PretrainedConfig, tasks: Mapping[str, PretrainingTask]) -> None:
    """Refuse tasks whose examples have more types of tokens than an encoder.

    Raises:
        DataError: the message names the task.
    """
    known = int(getattr(config, "type_vocab_size", 0))
    for name, task in tasks.items():
        if task.most_types > max(known, 1):
            raise DataError(
                f"{name} has {task.most_types} types of tokens, and the encoder {known}; raise type_vocab_size in its "
                "config"
            )


def _check_task_ids(config: PretrainedConfig, tasks: Mapping[str, PretrainingTask]) -> None:
    """Refuse tasks for whose ids an encoder with task embeddings has none.

    Raises:
        DataError: the message names the tasks.
    """
    known = int(getattr(config, "tasks", 0))
    beyond = [name for name, task in tasks.items() if known and task.task_id >= known]
    if beyond:
        raise DataError(
            f"the encoder has {known} task embeddings, too few for {', '.join(beyond)}; raise task_type_vocab_size in "
            "its config"
        )
