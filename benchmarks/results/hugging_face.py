"""The other side: the same encoder, data and settings with transformers' own models, tokenizers and Trainer.

    python -m benchmarks.results.hugging_face JOB.json        trains, measures and writes the answer
    python -m benchmarks.results.hugging_face JOB.json head   writes the head that the job's model begins with

It runs where onion is not installed, and imports nothing of it. Tasks are prepared as in transformers' run_glue.py,
run_ner.py and run_qa.py; figures are those of scikit-learn, scipy, seqeval and SQuAD's evaluate-v1.1.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import transformers
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from benchmarks.results.files import Question, questions, squad_figures, table, tagged

TEST_BATCH = 64


@dataclass(frozen=True)
class Prepared:
    """A task, ready to be trained: model with a new head, examples, collator, and what measures it on a file."""

    model: transformers.PreTrainedModel
    examples: list[dict[str, Any]]
    collator: Callable[[list[dict[str, Any]]], dict[str, Any]]
    figures: Callable[[transformers.Trainer, str], dict[str, float]]


def in_order(trainer: transformers.Trainer, examples: list[dict[str, Any]]) -> Any:
    """Return what a model predicts of examples, in their order.

    A Trainer that groups what it learns by length shuffles what it predicts in the same way, and hands the predictions
    out so.
    """
    trainer.args.train_sampling_strategy = "sequential"
    return trainer.predict(examples).predictions


def trainer_of(job: dict[str, Any], prepared: Prepared, tokenizer: Any, folder: str) -> transformers.Trainer:
    """Return a Trainer with the job's settings; batches are of similar length, as onion's are."""
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        num_train_epochs=job["passes"],
        per_device_train_batch_size=job["batch_size"],
        per_device_eval_batch_size=TEST_BATCH,
        learning_rate=job["lr"],
        warmup_steps=job["warmup"],  # below 1 it is a share of all steps
        lr_scheduler_type="linear",
        weight_decay=job["weight_decay"],
        max_grad_norm=job["clip"],
        seed=job["seed"],
        train_sampling_strategy="group_by_length",
        use_cpu=True,
        save_strategy="no",
        eval_strategy="no",
        logging_steps=50,
        report_to="none",
        disable_tqdm=True,
    )
    return transformers.Trainer(
        model=prepared.model,
        args=arguments,
        train_dataset=prepared.examples,
        data_collator=prepared.collator,
        processing_class=tokenizer,
    )


# Classification and regression of a text or a pair


def classification(job: dict[str, Any], tokenizer: Any) -> Prepared:
    rows = table(job["train"])
    names = sorted({row["label"] for row in rows})

    def numbered(rows: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
        return _examples(rows, [names.index(row["label"]) for row in rows], tokenizer, job)

    def figures(trainer: transformers.Trainer, path: str) -> dict[str, float]:
        found = trainer.predict(numbered(table(path)))
        true, predicted = found.label_ids, np.argmax(found.predictions, axis=-1)
        told = {"accuracy": accuracy_score(true, predicted), "matthews": matthews_corrcoef(true, predicted)}
        return {**told, "f1": f1_score(true, predicted)} if len(names) == 2 else told

    model = transformers.AutoModelForSequenceClassification.from_pretrained(job["encoder"], num_labels=len(names))
    return Prepared(model, numbered(rows), transformers.DataCollatorWithPadding(tokenizer), figures)


def regression(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job with a number a row, as the file has it; the loss is the mean squared error."""

    def examples(path: str) -> list[dict[str, Any]]:
        rows = table(path)
        return _examples(rows, [float(row["label"]) for row in rows], tokenizer, job)

    def figures(trainer: transformers.Trainer, path: str) -> dict[str, float]:
        found = trainer.predict(examples(path))
        true, predicted = np.ravel(found.label_ids), np.ravel(found.predictions)
        return {"pearson": pearsonr(true, predicted)[0], "spearman": spearmanr(true, predicted)[0]}

    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        job["encoder"], num_labels=1, problem_type="regression"
    )
    return Prepared(model, examples(job["train"]), transformers.DataCollatorWithPadding(tokenizer), figures)


def _examples(
    rows: Sequence[dict[str, str]], labels: Sequence[float], tokenizer: Any, job: dict[str, Any]
) -> list[dict[str, Any]]:
    seconds = [row["text_b"] for row in rows] if "text_b" in rows[0] else None
    length = job["options"]["max_length"]
    found = tokenizer([row["text_a"] for row in rows], seconds, truncation="longest_first", max_length=length)
    columns = {**found, "labels": labels}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


# Token classification

IGNORED = -100
OUTSIDE = "O"


def tagging(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job with a tag a token, as in run_ner.py: the first sub-token of every token has its tag."""
    from seqeval.metrics import f1_score, precision_score, recall_score

    rows = tagged(job["train"])
    names = sorted({tag for _, tags in rows for tag in tags})

    def figures(trainer: transformers.Trainer, path: str) -> dict[str, float]:
        tokens, true = map(list, zip(*tagged(path), strict=True))
        examples, firsts = _tagged_examples(tokens, [[0] * len(tags) for tags in true], tokenizer, job)
        numbers = np.argmax(in_order(trainer, examples), axis=-1)
        told = [  # a tag for every token; one that was cut off, or has no sub-token, is outside
            [names[tags[found[word]]] if word in found else OUTSIDE for word in range(len(right))]
            for right, found, tags in zip(true, firsts, numbers, strict=True)
        ]
        scores = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
        return {name: score(true, told) for name, score in scores.items()}

    numbered = [[names.index(tag) for tag in tags] for _, tags in rows]
    examples, _ = _tagged_examples([tokens for tokens, _ in rows], numbered, tokenizer, job)
    model = transformers.AutoModelForTokenClassification.from_pretrained(job["encoder"], num_labels=len(names))
    return Prepared(model, examples, transformers.DataCollatorForTokenClassification(tokenizer), figures)


def _tagged_examples(
    tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[int]], tokenizer: Any, job: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[int, int]]]:
    """Examples, and for each where the first sub-token of its tokens is."""
    length = job["options"]["max_length"]
    found = tokenizer(list(tokens), is_split_into_words=True, truncation=True, max_length=length)
    examples, all_firsts = [], []
    for place, numbers in enumerate(tags):
        example = {name: values[place] for name, values in found.items()}
        firsts: dict[int, int] = {}
        for position, word in enumerate(found.word_ids(place)):
            if word is not None:
                firsts.setdefault(word, position)
        example["labels"] = [IGNORED] * len(example["input_ids"])
        for word, position in firsts.items():
            example["labels"][position] = numbers[word]
        examples.append(example)
        all_firsts.append(firsts)
    return examples, all_firsts


# Question answering

# Windows over a text begin ``doc_stride`` tokens apart, as in BERT and onion. (run_qa.py counts the tokens that two
# windows share instead; here that number is worked out for each question.) A window without the answer learns to point
# at [CLS]. An answer that does not stand where the file says teaches nothing. There are no unanswerable questions.
N_BEST = 20
NOWHERE = (0, 0)
"""The place of [CLS]."""

Span = tuple[int, int]


def reading(job: dict[str, Any], tokenizer: Any) -> Prepared:
    def figures(trainer: transformers.Trainer, path: str) -> dict[str, float]:
        asked = list(questions(path))
        found = [_windows(question, tokenizer, job) for question in asked]
        inputs = [{name: window[name] for name in tokenizer.model_input_names} for some in found for window in some]
        scores = iter(zip(*in_order(trainer, inputs), strict=True))
        limit = job["options"]["max_answer_length"]
        told = {
            question.id: best_answer(question.context, [(window["spans"], *next(scores)) for window in some], limit)
            for question, some in zip(asked, found, strict=True)
        }
        return squad_figures({question.id: [text for text, _ in question.answers] for question in asked}, told)

    examples = [example for question in questions(job["train"]) for example in _learned(question, tokenizer, job)]
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(job["encoder"])
    return Prepared(model, examples, transformers.DataCollatorWithPadding(tokenizer), figures)


def _learned(question: Question, tokenizer: Any, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the windows of a question with the places of the first answer that is where the file says."""
    right = [
        (start, start + len(text))
        for text, start in question.answers
        if start >= 0 and text and question.context.startswith(text, start)
    ]
    if not right:
        return
    for window in _windows(question, tokenizer, job):
        first, last = _place(window["spans"], *right[0])
        inputs = {name: window[name] for name in tokenizer.model_input_names}
        yield {**inputs, "start_positions": first, "end_positions": last}


def _windows(question: Question, tokenizer: Any, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Inputs, and ``spans``: for each token of the text where it is there, None for all other tokens."""
    length, step = job["options"]["max_length"], job["options"]["doc_stride"]
    asked = len(tokenizer(question.text, add_special_tokens=False)["input_ids"])
    room = length - asked - tokenizer.num_special_tokens_to_add(pair=True)
    found = tokenizer(
        question.text,
        question.context,
        truncation="only_second",
        max_length=length,
        stride=max(0, room - step),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    windows = []
    for place in range(len(found["input_ids"])):
        places = zip(found["offset_mapping"][place], found.sequence_ids(place), strict=True)
        spans = [span if which == 1 else None for span, which in places]
        windows.append({**{name: found[name][place] for name in tokenizer.model_input_names}, "spans": spans})
    return windows


def _place(spans: Sequence[Span | None], begin: int, end: int) -> Span:
    """The first and the last token of an answer, or that of [CLS] where the window does not hold it whole."""
    inside = [(place, span) for place, span in enumerate(spans) if span and span[0] < end and span[1] > begin]
    covered = inside and inside[0][1][0] <= begin and inside[-1][1][1] >= end
    return (inside[0][0], inside[-1][0]) if covered else NOWHERE


def best_answer(context: str, windows: Sequence[tuple[list[Span | None], np.ndarray, np.ndarray]], limit: int) -> str:
    """Return the best answer of all windows: the largest sum of a start and an end, at most ``limit`` tokens apart."""
    best, answer = -np.inf, ""
    for spans, starts, ends in windows:
        firsts, lasts = _largest(starts[: len(spans)]), _largest(ends[: len(spans)])
        for first, last in product(firsts, lasts):
            score = starts[first] + ends[last]
            one, other = spans[first], spans[last]
            if one and other and 0 <= last - first < limit and score > best:
                best, answer = score, context[one[0] : other[1]]
    return answer


def _largest(scores: np.ndarray) -> list[int]:
    return np.argsort(scores)[::-1][:N_BEST].tolist()


# A job

TASKS: dict[str, Callable[..., Prepared]]
TASKS = {"classify": classification, "regress": regression, "tag": tagging, "read": reading}


def prepared_of(job: dict[str, Any]) -> tuple[Prepared, Any]:
    transformers.set_seed(job["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["encoder"])
    return TASKS[job["task"]](job, tokenizer), tokenizer


def answer(job: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, and measure what the last step left; the seconds begin with reading the files and end with that step."""
    begun = perf_counter()
    prepared, tokenizer = prepared_of(job)
    trainer = trainer_of(job, prepared, tokenizer, folder)
    steps = trainer.train().global_step
    seconds = round(perf_counter() - begun, 1)
    found = {title: prepared.figures(trainer, path) for title, path in job["dev"].items()}
    return {
        "figures": {title: {name: float(figures[name]) for name in job["figures"]} for title, figures in found.items()},
        "seconds": seconds,
        "steps": steps,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }


def head_of(model: transformers.PreTrainedModel) -> torch.nn.Linear:
    [head] = [layer for layer in model.children() if isinstance(layer, torch.nn.Linear)]
    return head


def write_head(job: dict[str, Any]) -> None:
    """Write the head of a job: ``weight``, float32 ``[hidden, outputs]``, as onion's layers have it, and ``bias``."""
    head = head_of(prepared_of(job)[0].model)
    np.savez(job["head_file"], weight=head.weight.detach().numpy().T, bias=head.bias.detach().numpy())


def main(path: str, what: str = "answer") -> None:
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    if what == "head":
        write_head(job)
        return
    torch.set_num_threads(job["threads"])
    found = answer(job, str(Path(path).parent / "trainer"))
    Path(job["answer"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
