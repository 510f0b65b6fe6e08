"""The texts, and the folders of their tokenizers: the same files for both sides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onion.models import hub
from onion.models.tokenizer import Tokenizer

MAX_LENGTH = 128


@dataclass(frozen=True)
class Set:
    """A data set.

    Attributes:
        title: as tables tell it.
        file: its training file, within the folder of data sets.
        vocabulary: a folder in that of data sets; None: that of MiniLM.
    """

    title: str
    file: str
    vocabulary: str | None = None

    def tokenizer(self, data: Path, room: Path) -> Path:
        """Return the folder of its tokenizer; one that both sides can read is made in ``room`` if need be."""
        if self.vocabulary is None:
            return hub.resolve("minilm")
        folder = room / self.vocabulary.replace("/", "-")
        tokenizer = Tokenizer.from_pretrained(data / self.vocabulary)
        tokenizer.settings["tokenizer_class"] = "BertTokenizerFast"
        tokenizer.save_pretrained(folder)
        return folder


SST2 = Set("SST-2", "glue/sst-2/train.tsv")
CHN = Set("ChnSentiCorp", "chnsenticorp/train.tsv", "vocab/bert-base-chinese")
SETS = (SST2, CHN)
