"""The contract of a pretraining task: how a corpus becomes examples, the head, the metric, the trivial baseline.

The seven tasks of ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412), and BERT's and ALBERT's sentence tasks, are frozen
attrs classes, one a file. They differ in their samplers and labels only: heads, loss, batches and metric are common.

    corpus -> samples -> masks -> batches -> network -> decoded -> metric
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import attrs

from onion.errors import DataError
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.examples import Example, PassExamples
from onion.tasks.validators import NATURAL, SWITCH


@attrs.frozen(kw_only=True)
class PretrainingTask(ABC):
    """Base class of pretraining tasks.

    Attributes:
        name: of the task, as in ``onion pretrain --tasks``.
        task_id: ERNIE's task id, from 0, which the encoder adds to every token if it has task embeddings.
        classes: the names of the classes of a text or, if ``each_token``, of a token; empty: the task has only masks.
        each_token: whether tokens have classes, and not texts.
        files: the settings that name files, which are compared by content and not by path.
        pair: whether an example has two texts, whose tokens are of two types.
        max_length: most tokens of an example, including special ones.
        masks: whether words are masked too, and their loss is added. Default: where texts have classes, and where
            nothing has; ERNIE 2.0 trains sentence tasks and masked words on the same batch.
    """

    name: ClassVar[str]
    task_id: ClassVar[int]
    each_token: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()
    pair: ClassVar[bool] = False

    max_length: int = attrs.field(default=128, validator=NATURAL)
    masks: bool = attrs.field(
        default=attrs.Factory(lambda self: not self.each_token, takes_self=True), validator=SWITCH
    )

    @masks.validator
    def _needs_a_target(self, _: attrs.Attribute[bool], masks: bool) -> None:
        if not masks and not self.classes:
            raise DataError(f"{self.name}: without masks there is nothing to predict; leave masks=false out")

    @property
    def monitor(self) -> str:
        """The figure that tells how well the task is learned: accuracy of the classes, or perplexity of the words."""
        return "accuracy" if self.classes else "perplexity"

    @property
    def classes(self) -> Sequence[str]:
        """The names of the classes, in the order of the labels. Default: none."""
        return ()

    @property
    def most_types(self) -> int:
        """How many types of tokens an example may have."""
        return 2 if self.pair else 1

    @abstractmethod
    def samples(self, corpus: Corpus, seed: int) -> PassExamples:
        """Return the examples of a corpus, not masked; each is a function of (seed, pass, number of the example).

        Raises:
            DataError: the corpus has nothing that this task could learn from; the message says what is missing.
        """

    def held_out_samples(self, held_out: Corpus | None, corpus: Corpus, seed: int) -> PassExamples | None:
        """Return the examples to test on; None: there are none that were not learned from.

        Args:
            held_out: the corpus to test on, if there is one. Default: the examples are its :meth:`samples`.
            corpus: the one that is learned from.
            seed: of the examples.
        """
        return None if held_out is None else self.samples(held_out, seed)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return figures that are reached without reading the text in order, to be beaten on held-out examples.

        They are named as the figure that they are to be compared with, plus what reaches them, such as
        ``accuracy.commonest``. Default: none.

        Args:
            train: samples to count on.
            held_out: samples to be right about.
        """
        return {}
