"""README.md of the model that comes with onion: what it is and was trained on, its licence, its figures."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.frame.tables import MISSING, table
from benchmarks.pretraining.study.arms import ALONE, DATA_SETS, NONE, PRETRAINING, SHAPE, SHARE, Arm, Data
from benchmarks.pretraining.study.findings import Findings
from benchmarks.pretraining.study.intervals import Interval
from benchmarks.pretraining.study.pieces import SHIPPED, CorpusPiece, ShippedPiece

TEXT = """\
---
language: zh
license: cc-by-sa-4.0
library_name: onion
pipeline_tag: fill-mask
tags: [onion, paddlepaddle, ernie]
---

# {name}

A small encoder for Chinese that comes with onion: `onion train --encoder {name} ...`. {layers} layers, hidden size
{width}, at most 128 tokens a text, the vocabulary of ERNIE 1.0; with its masked LM head; weights of 16 bits, read as
float32. `onion pretrain` made it from random weights.

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


def card(findings: Findings) -> str | None:
    """Return the text of the card; None: the model has not been made."""
    shipped, corpus = findings.read(ShippedPiece()), findings.read(CorpusPiece(ALONE.corpus or ""))
    trained, words = findings.pretraining(ALONE), findings.words(ALONE)
    if shipped is None or corpus is None or trained is None or words is None:
        return None
    return TEXT.format(
        name=SHIPPED,
        layers=SHAPE["num_hidden_layers"],
        width=SHAPE["hidden_size"],
        documents=f"{corpus['report']['documents']:,}",
        training=table(["", ""], _training(trained["report"])),
        figures=figures(findings, words),
        **{name: shipped["report"][name] for name in ("outputs", "half_loss", "whole_loss")},
    )


def _training(report: Mapping[str, float]) -> list[list[str]]:
    return [
        ["steps", f"{report['step']:,}"],
        ["tokens of a batch, at most", f"{PRETRAINING['tokens_per_batch']:,}"],
        ["highest rate", f"{PRETRAINING['learning_rate']:g}"],
        ["masked", f"{SHARE:g} of the words"],
    ]


def figures(findings: Findings, report: Mapping[str, float]) -> str:
    """Return what the model is good for as Markdown: on held-out text, and fine-tuned beside random weights."""
    rows = [
        ["loss, with 0.15 of the words masked", f"{report['word_loss']:.3f} nats"],
        ["masked words guessed right", f"{100 * report['word_accuracy']:.1f} %"],
    ]
    lines = [
        [f"{data.title}, {data.figure}", *(_figure(findings, arm, data) for arm in (ALONE, NONE))] for data in DATA_SETS
    ]
    fine_tuned = table(["fine-tuned on", f"`{SHIPPED}`", "random weights"], lines)
    return f"{table(['held-out text', ''], rows)}\n\n{fine_tuned}"


def _figure(findings: Findings, arm: Arm, data: Data) -> str:
    found = findings.figures(arm, data)
    return Interval.of(list(found.values())).text() if found else MISSING
