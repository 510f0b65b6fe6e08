"""Small tokenizers on the disk, and their results as lists."""

import json

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocab_folder(folder, tokens, **settings):
    """A folder with ``vocab.txt`` and, with settings, ``tokenizer_config.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def ids_of(encodings):
    return [one.ids.tolist() for one in encodings]


def byte_letters():
    """The printable letter that stands for each byte (GPT-2): itself if it is one, else the next from U+0100 on."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(others)}


MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġ hello", "ä ¸", "ä¸ Ń", "Ġw o", "r l", "a a", "Ã ©"]
BPE = ["<s>", "<pad>", "</s>", "<unk>", *byte_letters().values(), *(m.replace(" ", "") for m in MERGES), "<mask>"]
BPE_IDS = {token: index for index, token in enumerate(BPE)}


def bpe_folder(folder, merges=MERGES, vocab=BPE_IDS):
    """A folder with ``vocab.json`` and ``merges.txt``."""
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    return folder
