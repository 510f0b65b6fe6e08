"""The jobs behind ``onion evaluate`` and ``onion predict``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.errors import CheckpointError, DataError
from onion.items.gradient_machine import load_network
from onion.items.saver import best_checkpoint
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classifier
from onion.tasks.collector import Collector
from onion.tasks.labels import Labels
from onion.tasks.metrics import ClassificationMetric
from onion.tasks.onions import evaluation_onion, prediction_onion
from onion.tasks.settings import LABELS, RUN_FILE, read_json, read_record
from onion.tasks.texts import TextExamples, encode, read_table, tell_cut


@attrs.frozen
class Model:
    """A trained classifier with all it needs to read texts.

    Attributes:
        network: in evaluation mode, with the weights of the best checkpoint.
        tokenizer: as in training.
        labels: as in training.
        max_length: as in training.
        pairs: whether it was trained on pairs of texts.
    """

    network: Classifier
    tokenizer: Tokenizer
    labels: Labels
    max_length: int
    pairs: bool

    @classmethod
    def load(cls, folder: Path) -> Model:
        """Load the best checkpoint of a run's folder.

        Raises:
            CheckpointError: the folder holds no run, or no whole checkpoint.
        """
        record = read_record(folder)
        if not {"max_length", "pairs"} <= record.keys():
            raise CheckpointError(f"{folder / RUN_FILE} is damaged, or of another version of onion.")
        labels = Labels(read_json(folder, LABELS))
        network = Classifier(Encoder(EncoderConfig.read(folder / "config.json")), len(labels))
        load_network(network, best_checkpoint(folder).items["gradient_machine"])
        network.eval()
        return cls(network, Tokenizer.from_pretrained(folder), labels, record["max_length"], record["pairs"])

    def probabilities(self, examples: TextExamples) -> Iterator[np.ndarray]:
        """Give the probabilities ``[classes]`` of every example in order."""
        collector = Collector(len(examples))
        prediction_onion(self.network, examples, collector, self.tokenizer.pad_id).run(passes=1)
        for logits in collector.outputs:
            scores = np.exp(logits - logits.max())
            yield scores / scores.sum()


def evaluate(folder: Path, data: str) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of examples.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    table = read_table(data, labelled=True)
    model = Model.load(folder)
    examples = encode(table, model.tokenizer, model.max_length, model.labels, model.pairs)
    tell_cut(data, examples, model.max_length)
    tested = evaluation_onion(model.network, examples, ClassificationMetric(model.labels), model.tokenizer.pad_id).run(
        passes=1
    )
    return {**tested.metrics, "examples": len(examples)}


def predict(folder: Path, data: str) -> Iterator[str]:
    """Give one JSON line a row of a file: index, label, and the probability of every label.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    table = read_table(data, labelled=False)
    model = Model.load(folder)
    examples = encode(table, model.tokenizer, model.max_length, pairs=model.pairs)
    tell_cut(data, examples, model.max_length)
    for index, probabilities in enumerate(model.probabilities(examples)):
        yield _line({"index": index}, model.labels, probabilities)


def predict_texts(folder: Path, texts: Sequence[str]) -> Iterator[str]:
    """Give one JSON line a text: the text, its label, and the probability of every label.

    Raises:
        OnionError: the folder is not what it should be, or the model was trained on pairs of texts.
    """
    model = Model.load(folder)
    if model.pairs:
        raise DataError("--text: this model was trained on pairs of texts; use --input with text_a and text_b.")
    examples = TextExamples(model.tokenizer(list(texts), max_length=model.max_length))
    tell_cut("--text", examples, model.max_length)
    for text, probabilities in zip(texts, model.probabilities(examples), strict=True):
        yield _line({"text_a": text}, model.labels, probabilities)


def _line(start: dict[str, Any], labels: Labels, probabilities: np.ndarray) -> str:
    named = {name: round(float(value), 6) for name, value in zip(labels.names, probabilities, strict=True)}
    label = labels.names[int(np.argmax(probabilities))]
    return json.dumps({**start, "label": label, "probabilities": named}, ensure_ascii=False)
