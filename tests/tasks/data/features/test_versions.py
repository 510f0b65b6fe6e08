"""Features are kept under the version of what makes them: whoever changes what is made is told to raise it."""

import csv
import hashlib
import json
from collections import Counter

import pytest

from onion.models.tokenization.wordpiece import STYLES
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.hashing import SHARED_VERSION
from onion.tasks.data.rows import file_rows
from onion.tasks.registry import TASKS
from tests.tasks.squad_files import TINY, squad

GOLDEN = {
    "classification": (1, "d903b547895f6dbf1fafab587f20cbd0085ceb26cb44f78ce0f55124d25b90c9"),
    "regression": (1, "7ee0a1c7e6fda8e30ea9252dbfdf5657e503e6feba99ff4d7b08fb8259c94c50"),
    "matching": (1, "7efd93b739b33b2cca2dd758c57e6727cea669850fc79b2e49ddab3e152dc3dc"),
    "multilabel": (1, "d3bf96ec80b1ce37f09ece5f2d4ecdb21ea5c0720d0e61db3b066f72cb9c466b"),
    "token-classification": (1, "02ae65620283d97b3b061a51c6f8cbfc23dff74838e56d658f002be6c1227aaa"),
    "masked-lm": (1, "17ba92f5e7c21ddcfc3ab35167f27b91c5d4115d6b38bf3c2fc4d6de0c41a6c6"),
    "question-answering": (1, "96655efab47b56290fa9a15404e7b75f23a4164cd0ec2179bffe5cd7aaa34def"),
}
GOLDEN_SHARED = (1, "06fa1cd90a0be7e7944609788e131c03b518c7a02f4f7fcbc2b07e97fa1c3aa9")

TABLES = {
    "classification": [[("text_a", "text_b", "label"), ("a lovely film", "it was fine", "good"), ("grim", "", "bad")]],
    "regression": [[("text_a", "label"), ("a lovely film, über", "0.5"), ("grim", "-2")]],
    "matching": [
        [("text_a", "text_b", "label"), ("a lovely film", "it was fine", "1"), ("grim", "", "0")],
        [("text_a", "text_b", "text_b_neg"), ("a lovely film", "it was fine", "grim"), ("grim", "cold", "warm")],
    ],
    "multilabel": [[("text_a", "label"), ("a lovely film", "x,y"), ("grim", ""), ("中文 plot", "y")]],
    "token-classification": [[("text_a", "label"), ("a\2lovely\2film", "O\2B-x\2I-x"), ("grim\2plots", "O\2O")]],
    "masked-lm": [[("text_a",), ("a lovely film was it and the plot is fine of an actor",), ("grim",)]],
}
QUESTIONS = [("a film was warm and it is fine", "a film", [("warm", 11)]), ("the plot", "the story", [])]
TEXT = "A lovely film, über-fine! 中文 it's plot\u200b of actors [MASK] x"


def tables(name, folder):
    for number, rows in enumerate(TABLES[name]):
        path = folder / f"{number}.tsv"
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        yield path


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=lambda each: each.tolist()).encode()).hexdigest()


def advice(what, golden, found):
    return (
        f"What is made is no longer what {what} {golden[0]} made: {found}. If that is meant, raise {what}, so that "
        f"nobody goes on with the features that are kept, and write the version and the digest here."
    )


def test_every_task_has_a_version_of_its_own():
    assert TASKS.keys() == GOLDEN.keys()
    for kind in TASKS.values():
        assert "features_version" in vars(kind)


@pytest.mark.parametrize("name", GOLDEN)
def test_other_features_need_another_version(name, tmp_path, tokenizer):
    if name == "question-answering":
        task, paths = TASKS[name](**TINY), [squad(tmp_path / "a.json", *QUESTIONS)]
    else:
        task, paths = TASKS[name](max_length=8), tables(name, tmp_path)
    made = []
    for path in paths:
        fitted = task.fitted(path)
        for labelled in (True, False):
            made.append(fitted.features(list(fitted.rows(path, labelled)), tokenizer, labelled, Counter()))
    found = (TASKS[name].features_version, digest(made))
    assert found == GOLDEN[name], advice(f"{TASKS[name].__name__}.features_version", GOLDEN[name], found)


def test_other_rows_or_tokens_need_another_shared_version(encoder_folder, tmp_path):
    rows = [["text_a", "label"], [TEXT, "good"], ["a", " 1"]]
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(dict(zip(rows[0], row, strict=True))) + "\n" for row in rows))
    made = [
        dict(row.cells) for ending in ("csv", "tsv", "jsonl") for row in file_rows(tmp_path / f"a.{ending}", rows[0])
    ]
    for style in sorted(STYLES):
        tokenizer = Tokenizer.from_pretrained(encoder_folder, style)
        made += [each.ids for each in tokenizer([TEXT, "a"], ["it", TEXT], max_length=12)]
        made += [[each.ids, each.offsets, each.words] for each in tokenizer.windows([TEXT], max_length=8, stride=3)[0]]
    found = (SHARED_VERSION, digest(made))
    assert found == GOLDEN_SHARED, advice("SHARED_VERSION", GOLDEN_SHARED, found)
