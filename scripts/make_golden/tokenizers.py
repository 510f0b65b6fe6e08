"""Digests of what reference tokenizers make of real texts: ``tests/models/golden/tokenizers.json``.

The ids of every line, special tokens included and nothing truncated, go into a SHA-256 (see :func:`digest`). There are
three references: transformers' tokenizer in Python (``BertTokenizerLegacy``), PaddleNLP's in Python (``ErnieTokenizer``
and, for byte-level BPE, ``RobertaBPETokenizer``), and the plain one below, which the tests use for odd inputs; if it
differs from another one, the script stops. ERNIE's character tokenizers come in no package: theirs is the plain one.
RoBERTa's vocabulary is published with its weights only, so ``merges.txt`` has merges that the ``tokenizers`` library
has learned from these texts, half of each language.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from scripts.make_golden import GOLDEN

DIGESTS = GOLDEN / "tokenizers.json"
MERGES = GOLDEN / "byte_bpe" / "merges.txt"
LINES = 20_000


class Case(NamedTuple):
    """A vocabulary (``merges``: byte-level BPE), a text, how it is split, and whether it is lowered."""

    vocabulary: str
    language: str
    style: str = "wordpiece"
    lower: bool = True


AUTHORITIES = {"wordpiece": "transformers", "symbols": "paddlenlp", "bytes": "paddlenlp"}  # of the others: plain
CASES = {
    "bert-base-uncased, English": Case("bert-base-uncased", "en"),
    "bert-base-uncased, Chinese": Case("bert-base-uncased", "zh"),
    "bert-base-chinese, Chinese": Case("bert-base-chinese", "zh"),
    "bert-base-chinese, English": Case("bert-base-chinese", "en"),
    "bert-base-chinese, Chinese, cased": Case("bert-base-chinese", "zh", lower=False),
    "bert-base-chinese, English, cased": Case("bert-base-chinese", "en", lower=False),
    "ernie-1.0-zh, Chinese": Case("ernie-1.0-zh", "zh"),
    "ernie-1.0-zh, English": Case("ernie-1.0-zh", "en"),
    "ernie-2.0-en, English": Case("ernie-2.0-en", "en"),
    "ernie-3.0-zh, Chinese": Case("ernie-3.0-zh", "zh"),
    "ernie-3.0-zh, English": Case("ernie-3.0-zh", "en"),
    "ernie-1.0-zh, Chinese, PaddleNLP": Case("ernie-1.0-zh", "zh", "symbols"),
    "ernie-1.0-zh, English, PaddleNLP": Case("ernie-1.0-zh", "en", "symbols"),
    "ernie-3.0-zh, Chinese, PaddleNLP": Case("ernie-3.0-zh", "zh", "symbols"),
    "ernie-3.0-zh, English, PaddleNLP": Case("ernie-3.0-zh", "en", "symbols"),
    "ernie-3.0-zh, Chinese, cased, PaddleNLP": Case("ernie-3.0-zh", "zh", "symbols", lower=False),
    "ernie-1.0-zh, Chinese, at spaces": Case("ernie-1.0-zh", "zh", "spaces"),
    "ernie-1.0-zh, English, at spaces": Case("ernie-1.0-zh", "en", "spaces"),
    "ernie-1.0-zh, Chinese, characters": Case("ernie-1.0-zh", "zh", "characters"),
    "ernie-1.0-zh, English, characters": Case("ernie-1.0-zh", "en", "characters"),
    "byte-level BPE, Chinese": Case("merges", "zh", "bytes"),
    "byte-level BPE, English": Case("merges", "en", "bytes"),
}
SYMBOLS = "\u00ad\u00b2\u00ba\u3007\u00b5\u00d8\u014b\u01b1"  # to PaddleNLP, besides Unicode's
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"


def read_lines(data: Path, language: str) -> list[str]:
    """The first 20,000 lines that are not empty."""
    parts = [(data / f"text_{language}" / f"wiki_{language}.{part}.txt") for part in ("train", "valid")]
    lines = [line for part in parts for line in part.read_text(encoding="utf-8").split("\n") if line]
    return lines[:LINES]


def read_tokens(data: Path, name: str) -> list[str]:
    """The tokens of a vocabulary by id; the files here hold them in this order."""
    if name == "merges":
        joined = (row.replace(" ", "") for row in read_merges())
        return ["<s>", "<pad>", "</s>", "<unk>", *byte_letters().values(), *joined, "<mask>"]
    text = (data / "vocab" / name / "vocab.txt").read_text(encoding="utf-8")
    return [row.split("\t")[0] for row in text.removesuffix("\n").split("\n")]


def read_merges() -> list[str]:
    """The merges, two pieces each, the first one first."""
    return MERGES.read_text(encoding="utf-8").removesuffix("\n").split("\n")[1:]


def digest(encoded: Iterable[Iterable[int]]) -> str:
    """SHA-256 of lists of ids: for each its length and its ids, as 32 bits, little-endian."""
    found = hashlib.sha256()
    for ids in encoded:
        ids = list(ids)
        found.update(struct.pack(f"<{len(ids) + 1}i", len(ids), *ids))
    return found.hexdigest()


def plain_ids(text: str, vocab: dict[str, int], lower: bool = True, symbols: bool = False) -> list[int]:
    """BERT's tokenizer by its description, one step after the other, no faster than it has to be.

    With ``symbols`` as PaddleNLP has it: symbols stand alone, and letters are lowered one by one.
    """
    ids = [vocab["[CLS]"]]
    for part in re.split("(" + "|".join(map(re.escape, SPECIAL)) + ")", text):
        words = [part] if part in SPECIAL else plain_words(part, lower, symbols)
        for word in words:
            ids += [vocab[part]] if part in SPECIAL else plain_pieces(word, vocab)
    return [*ids, vocab["[SEP]"]]


def plain_words(text: str, lower: bool, symbols: bool = False) -> Iterator[str]:
    """Clean, set ideographs apart, split at whitespace, lower and strip accents, split at punctuation."""
    if lower and symbols:
        text = "".join(c.lower() for c in text)
    kept = (c for c in text if c in "\t\n\r" or (c != "\ufffd" and not unicodedata.category(c).startswith("C")))
    for word in re.sub(f"([{IDEOGRAPHS}])", r" \1 ", "".join(kept)).split():
        if lower:
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
        more = {c for c in word if unicodedata.category(c)[0] == "S" or c in SYMBOLS} if symbols else set()
        signs = "".join(sorted(more | {c for c in word if unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~"}))
        yield from filter(None, re.split(f"([{re.escape(signs)}])", word) if signs else [word])


def plain_pieces(word: str, vocab: dict[str, int], inner: str = "##", outer: str = "") -> list[int]:
    """Greedy longest match from the left; the whole word is unknown where one piece is, or beyond 100 characters."""
    ids, start = [], 0
    while start < len(word):
        prefix = inner if start else outer
        end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in vocab), 0)
        if not end or len(word) > 100:
            return [vocab["[UNK]"]]
        ids.append(vocab[prefix + word[start:end]])
        start = end
    return ids


def character_ids(text: str, vocab: dict[str, int], style: str) -> list[int]:
    """ERNIE's character tokenizers: lowered, cut at spaces or into runs of ASCII letters and digits and single others.

    Source: PaddlePaddle/ERNIE (static graph) tokenization.CharTokenizer (``spaces``), utils.data.CharTokenizer.
    """
    words = text.lower().split() if style == "spaces" else re.findall(r"[a-zA-Z0-9]+|\S", text.lower())
    return [vocab["[CLS]"], *(piece for word in words for piece in plain_pieces(word, vocab)), vocab["[SEP]"]]


@cache
def byte_letters() -> dict[int, str]:
    """The printable letter that stands for each byte (GPT-2): itself where it is one, else the next from U+0100 on."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def byte_words(text: str) -> Iterator[str]:
    """What GPT-2's expression finds, a word with the space before it; each character stands for its kind in the search.

    Source: openai/gpt-2 ``encoder.py``, whose expression asks for kinds of characters that Python's ``re`` has not.
    """
    kinds = "".join(map(_kind, text))
    for found in re.finditer(r"'s|'t|'re|'ve|'m|'ll|'d| ?[a-z]+| ?0+| ?[^\sa-z0]+|\s+(?!\S)|\s+", kinds):
        yield text[found.start() : found.end()]


@cache
def _kind(character: str) -> str:
    if character in "' stremvld":
        return character
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":  # those are whitespace to Python alone
        return "\t"
    return {"L": "a", "N": "0"}.get(unicodedata.category(character)[0], ".")


def byte_pieces(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """The pieces of a word: the pair that was learned first is joined wherever it is, again and again."""
    pieces = [byte_letters()[byte] for byte in word.encode()]
    while True:
        best = min(set(pairwise(pieces)), key=lambda pair: ranks.get(pair, len(ranks)), default=("", ""))
        if best not in ranks:
            return pieces
        joined: list[str] = []
        rest = iter(range(len(pieces)))
        for i in rest:
            both = tuple(pieces[i : i + 2]) == best
            joined.append("".join(best) if both else pieces[i])
            if both:
                next(rest)
        pieces = joined


def byte_ids(lines: Iterable[str], vocab: dict[str, int], merges: Iterable[str]) -> Iterator[list[int]]:
    """RoBERTa's byte-level BPE by its description, of texts without special tokens."""
    ranks = {(first, second): rank for rank, (first, second) in enumerate(merge.split(" ") for merge in merges)}
    known: dict[str, list[int]] = {}
    for line in lines:
        ids = [vocab["<s>"]]
        for word in byte_words(line):
            if word not in known:
                known[word] = [vocab[piece] for piece in byte_pieces(word, ranks)]
            ids += known[word]
        yield [*ids, vocab["</s>"]]


def plain_lines(case: Case, tokens: list[str], lines: list[str]) -> Iterator[list[int]]:
    """What the plain references make of the lines."""
    vocab = {token: index for index, token in enumerate(tokens)}
    if case.style == "bytes":
        return byte_ids(lines, vocab, read_merges())
    if case.style in ("spaces", "characters"):
        return (character_ids(line, vocab, case.style) for line in lines)
    return (plain_ids(line, vocab, case.lower, case.style == "symbols") for line in lines)


def compared(
    name: str, lines: list[str], plain: Iterable[list[int]], other: Iterable[list[int]]
) -> dict[str, int | str]:
    """The digest of what two references make of the lines, which has to be the same."""
    both = []
    for line, one, two in zip(lines, plain, other, strict=True):
        if one != two:
            sys.exit(f"{name}: the references differ on {line!r}")
        both.append(one)
    found: dict[str, int | str] = {"lines": len(lines), "ids": sum(map(len, both)), "sha256": digest(both)}
    print(name, found, flush=True)
    return found


def transformers_ids(tokens: list[str], lines: list[str], lower: bool) -> Iterator[list[int]]:
    """What transformers' tokenizer in Python makes of the lines."""
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        tokenizer = BertTokenizerLegacy(str(path), do_lower_case=lower, model_max_length=10**9)
    return (tokenizer(line)["input_ids"] for line in lines)


def paddlenlp_ids(tokens: list[str], lines: list[str], lower: bool, style: str) -> Iterator[list[int]]:
    """What PaddleNLP's tokenizer for ERNIE, or its byte-level BPE, makes of the lines."""
    from paddlenlp.transformers import ErnieTokenizer, RobertaBPETokenizer

    tokenizer: Any
    with tempfile.TemporaryDirectory() as folder:
        if style == "bytes":
            path = Path(folder) / "vocab.json"
            path.write_text(json.dumps({token: index for index, token in enumerate(tokens)}))
            tokenizer = RobertaBPETokenizer(str(path), str(MERGES))
        else:
            path = Path(folder) / "vocab.txt"
            path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
            tokenizer = ErnieTokenizer(str(path), do_lower_case=lower)
    return (tokenizer(line, max_length=None)["input_ids"] for line in lines)


def learn_merges(data: str) -> None:
    """Write ``merges.txt``."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = sorted(byte_letters().values())
    trainer = trainers.BpeTrainer(vocab_size=len(letters) + 2000, initial_alphabet=letters, show_progress=False)
    learner.train_from_iterator(
        (line for language in ("en", "zh") for line in read_lines(Path(data), language)), trainer
    )
    merges = (" ".join(merge) for merge in json.loads(learner.to_str())["model"]["merges"])
    MERGES.parent.mkdir(exist_ok=True)
    MERGES.write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")


def by_authority(case: Case, authority: str, tokens: list[str], lines: list[str]) -> Iterator[list[int]]:
    """What another reference makes of the lines; where there is none, the plain one again."""
    if authority == "transformers":
        return transformers_ids(tokens, lines, case.lower)
    if authority == "paddlenlp":
        return paddlenlp_ids(tokens, lines, case.lower, case.style)
    return plain_lines(case, tokens, lines)


def main(folder: str, authority: str) -> None:
    """Run the plain reference and another one, and write the digests of its cases."""
    data = Path(folder)
    golden = json.loads(DIGESTS.read_text())
    for name, case in CASES.items():
        if AUTHORITIES.get(case.style, "plain") != authority:
            continue
        tokens, lines = read_tokens(data, case.vocabulary), read_lines(data, case.language)
        plain, other = plain_lines(case, tokens, lines), by_authority(case, authority, tokens, lines)
        golden[name] = compared(name, lines, plain, other)
    DIGESTS.write_text(json.dumps({name: golden[name] for name in CASES if name in golden}, indent=2) + "\n")
