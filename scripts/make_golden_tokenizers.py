"""Write tests/models/golden/tokenizers.json: digests of what reference tokenizers make of real texts.

The ids of every line, special tokens included and nothing cut off, go into a SHA-256 (see :func:`digest`). There are
three references: transformers' tokenizer in Python (``BertTokenizerLegacy``), PaddleNLP's for ERNIE
(``ErnieTokenizer``), and the plain one below, which the tests use for odd inputs; where it differs from the others the
script stops. Run where the reference is installed (none is a dependency of onion; the digests were made with
transformers 5.23.0 and PaddleNLP 2.8.1 on Python 3.11, Unicode 14), once for each:

    python scripts/make_golden_tokenizers.py ../shared/data transformers
    python scripts/make_golden_tokenizers.py ../shared/data paddlenlp
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
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "tests" / "models" / "golden" / "tokenizers.json"
LINES = 20_000
CASES = {  # name -> vocabulary, text, whether it is lowered; symbols stand alone where PaddleNLP is the reference
    "bert-base-uncased, English": ("bert-base-uncased", "en", True),
    "bert-base-chinese, Chinese": ("bert-base-chinese", "zh", True),
    "bert-base-chinese, Chinese, cased": ("bert-base-chinese", "zh", False),
    "bert-base-chinese, English, cased": ("bert-base-chinese", "en", False),
    "ernie-1.0-zh, Chinese": ("ernie-1.0-zh", "zh", True),
    "ernie-3.0-zh, Chinese": ("ernie-3.0-zh", "zh", True),
    "ernie-3.0-zh, English": ("ernie-3.0-zh", "en", True),
    "ernie-1.0-zh, Chinese, PaddleNLP": ("ernie-1.0-zh", "zh", True),
    "ernie-1.0-zh, English, PaddleNLP": ("ernie-1.0-zh", "en", True),
    "ernie-3.0-zh, Chinese, PaddleNLP": ("ernie-3.0-zh", "zh", True),
    "ernie-3.0-zh, English, PaddleNLP": ("ernie-3.0-zh", "en", True),
    "ernie-3.0-zh, Chinese, cased, PaddleNLP": ("ernie-3.0-zh", "zh", False),
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
    text = (data / "vocab" / name / "vocab.txt").read_text(encoding="utf-8")
    return [row.split("\t")[0] for row in text.removesuffix("\n").split("\n")]


def digest(encoded: Iterable[Iterable[int]]) -> str:
    """SHA-256 of lists of ids: for each its length and its ids, as 32 bits, little-endian."""
    found = hashlib.sha256()
    for ids in encoded:
        ids = list(ids)
        found.update(struct.pack(f"<{len(ids) + 1}i", len(ids), *ids))
    return found.hexdigest()


def by_paddlenlp(name: str) -> bool:
    """Whether PaddleNLP is the reference of a case."""
    return name.endswith("PaddleNLP")


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


def transformers_ids(tokens: list[str], lines: list[str], lower: bool) -> Iterator[list[int]]:
    """What transformers' tokenizer in Python makes of the lines."""
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        tokenizer = BertTokenizerLegacy(str(path), do_lower_case=lower, model_max_length=10**9)
    return (tokenizer(line)["input_ids"] for line in lines)


def paddlenlp_ids(tokens: list[str], lines: list[str], lower: bool) -> Iterator[list[int]]:
    """What PaddleNLP's tokenizer for ERNIE makes of the lines."""
    from paddlenlp.transformers import ErnieTokenizer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        tokenizer = ErnieTokenizer(str(path), do_lower_case=lower)
    return (tokenizer(line, max_length=None)["input_ids"] for line in lines)


def main(data: Path, authority: str) -> None:
    """Run the plain reference and another one, and write the digests of its cases."""
    paddlenlp = {"transformers": False, "paddlenlp": True}[authority]
    reference = paddlenlp_ids if paddlenlp else transformers_ids
    golden = json.loads(GOLDEN.read_text())
    for name in filter(lambda name: by_paddlenlp(name) == paddlenlp, CASES):
        vocabulary, language, lower = CASES[name]
        tokens, lines = read_tokens(data, vocabulary), read_lines(data, language)
        vocab = {token: index for index, token in enumerate(tokens)}
        plain = (plain_ids(line, vocab, lower, paddlenlp) for line in lines)
        both = []
        for line, one, other in zip(lines, plain, reference(tokens, lines, lower), strict=True):
            if one != other:
                sys.exit(f"{name}: the references differ on {line!r}")
            both.append(one)
        golden[name] = {"lines": len(lines), "ids": sum(map(len, both)), "sha256": digest(both)}
        print(name, golden[name], flush=True)
    GOLDEN.write_text(json.dumps({name: golden[name] for name in CASES if name in golden}, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
