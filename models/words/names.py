"""The names of the encoders of words, of the ways to split texts, and of special tokens.

Nothing is imported: command lines need them.
"""

BOW, CNN, LSTM = "bow", "cnn", "lstm"
KINDS = (BOW, CNN, LSTM)

SPACES, ENGLISH, CHINESE = "spaces", "english", "chinese"
SPLITTINGS = (SPACES, ENGLISH, CHINESE)

UNKNOWN = "[UNK]"
"""Spelled in a text, it is a word: the unknown one."""

SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "unk_token": UNKNOWN,
}
"""Part -> token, in the order of their ids. The unknown word comes last, for it is a word."""

FIRST_WORD = len(SPECIAL_TOKENS) - 1
"""The smallest id of a word: the unknown one's."""
