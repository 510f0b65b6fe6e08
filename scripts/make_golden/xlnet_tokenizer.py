"""A small SentencePiece model, and transformers' ids for XLNet: ``tests/models/golden/xlnet_tokenizer/``.

:func:`train`, by sentencepiece and protobuf, trains the model, with XLNet's special tokens, on lines of text_en and
text_zh, and writes ``vocabulary.json`` (pieces with their scores, the table of characters); :func:`expect`, by
transformers, makes ``tokenizer.json`` and ids of that, and deletes it. Numbers with a comma behind them are in the
training text, because their pieces are treated specially.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from scripts.make_golden import GOLDEN
from scripts.make_golden.ernie_tiny import train as trained
from scripts.make_golden.tokenizers import read_lines

FOLDER = GOLDEN / "xlnet_tokenizer"
MODEL, VOCABULARY, EXPECTED = "spiece.model", "vocabulary.json", "expected.json"
PIECES = 700
CONTROL = ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]  # ids 3 to 8, as in the published model
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "In 1999, some 12,000 people, 300 of them from Paris, saw it.",
    "9,9,9, 10, 1,000,000",
    "``Quoted'' and \"quoted\"",
    "Café, naïve, Zürich, Ångström, e\u0301te\u0301",
    "ＦＵＬＬ　ｗｉｄｔｈ ﬁne ½ ① ℃",
    "  many   spaces\tand\nlines  ",
    "",
    " ",
    "a",
    "Здравствуй, мир",
    "中文和 English 混排，還有標點。",
    "emoji 👍🏽 and \u200b zero width",
    "a <mask> in a text, <sep> and <cls>, <eod> too",
    "<unk> is written out",
    "x" * 50,
    "don't can't WON'T",
    "\u2581already marked",
    "control \x01 character, soft\u00adhyphen",
    "ﷺ 한국어 한국어",
]


def train(data: str) -> None:
    """Write the model and the vocabulary."""
    from sentencepiece import sentencepiece_model_pb2

    numbers = [
        f"In {year}, there were {year * 7:,} of {year % 100}, and {year % 9}, more." for year in range(1900, 2000)
    ]
    lines = [*read_lines(Path(data), "en")[:300], *read_lines(Path(data), "zh")[:60], *numbers]
    split = {"split_by_number": False, "split_by_unicode_script": False}
    model = trained(lines, PIECES, model_type="unigram", control_symbols=CONTROL, character_coverage=0.99, **split)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / MODEL).write_bytes(model)
    found = sentencepiece_model_pb2.ModelProto()
    found.ParseFromString(model)
    charsmap = base64.b64encode(found.normalizer_spec.precompiled_charsmap).decode()
    pieces = [(piece.piece, piece.score) for piece in found.pieces]
    written = json.dumps({"pieces": pieces, "charsmap": charsmap}, ensure_ascii=False)
    (FOLDER / VOCABULARY).write_text(written, encoding="utf-8")


def expect() -> None:
    """Write transformers' tokenizer and its ids and types of texts and pairs."""
    import transformers

    stored = json.loads((FOLDER / VOCABULARY).read_text(encoding="utf-8"))
    # As transformers' converter of SentencePiece models has it, which made the published tokenizer.json.
    vocab = [
        (piece, score - 100 if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit() else score)
        for piece, score in stored["pieces"]
    ]
    tokenizer = transformers.XLNetTokenizer(vocab=vocab, _spm_precompiled_charsmap=base64.b64decode(stored["charsmap"]))
    tokenizer.backend_tokenizer.save(str(FOLDER / "tokenizer.json"), pretty=False)
    texts, pairs = TEXTS, TEXTS[::-1]
    # As lists: transformers takes one empty second text for none.
    ones = tokenizer(texts, return_token_type_ids=True)
    both = tokenizer(texts, pairs, return_token_type_ids=True)
    expected = {
        "maker": f"transformers {transformers.__version__}",
        "texts": list(zip(texts, ones["input_ids"], ones["token_type_ids"], strict=True)),
        "pairs": list(zip(texts, pairs, both["input_ids"], both["token_type_ids"], strict=True)),
    }
    parts = [f"{json.dumps(name)}: {_lines(value)}" for name, value in expected.items()]
    (FOLDER / EXPECTED).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    (FOLDER / VOCABULARY).unlink()


def _lines(value: object) -> str:
    """JSON with an entry of a list a line."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"
