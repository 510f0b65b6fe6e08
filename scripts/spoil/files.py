"""Good files of every task, as values and as bytes."""

from __future__ import annotations

import csv
import io
import json
from random import Random
from typing import Any

Record = dict[str, Any]

GOOD, BAD = ["lovely", "great", "warm"], ["awful", "poor", "cold"]
PLAIN = ["the", "a", "film", "plot", "was", "is", "and", "it"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *PLAIN, ".", "中", "文", "##s"]
ROWS = 12

TASKS = (
    *("classification", "regression", "matching", "multilabel", "token-classification", "masked-lm"),
    "question-answering",
)
TABLES = (".tsv", ".csv", ".jsonl", ".json", ".parquet")
JSON = (".jsonl", ".json")
ENDINGS = {
    "masked-lm": (".txt", *TABLES),
    "question-answering": (".json",),
    "token-classification": (*TABLES, ".conll"),
}


def endings(task: str) -> tuple[str, ...]:
    return ENDINGS.get(task, TABLES)


def good_records(task: str, draw: Random) -> list[Record]:
    """Return rows that a task learns from; of ``read``, questions about contexts."""
    return [_record(task, number, draw) for number in range(ROWS)]


def _record(task: str, number: int, draw: Random) -> Record:
    fits = number % 2 == 0
    words = [*draw.choices(PLAIN, k=draw.randrange(1, 5)), draw.choice(GOOD if fits else BAD)]
    text = " ".join(words)
    if task == "regression":
        return {"text_a": text, "label": str(round(draw.random(), 3))}
    if task == "matching":
        pair = {"text_a": text, "text_b": "it was " + draw.choice(PLAIN)}
        return {**pair, "label": str(int(fits)), "qid": f"q{number // 4}"}
    if task == "multilabel":
        return {"text_a": text, "label": "x,y" if fits else "y"}
    if task == "token-classification":
        tags = ["B-x" if word in (*GOOD, *BAD) else "O" for word in words]
        return {"text_a": "\2".join(words), "label": "\2".join(tags)}
    if task == "masked-lm":
        return {"text_a": text}
    if task == "question-answering":
        answer = {"text": words[-1], "answer_start": len(text) - len(words[-1])}
        return {"context": text, "id": f"q{number}", "question": "what was it", "answers": [answer]}
    return {"text_a": text, "label": "good" if fits else "bad"}


def written(records: list[Record], ending: str) -> bytes:
    """Return a file of records; cells of tables that are no text are written as JSON."""
    if ending == ".json":
        return json.dumps(whole(records)).encode()
    if ending == ".parquet":
        return _parquet(records)
    if ending == ".conll":
        return "\n".join(map(_sentence, records)).encode(errors="surrogatepass")
    if ending == ".jsonl":
        return "".join(f"{json.dumps(each)}\n" for each in records).encode()
    if ending == ".txt":
        return "".join(f"{_cell(each.get('text_a', ''))}\n" for each in records).encode(errors="surrogatepass")
    names = list(dict.fromkeys(name for each in records for name in each))
    rows = [names, *([_cell(each.get(name, "")) for name in names] for each in records)]
    return table(rows, ending)


def table(rows: list[list[str]], ending: str) -> bytes:
    if ending == ".csv":
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        return text.getvalue().encode(errors="surrogatepass")
    return "".join("\t".join(row) + "\n" for row in rows).encode(errors="surrogatepass")


def whole(records: list[Record]) -> Any:
    """Return what a ``.json`` file of records has: SQuAD's form if they are questions, otherwise a list of them."""
    return squad(records) if any(each.keys() & {"question", "context", "answers"} for each in records) else records


def squad(records: list[Record]) -> dict[str, Any]:
    paragraphs = [
        {"context": each.get("context"), "qas": [{name: each[name] for name in each if name != "context"}]}
        for each in records
    ]
    return {"data": [{"title": "t", "paragraphs": paragraphs}]}


def _parquet(records: list[Record]) -> bytes:
    """Return a Parquet file; one that holds texts only where a column has values of several types."""
    from pyarrow import BufferOutputStream, Table, parquet

    file = BufferOutputStream()
    try:
        found = Table.from_pylist(records)
        parquet.write_table(found, file)
    except (ValueError, TypeError, NotImplementedError, OverflowError):
        names = dict.fromkeys(name for each in records for name in each)
        texts = {name: [_text(each.get(name, "")) for each in records] for name in names}
        parquet.write_table(Table.from_pydict(texts), file)
    return file.getvalue().to_pybytes()


def _sentence(record: Record) -> str:
    """Return a word and its tag a line; what is missing of a record is missing there."""
    columns = [_cell(record[name]).split("\2") for name in ("text_a", "label") if name in record]
    return "".join("\t".join(cells) + "\n" for cells in zip(*columns, strict=False))


def _text(value: Any) -> str:
    return _cell(value).encode(errors="replace").decode()


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
