"""A small tokenizer like ERNIE tiny's, and digests of its ids: ``tests/models/golden/ernie_tiny_tokenizer/``.

The published one is not available everywhere, so a SentencePiece model is trained on text_zh, with a dictionary
and a vocabulary; then PaddleNLP's ``ErnieTinyTokenizer`` and the plain one below, which the tests use for odd inputs,
run over real texts; if they differ, the script stops. Training is reproducible (one thread), but not across versions of
sentencepiece, so the model is kept.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from scripts.make_golden import GOLDEN
from scripts.make_golden.tokenizers import SPECIAL, compared, read_lines

FOLDER = GOLDEN / "ernie_tiny_tokenizer"
MODEL, WORDS, VOCAB, DIGESTS = "spm_cased_simp_sampled.model", "dict.wordseg.pickle", "vocab.txt", "digests.json"
LANGUAGES = {"Chinese": "zh", "English": "en"}
TRAINING_LINES, PIECES = 400, 1200
DICTIONARY = 1500  # words
# Of SentencePiece's own table (nmt_nfkc, 240 kB) the characters that the texts have: Latin, signs, full-width forms.
BLOCKS = ((0xA0, 0x100), (0x2000, 0x2150), (0x2460, 0x2500), (0x3000, 0x3400), (0xFB00, 0xFB07), (0xFF01, 0xFFF0))
DROPPED = (*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F)
SPACES = (0x9, 0xA, 0xC, 0xD, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)


def rules() -> str:
    """The table of characters that the model replaces: source and target, in hexadecimal numbers."""
    found = {chr(code): "" for code in DROPPED} | {chr(code): " " for code in SPACES}
    for begin, end in BLOCKS:
        for character in map(chr, range(begin, end)):
            found.setdefault(character, unicodedata.normalize("NFKC", character))
    for character in map(chr, range(0xC0, 0x180)):
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1:
            found[parts] = character
    rows = [(source, target) for source, target in sorted(found.items()) if source != target]
    return "".join("\t".join(" ".join(f"{ord(c):X}" for c in part) for part in row) + "\n" for row in rows)


def train(lines: list[str], pieces: int, **settings: Any) -> bytes:
    """A SentencePiece model of lines."""
    import sentencepiece

    out = io.BytesIO()
    # The model contains the table's path, so that is a short one.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # type: ignore[attr-defined]  # Python 3.11
        Path("rules.tsv").write_text(rules(), encoding="utf-8")
        settings |= {"num_threads": 1, "normalization_rule_tsv": "rules.tsv", "minloglevel": 2, "vocab_size": pieces}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **settings)
    return out.getvalue()


def words_of(lines: list[str]) -> dict[str, int]:
    """Frequent words: runs of two to six letters or ideographs, and some with a space in them."""
    counts: Counter[str] = Counter()
    for line in lines:
        for run in re.findall(r"[a-z]+ [a-z]+|[a-z]+|[\u4e00-\u9fff]+", line.lower()):
            ascii_run = run.isascii()
            for length in (len(run),) if ascii_run else range(1, 7):
                counts.update(run[i : i + length] for i in range(len(run) - length + 1))
    kept = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1] * (len(item[0]) - 0.5), item[0]))]
    return {word: counts[word] for word in kept[:DICTIONARY]}


def vocab_of(model: bytes) -> list[str]:
    """The special tokens, five of six pieces, and tokens that the model does not know."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    return [*SPECIAL, *(piece for i, piece in enumerate(pieces) if i % 6 != 5), "€", "ß", "\u0301", "👍"]


def cut(text: str, words: Container[str]) -> Iterator[str]:
    """The longest known word of at most five characters at each place, else one character."""
    begin = 0
    while begin < len(text):
        length = next((length for length in (5, 4, 3, 2) if text[begin : begin + length] in words), 1)
        yield text[begin : begin + length]
        begin += length


class Plain:
    """ERNIE tiny's tokenizer by its description, one step after the other, no faster than it has to be.

    Args:
        folder: where its files are.
    """

    def __init__(self, folder: Path) -> None:
        import sentencepiece

        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / MODEL))
        self.words = set(pickle.loads((folder / WORDS).read_bytes()))
        tokens = (folder / VOCAB).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        self.vocab = {token: index for index, token in enumerate(tokens)}

    def ids(self, text: str, lower: bool = True) -> list[int]:
        """The ids of a text, special tokens included."""
        return [self.vocab[token] for token in ("[CLS]", *self.tokens(text, lower), "[SEP]")]

    def tokens(self, text: str, lower: bool) -> Iterator[str]:
        """Set special tokens apart and strip what stands beside them; cut the rest."""
        parts = re.split("(" + "|".join(map(re.escape, SPECIAL)) + ")", text)
        for i, part in enumerate(parts):
            if part in SPECIAL:
                yield part
                continue
            if lower:
                part = "".join(character.lower() for character in part)
            part = part.lstrip() if i else part
            part = part.rstrip() if i < len(parts) - 1 else part
            joined = " ".join(word for word in cut(part, self.words) if word != " ")
            yield from (piece if piece in self.vocab else "[UNK]" for piece in self.pieces.encode(joined, out_type=str))


def main(folder: str) -> None:
    """Make the tokenizer, run both references and write the digests."""
    data = Path(folder)
    lines = [*read_lines(data, "zh")[:TRAINING_LINES], *read_lines(data, "en")[: TRAINING_LINES // 4]]
    words = words_of(lines)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / MODEL).write_bytes(
        train([" ".join(cut(line.lower(), words)) for line in lines], PIECES, character_coverage=0.98)
    )
    (FOLDER / WORDS).write_bytes(pickle.dumps(words, protocol=2))
    (FOLDER / VOCAB).write_text("\n".join(vocab_of((FOLDER / MODEL).read_bytes())) + "\n", encoding="utf-8")
    from paddlenlp.transformers import ErnieTinyTokenizer

    plain, authority = Plain(FOLDER), ErnieTinyTokenizer(*(str(FOLDER / name) for name in (VOCAB, MODEL, WORDS)))
    golden = {}
    for name, language in LANGUAGES.items():
        lines = read_lines(data, language)
        other = (authority(line, max_length=None)["input_ids"] for line in lines)
        golden[name] = compared(name, lines, map(plain.ids, lines), other)
    (FOLDER / DIGESTS).write_text(json.dumps(golden, indent=2) + "\n")
