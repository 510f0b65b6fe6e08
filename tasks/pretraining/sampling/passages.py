"""Articles of a file of questions as passages, of which each question has one that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenization.encoding import Encoding
from onion.models.tokenization.pre_tokenizer import LONGEST
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.hashing import digest_of_file, digest_of_tokenizer, digest_of_values
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus
from onion.tasks.pretraining.corpus.encoding import VERSION, without_special
from onion.tasks.pretraining.corpus.flags import Flags
from onion.tasks.pretraining.corpus.segmentation.spans import Spans
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.corpus.token_flags import token_flags
from onion.tasks.question_answering.questions import Question, file_articles

NONE = -1


@attrs.frozen(eq=False)
class Passages:
    """Paragraphs, or parts of long ones, in whole sentences where these fit, and questions about them.

    Attributes:
        texts: the passages; their documents are the paragraphs of the file.
        articles: the number of each passage's article, int64 ``[passages]``.
        questions: ids and flags of each question, without special tokens.
        answers: the number of the passage that answers each question, int64 ``[questions]``; -1: there is none, as for
            questions that cannot be answered (SQuAD 2.0), or it is not known, since a paragraph of several passages has
            no answer with a right place.
    """

    texts: Segments
    articles: NDArray[np.int64]
    questions: Sequence[tuple[NDArray[np.int64], Flags]]
    answers: NDArray[np.int64]

    @classmethod
    def read(cls, path: str | Path, tokenizer: Tokenizer, max_tokens: int) -> Passages:
        """Read a file in SQuAD's format. Paragraphs without a question are left out.

        Args:
            path: the file, which is read into memory as a whole.
            tokenizer: makes the ids; its words are the words of the flags.
            max_tokens: most tokens of a passage.

        Raises:
            DataError: the file is invalid; see ``onion.tasks.question_answering.questions``.
        """
        numbers: dict[tuple[int, str], int] = {}
        asked = []
        for article, questions in enumerate(file_articles(path, labelled=True)):
            for question in questions:
                asked.append((question, numbers.setdefault((article, question.context), len(numbers))))
        encodings, documents = _encoded([context for _, context in numbers], tokenizer)
        of_tokens = {"file": digest_of_file(path), "tokenizer": digest_of_tokenizer(tokenizer), "encoding": VERSION}
        corpus = MemoryCorpus.of(documents, tokenizer, digest_of_values(of_tokens))
        texts = Segments.of(corpus, max_tokens)
        articles = np.array([article for article, _ in numbers], np.int64)[texts.documents]
        answers = [
            _passage(texts, paragraph, _place(each, encodings[paragraph])) if each.answers else NONE
            for each, paragraph in asked
        ]
        return cls(
            texts, articles, _encoded([each.text for each, _ in asked], tokenizer)[1], np.array(answers, np.int64)
        )


def _encoded(
    texts: Sequence[str], tokenizer: Tokenizer
) -> tuple[list[Encoding], list[tuple[NDArray[np.int64], Flags]]]:
    """Return the encodings of texts, and their ids and flags without special tokens."""
    encodings = tokenizer(texts, max_length=LONGEST, offsets=True)
    found = zip(encodings, token_flags(texts, encodings, [Spans()] * len(texts)), strict=True)
    return encodings, [(without_special(each.ids[1:-1], tokenizer), flags[1:-1]) for each, flags in found]


def _place(question: Question, context: Encoding) -> int:
    """Return the token at which an answer begins, or NONE."""
    for answer in question.answers:
        if answer.stands_in(question.context):
            return int(np.searchsorted(context.alignment[0][1:-1, 1], answer.start, "right"))
    return NONE


def _passage(texts: Segments, paragraph: int, place: int) -> int:
    """Return the passage in which a token of a paragraph is, or NONE."""
    passages = texts.of_document(paragraph)
    if len(passages) == 1:
        return passages[0]
    if place == NONE or not passages:
        return NONE
    place += int(texts.begins[passages[0]])
    return int(np.searchsorted(texts.begins, place, "right")) - 1
