"""README.md of an embedded model: what it is and was trained on, its licence, its figures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.errors import DataError
from onion.models.pretrained_config import PretrainedConfig
from onion.tasks.publishing.model_card import table
from scripts.embedded_model.comparison import Difference

TEXT = """\
---
language: zh
license: cc-by-sa-4.0
library_name: onion
pipeline_tag: fill-mask
tags: [onion, paddlepaddle, ernie]
---

# {name}

A small encoder for Chinese that comes with onion: `onion train --encoder {name} ...`. {sizes}, the
vocabulary of ERNIE
1.0, with its masked LM head; weights of 16 bits, read as float32. `onion pretrain` made it from random weights.

## Licence

The weights are licensed under CC BY-SA 4.0 (https://creativecommons.org/licenses/by-sa/4.0/), apart from onion itself,
which is Apache-2.0. They derive from text of Chinese Wikipedia (https://zh.wikipedia.org) by its authors, CC BY-SA:
{documents} articles of the extraction in
https://github.com/overweightbarracuda/science_fair2324 (`text/AA`, `text/AB`), drawn at random from those in simplified
characters. The vocabulary is Baidu's (https://github.com/PaddlePaddle/ERNIE, `config/vocab.txt`, Apache-2.0).

## Training

{training}

## Figures

{figures}

With weights of 16 bits instead of 32, outputs differ by at most {outputs:.2g}, and the loss of masked words on held-out
text is {half_loss:.4f} nats instead of {whole_loss:.4f}.
"""


@attrs.frozen
class Figures:
    """What a card tells of a training, read from a JSON file.

    Attributes:
        documents: articles that it was trained on.
        training: what -> how much, as they are printed: ``{"tokens": "14 million", ...}``.
        held_out: the same, on text that was not trained on.
        fine_tuned: a row a data set: ``data``, ``figure`` (its name), and a list of values, one a seed, of ``model``
            and of ``random``, the same shape with random weights; in percent.
    """

    documents: int
    training: Mapping[str, Any]
    held_out: Mapping[str, Any]
    fine_tuned: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Figures:
        """Read a file; raise a DataError if it is not what it should be."""
        try:
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
            found.table(""), f"{found.documents:,}", found.training.items()
            return found
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, AttributeError, KeyError, statistics.StatisticsError) as error:
            keys = ", ".join(attrs.fields_dict(cls))
            raise DataError(f"{path}: not the figures of a model ({error!r}); write an object of {keys}") from None

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of the table of fine-tunings."""
        return [
            (f"{row['data']}, {row['figure']}", _mean(row["model"]), _mean(row["random"]), str(len(row["model"])))
            for row in self.fine_tuned
        ]

    def table(self, name: str) -> str:
        """Return the figures as Markdown."""
        head = ("fine-tuned on", f"`{name}`", "random weights", "seeds")
        return f"{_pairs('held-out text', self.held_out)}\n\n{table(head, self.rows())}"


def card(name: str, config: PretrainedConfig, figures: Figures, difference: Difference) -> str:
    """Return the text of the card.

    Args:
        name: of the model.
        config: of the encoder.
        figures: of its training.
        difference: between the encoder and the one with 16 bits.
    """
    sizes = config.to_dict()
    return TEXT.format(
        name=name,
        sizes=f"{sizes['num_hidden_layers']} layers, hidden size {sizes['hidden_size']}",
        documents=f"{figures.documents:,}",
        training=_pairs("", figures.training),
        figures=figures.table(name),
        outputs=difference.outputs,
        whole_loss=difference.losses[0],
        half_loss=difference.losses[1],
    )


def _pairs(title: str, values: Mapping[str, Any]) -> str:
    return table((title, ""), values.items())


def _mean(values: Iterable[float]) -> str:
    """Return the mean, and with several seeds the standard deviation."""
    values = [float(value) for value in values]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"
