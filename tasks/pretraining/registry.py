"""The pretraining tasks by name. A new one is a file in ``tasks/`` and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import DataError
from onion.messages import shown
from onion.tasks.pretraining.masking.masking import Masking
from onion.tasks.pretraining.settings import MASKING
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.pretraining.tasks.capitalisation import Capitalisation
from onion.tasks.pretraining.tasks.discourse_relation import DiscourseRelation
from onion.tasks.pretraining.tasks.ir_relevance import IRRelevance
from onion.tasks.pretraining.tasks.knowledge_masking import KnowledgeMasking
from onion.tasks.pretraining.tasks.next_sentence import NextSentence
from onion.tasks.pretraining.tasks.sentence_distance import SentenceDistance
from onion.tasks.pretraining.tasks.sentence_order import SentenceOrder
from onion.tasks.pretraining.tasks.sentence_reordering import SentenceReordering
from onion.tasks.pretraining.tasks.token_document import TokenDocument

PRETRAINING_TASKS: dict[str, type[PretrainingTask]] = {
    kind.name: kind
    for kind in (
        KnowledgeMasking,
        Capitalisation,
        TokenDocument,
        SentenceReordering,
        SentenceDistance,
        DiscourseRelation,
        IRRelevance,
        NextSentence,
        SentenceOrder,
    )
}
"""In the order of their task ids: the seven of ERNIE 2.0 as its paper lists them, and those of BERT and ALBERT."""


WITH_SETTINGS: dict[str, type] = {MASKING: Masking, **PRETRAINING_TASKS}
"""What ``--set NAME.SETTING=VALUE`` of ``onion pretrain`` may name: the masks, and the tasks."""


def get_pretraining_task(name: str, settings: Mapping[str, Any]) -> PretrainingTask:
    """Return the pretraining task with this name and these settings.

    Raises:
        DataError: there is no such task, it has no such setting, or one is missing or invalid; the message lists what
            there is.
    """
    if name not in PRETRAINING_TASKS:
        raise DataError(f"unknown pretraining task {shown(name)}; the tasks are {', '.join(PRETRAINING_TASKS)}")
    kind = PRETRAINING_TASKS[name]
    fields = {field.name: field.default for field in attrs.fields(kind) if field.init}
    for unknown in (each for each in settings if each not in fields):
        raise DataError(f"unknown setting {shown(unknown)}; the pretraining task {name} has {', '.join(fields)}")
    for missing in (each for each, default in fields.items() if default is attrs.NOTHING and each not in settings):
        raise DataError(f"the pretraining task {name} needs the setting {missing}")
    try:
        return kind(**settings)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
