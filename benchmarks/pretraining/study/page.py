"""docs/pretraining_study.md: what was expected, and what there is."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

from benchmarks.frame.tables import MISSING, table, where_and_when
from benchmarks.pretraining.study import card
from benchmarks.pretraining.study.arms import (
    ALONE,
    CHARACTERS,
    CLASSES,
    DATA_SETS,
    EARLIER,
    ENTITIES,
    FINE_TUNED,
    FINE_TUNING,
    LEVELS,
    LONGER,
    MASKS,
    NONE,
    PRETRAINING,
    RECIPE_TOKENS,
    SCHEDULES,
    SEEDS,
    SHARE,
    SHARES,
    TASKS,
    TOKENS,
    WORDS,
    Arm,
    Data,
)
from benchmarks.pretraining.study.findings import Findings
from benchmarks.pretraining.study.intervals import Interval, paired
from benchmarks.pretraining.study.pieces import SHIPPED, MasksPiece, ShippedPiece
from benchmarks.results.__main__ import COMMON
from onion.tasks.pretraining.masking.masking import Masking

INTRODUCTION = f"""\
Made by `make pretraining`; not edited by hand. An encoder of 4 layers, 256 wide, with ERNIE 1.0's vocabulary, is
pretrained on Chinese text and fine-tuned on four tasks, on two cores. A pretraining reads {TOKENS:,} tokens
in batches of {PRETRAINING["tokens_per_batch"]:,} at most; AdamW ({PRETRAINING["adam_beta1"]:g},
{PRETRAINING["adam_beta2"]:g}), a learning rate that rises to {PRETRAINING["learning_rate"]:g} in a tenth of the steps
and falls to 0, weight decay {PRETRAINING["weight_decay"]:g}, clipping at {PRETRAINING["max_grad_norm"]:g}, dropout
{WORDS.dropout:g}, {SHARE:g} of the units masked, one seed. Its text is that
of the training splits of our data sets (Wikipedia, MSRA-NER, CMRC 2018, TNEWS, ChnSentiCorp, AFQMC, CLUENER, OCNLI,
LCQMC, Weibo; duplicates are removed), never of dev or test splits; or Wikipedia's alone. Words are jieba's
without its hidden Markov model, entities are LAC's. Every arm is fine-tuned alike, with the settings that the Chinese
rows of [results](results.md) have, which begin with random weights: batches of {COMMON["batch_size"]}, learning rate
{FINE_TUNING["lr"]:g}, 128 tokens, the metric after the last step on the dev file.
"""

HEAD = f"# What pretraining is good for\n\n{fill(INTRODUCTION, 120, break_on_hyphens=False)}\n"

EXPECTED = """\
## What was expected

Written down before the first run:

- The loss of masked words leaves that of word frequencies (6.76 nats) after 2 to 4 million tokens.
- Masked words are harder than masked characters by 0.5 to 0.9 nats, whatever model; so each is tested under both.
- From random weights to pretrained ones: ChnSentiCorp 84-86 to 87-89 (338 of its 1,200 dev inputs are in its training
  file), TNEWS 48-50 to 51-53, LCQMC (12,500 rows) 60-66 to 68-74, MSRA-NER (F1) 65-72 to 78-84.
- Words against characters: 0 to 1 points, which is within the noise (the standard error of an accuracy on 1,200 rows is
  0.95); if anywhere, a difference is seen on MSRA-NER. Entities against words: less than that.
- Continual against together, at equal steps: sentence tasks alike, masked words better where they are trained last;
  one after the other forgets the masked words.
"""

FOUND = """\
## What was found

Written down on 2026-11-28:

- Word frequencies, where the head begins now, were left sooner: after 1.2 million tokens the loss was 6.1. (6.76 nats
  is what they come to in Wikipedia's text; those of all texts come to 7.02 on Wikipedia's held-out text.)
- How much harder masked words are than masked characters depends on the model: 1.4 nats after training on characters,
  0.1 after training on words. Even at masked words the second model is no better than the first.
- ChnSentiCorp and TNEWS gained what was expected; LCQMC, if anything, from masked characters only (+3.6 ± 4.0);
  MSRA-NER 24 to 28 points (19 with entities masked), but from 41 and not from 65: random weights learn less of it in
  one pass than was thought.
- Words against characters: no difference outside the noise but on MSRA-NER, where characters are better by 4.0. ERNIE's
  gain by words (Sun et al. 2019) was found with 12 layers of 768 and far more text, and is not seen here. Words were
  pretrained twice, by the same settings on two processors. MSRA-NER and the masks below are those of the second, the
  other three tasks those of the first, of which two seeds of MSRA-NER came to 66.2 and 65.9, where the second has 65.2
  and 63.9: another pretraining may change a figure by as much as another seed of fine-tuning.
- Entities against words: MSRA-NER is worse by 5.0, against expectation; the other tasks are alike. The longer the
  masked units, the less was learned of 14 million tokens: on masked characters, words and entities alike, this model is
  the worst of the three. In its own test, another pretraining by the same settings on another processor came to 5.47
  nats, and this one to 5.38.
- Continual against together: sentence tasks alike, or a little better; masked words no better for it. One after the
  other forgets, but not the masked words, which all tasks mask and go on learning: it forgets sentence tasks. On LCQMC
  the three are alike. All together was pretrained twice, by the same settings on two processors: to 5.28 and to 5.33
  nats, and with sentence tasks up to 0.7 points apart. The figures are those of the second.
- Three times as long, with characters masked, the best of the three kinds: the loss of masked words on held-out text
  fell from 4.91 to 4.59 nats, and no task is better outside the noise; LCQMC is worse by 1.8.
- Of the Chinese encoder `sentence-distance` and `ir-relevance` stay far below what counting shared words reaches: it
  does not learn to compare two texts in so few steps. Of MiniLM, which was pretrained far longer, all tasks are better
  than their baselines, these two by 11 and 14 points.
- Since the Chinese trainings, the samplers leave out examples that gave their label away: of `sentence-reordering`
  1.6 %, in which a sentence was cut at an end, and first sentences of documents as second texts of `sentence-distance`.
"""

TRIAL = "**A trial of the frame with a share of {scale:g} of the text, steps and rows: its figures say nothing.**\n"


def page(findings: Findings, scale: float = 1.0) -> str:
    """Return the whole page."""
    parts = [
        HEAD,
        TRIAL.format(scale=scale) if scale < 1 else "",
        EXPECTED,
        FOUND if scale == 1 else "",
        _recipes(findings),
        _fine_tuned(findings),
        _differences(findings),
        _under_masks(findings),
        *(_schedule(findings, arm) for arm in findings.arms if arm in SCHEDULES),
        _classes(findings),
        _shipped(findings),
        _pretrainings(findings),
        where_and_when(list(findings.results())),
    ]
    return "\n".join(f"{part.rstrip()}\n" for part in parts if part)


RECIPE_COLUMNS = ["tokens a batch", "learning rate", "dropout", "bias, epsilon", "masked", "held-out"]


def _recipes(findings: Findings) -> str:
    """A line a short pretraining: its settings, and what it came to."""
    text = f"""\
## The recipe

Size of batch, learning rate, dropout and the share of words to mask were chosen by pretrainings of {RECIPE_TOKENS:,}
tokens. Held-out is Wikipedia's held-out text with 0.15 of the words masked: the mean loss of a masked token in nats,
and the share of them that is guessed right.

The first four were made when the bias of the masked LM head began with 0 and Adam's epsilon was 1e-8; for the last
two, and the pretrainings with masks below, the bias begins with the logarithm of the tokens' frequencies, and epsilon
is 1e-6, as BERT has it. Before, all rare tokens were pushed the same way: after {TOKENS:,} tokens of Wikipedia with
the settings of the fourth line, the vectors of tokens that occur 21 to 100 times there had a mean cosine of 0.92 with
each other, and of 101 to 1,000 times one of 0.84 (`benchmarks/pretraining/study/likeness.py`). Fine-tuned, that
encoder came to 88.7 on ChnSentiCorp and 63.6 on LCQMC (3 seeds), 49.6 on TNEWS and 42.4 on MSRA-NER (2 seeds;
`benchmarks/pretraining/kept/earlier`), hardly more than random weights."""
    lines = [_recipe(arm, _own(findings, arm)) for arm in EARLIER]
    lines += [_recipe(arm, findings.words(arm)) for arm in SHARES]
    return f"{text}\n\n{table(RECIPE_COLUMNS, lines)}"


def _own(findings: Findings, arm: Arm) -> Mapping[str, float] | None:
    """Return the figures of the pretraining's own test, which has the masks that it was trained with."""
    found = findings.pretraining(arm)
    task = "knowledge-masking."
    return found and {name.removeprefix(task): value for name, value in found["report"].items()}


def _recipe(arm: Arm, report: Mapping[str, float] | None) -> list[str]:
    settings = {"masking.share": Masking().share, **PRETRAINING, **arm.options}
    told = MISSING if report is None else _masked(report)
    rate, share, epsilon = (settings[name] for name in ("learning_rate", "masking.share", "adam_epsilon"))
    bias = "0" if arm in EARLIER else "frequencies"
    batch = f"{settings['tokens_per_batch']:,}"
    return [batch, f"{rate:g}", f"{arm.dropout:g}", f"{bias}, {epsilon:g}", f"{share:g}", told]


def _fine_tuned(findings: Findings) -> str:
    """A line an arm: the figure on each data set, and how far it is from random weights."""
    text = f"""\
## Fine-tuned

Accuracy, of MSRA-NER F1, times 100: the mean over {len(SEEDS)} seeds of fine-tuning ± half of its 95 % interval by
Student's t. In brackets the difference from random weights, seed by seed, with its interval. Every arm was pretrained
with one seed: how much another one would change is not in these intervals. Empty cells are not part of the study."""
    arms = [arm for arm in findings.arms if arm in FINE_TUNED or arm.name == LONGER]
    lines = [[arm.title, *(_cell(findings, arm, data) for data in DATA_SETS)] for arm in arms]
    return f"{text}\n\n{table(['pretraining', *(data.title for data in DATA_SETS)], lines)}"


def _cell(findings: Findings, arm: Arm, data: Data) -> str:
    if data not in arm.data:
        return ""
    own = findings.figures(arm, data)
    if not own:
        return MISSING
    fewer = f", {len(own)} of {len(SEEDS)} seeds" if len(own) < len(SEEDS) else ""
    difference = None if arm == NONE else paired(own, findings.figures(NONE, data))
    return Interval.of(list(own.values())).text() + fewer + (f" ({difference.text('+')})" if difference else "")


PAIRS = ((WORDS, CHARACTERS), (ENTITIES, WORDS), (SCHEDULES[0], SCHEDULES[1]), (SCHEDULES[0], SCHEDULES[2]))
"""Beside these stands the longer arm, against the kind of mask that it is longer than."""


def _differences(findings: Findings) -> str:
    """A line a pair of arms; bold what an interval tells from 0."""
    text = """\
## One beside the other

Differences of the metrics, seed by seed, with 95 % intervals; bold where 0 lies outside."""
    lines = []
    longer = (
        (arm, level) for arm in findings.arms if arm.name == LONGER for level in LEVELS if level.options == arm.options
    )
    for ours, theirs in (*PAIRS, *longer):
        cells = [_difference(findings, ours, theirs, data) if data in ours.data else "" for data in DATA_SETS]
        lines.append([f"{ours.title}, against: {theirs.title}", *cells])
    return f"{text}\n\n{table(['', *(data.title for data in DATA_SETS)], lines)}"


def _difference(findings: Findings, ours: Arm, theirs: Arm, data: Data) -> str:
    found = paired(findings.figures(ours, data), findings.figures(theirs, data))
    return MISSING if found is None else _bold(found)


def _bold(difference: Interval) -> str:
    return f"**{difference.text('+')}**" if difference.tells else difference.text("+")


def _under_masks(findings: Findings) -> str:
    """A line a model, a column a kind of mask."""
    text = """\
## Each model under each kind of mask

On Wikipedia's held-out text: the mean loss of a masked token in nats, and the share of them that is guessed right."""
    lines = []
    for arm in (each for each in findings.arms if each in LEVELS):
        found = [findings.read(MasksPiece(arm, mask)) for mask in MASKS]
        lines.append([arm.title, *(MISSING if each is None else _masked(each["report"]) for each in found)])
    return f"{text}\n\n{table(['trained with', *(f'{mask} masked' for mask in MASKS)], lines)}"


def _masked(report: Mapping[str, float]) -> str:
    return f"{report['word_loss']:.3f}, {100 * report['word_accuracy']:.1f} %"


def _schedule(findings: Findings, arm: Arm) -> str:
    """The forgetting matrix: a line a task, a column a stage."""
    result = findings.pretraining(arm)
    if result is None:
        return f"## {arm.title}\n\n{MISSING}"
    rows = result["tests"]
    text = (
        f"On Wikipedia's held-out text after each stage: the loss of masked words in nats, {SHARE:g} of them masked; "
        "of the other tasks the accuracy, times 100. In brackets the best of the trivial baselines, which only count."
    )
    lines = [[task, *(_tested(row, task) for row in rows), baseline(result["report"], task)] for task in TASKS]
    columns = ["", *(f"stage {number}" for number in range(1, len(rows) + 1)), "baseline"]
    return f"## {arm.title}\n\n{text}\n\n{table(columns, lines)}"


def _tested(row: Mapping[str, float], task: str) -> str:
    if f"{task}.accuracy" in row:
        return f"{100 * row[f'{task}.accuracy']:.1f}"
    return f"{row[f'{task}.word_loss']:.3f}" if f"{task}.word_loss" in row else ""


def baseline(report: Mapping[str, float], task: str) -> str:
    """Return the best figure that a task's baselines reach, as text; none: it has no classes."""
    found = [value for name, value in report.items() if name.startswith(f"{task}.accuracy.")]
    return f"({100 * max(found):.1f})" if found else ""


def _classes(findings: Findings) -> str:
    """A line a task with classes: its accuracy on held-out text, and the best of its trivial baselines."""
    text = """\
## The tasks of ERNIE 2.0 beside trivial baselines

Accuracy on held-out documents, times 100, after short trainings from pretrained encoders, of several tasks together:
without the masked words that they otherwise learn too, epsilon 1e-8, learning rate 1e-4 or 2e-4, at most 8 million
tokens. Beside it the best of the task's trivial baselines, which only count."""
    lines = []
    for arm in CLASSES:
        found = findings.pretraining(arm)
        for task in arm.options["tasks"]:
            cells = [MISSING] * 2 if found is None else _beside(found["report"], task)
            lines.append([task, arm.title, *cells])
    return f"{text}\n\n{table(['task', 'pretraining', 'accuracy', 'baseline'], lines)}"


def _beside(report: Mapping[str, float], task: str) -> list[str]:
    return [f"{100 * report[f'{task}.accuracy']:.1f}", baseline(report, task).strip("()")]


def _shipped(findings: Findings) -> str:
    """The figures of the model that comes with onion, as its card has them."""
    report, made = findings.words(ALONE), findings.read(ShippedPiece())
    told = MISSING if report is None else card.figures(findings, report)
    text = f"## {SHIPPED}\n\nThe arm of Wikipedia's text alone, as it comes with onion in 16 bits."
    return f"{text}\n\n{told}\n{'' if made is None else _likeness(made['likeness'])}"


def _likeness(found: Mapping[str, float]) -> str:
    """Return the mean cosines of word embeddings as Markdown."""
    text = "The mean cosine of two word embeddings, by how often their tokens occur in its text; 1: all point one way."
    return f"\n{text}\n\n{table(['times', *found], [['mean cosine', *(f'{value:.2f}' for value in found.values())]])}"


def _pretrainings(findings: Findings) -> str:
    """A line a pretraining: its length, and the loss that it came to on held-out text."""
    text = """\
## The pretrainings

Seconds are those of the process that came to the end, which may have gone on with what another one had begun."""
    lines = []
    for arm in (each for each in findings.arms if each.corpus is not None):
        result, words = findings.pretraining(arm), findings.words(arm)
        report = {} if result is None else result["report"]
        cells = (
            [f"{report['step']:,}", f"{report['tokens']:,}", f"{report['seconds']:,.0f}"] if report else [MISSING] * 3
        )
        lines.append([arm.title, *cells, _loss(arm, words)])
    columns = ["pretraining", "steps", "tokens, at most", "seconds", "held-out loss, 0.15 of the words masked"]
    return f"{text}\n\n{table(columns, lines)}"


def _loss(arm: Arm, words: Mapping[str, float] | None) -> str:
    if "masking.share" not in arm.options:
        return ""
    return MISSING if words is None else f"{words['word_loss']:.3f}"
