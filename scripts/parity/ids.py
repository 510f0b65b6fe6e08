"""Tokenizers: ids of real lines on real vocabularies, against transformers' and PaddleNLP's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from onion.models import hub
from onion.models.tokenization import byte_bpe
from onion.models.tokenizer import Tokenizer
from scripts.parity.common import DATA, Row, lines_of_data, own_lines, run_reference

COUNT = 2_000
UNLIMITED = 10**6
# Vocabulary, language of the lines, who else tokenizes them.
CASES = (
    ("bert-base-uncased", "en", "transformers"),
    ("bert-base-chinese", "zh", "transformers"),
    ("ernie-2.0-en", "en", "paddlenlp"),
    ("ernie-1.0-zh", "zh", "paddlenlp"),
    ("ernie-3.0-zh", "zh", "paddlenlp"),
)


@dataclass(frozen=True)
class Case:
    """One comparison: a folder of a tokenizer, lines, and a reference."""

    what: str
    folder: Path
    lines: Sequence[str]
    reference: str


def compare(folder: Path) -> Iterator[Row]:
    """All tokenizers whose vocabularies are at hand; what is skipped is said."""
    found = list(_cases(folder))
    for reference in ("transformers", "paddlenlp"):
        chosen = [case for case in found if case.reference == reference]
        answers = [folder / f"{reference}-{index}.json" for index in range(len(chosen))]
        _ask(reference, chosen, answers)
        for case, answer in zip(chosen, answers, strict=True):
            yield _row(case, json.loads(answer.read_text()))


def _cases(folder: Path) -> Iterator[Case]:
    own = own_lines()
    texts = own + lines_of_data("en", COUNT)
    yield Case("ids of minilm", hub.fetch("minilm"), texts, "transformers")
    yield Case("ids of a byte-level BPE", _byte_bpe(folder / "bpe", own), texts, "transformers")
    for vocabulary, language, reference in CASES:
        path, texts = DATA / "vocab" / vocabulary, lines_of_data(language, COUNT)
        if path.is_dir() and texts:
            yield Case(f"ids of {vocabulary}", _of_paddlenlp(path, folder, reference), texts, reference)
        else:
            print(f"skipped, not compared: ids of {vocabulary}; {path} or its lines are not there")


def _of_paddlenlp(vocabulary: Path, folder: Path, reference: str) -> Path:
    """The vocabulary as PaddleNLP's, whose tokenizer sets symbols apart as BERT's and static ERNIE's do not."""
    if reference == "transformers":
        return vocabulary
    copy = folder / vocabulary.name
    copy.mkdir()
    shutil.copy(vocabulary / "vocab.txt", copy)
    (copy / "tokenizer_config.json").write_text('{"tokenizer_class": "ErnieTokenizer", "do_lower_case": true}')
    return copy


def _byte_bpe(folder: Path, texts: Sequence[str]) -> Path:
    """RoBERTa's kind of vocabulary, learned from these texts: none is at hand that anybody else has learned."""
    folder.mkdir()
    learned = tokenizers.ByteLevelBPETokenizer()
    learned.train_from_iterator(
        texts, vocab_size=1_000, special_tokens=list(byte_bpe.SPECIAL_TOKENS.values()), show_progress=False
    )
    learned.save_model(str(folder))
    return folder


def _ask(reference: str, cases: Sequence[Case], answers: Sequence[Path]) -> None:
    """Have a reference tokenize the lines of all cases."""
    asked = []
    for case, answer in zip(cases, answers, strict=True):
        texts = answer.with_suffix(".lines")
        texts.write_text(json.dumps(list(case.lines)), encoding="utf-8")
        asked.append({"vocabulary": str(case.folder), "lower": True, "lines": str(texts), "out": str(answer)})
    if asked:
        tasks = answers[0].with_name(f"{reference}-tasks.json")
        tasks.write_text(json.dumps(asked))
        run_reference(reference, "ids", reference, tasks)


def _row(case: Case, answer: dict[str, Any]) -> Row:
    encodings = Tokenizer.from_pretrained(case.folder)(case.lines, max_length=UNLIMITED)
    differing = sum(encoding.ids.tolist() != ids for encoding, ids in zip(encodings, answer["ids"], strict=True))
    return Row(case.what, str(answer["maker"]), f"{len(case.lines)} lines", differing, unit="lines")
