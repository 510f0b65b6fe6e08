import numpy as np

from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.token_classification.batches import grid
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import write_tsv
from tests.tasks.tagged import LABELS, examples_of, joined


def test_a_batch_by_hand(tmp_path, tokenizer):
    words_task = TokenClassification(max_length=8, labels=LABELS, characters=False)
    path = write_tsv(tmp_path / "a.tsv", [joined(["film."], ["O"]), joined("a" * 9, ["B-bad"] + ["O"] * 8)])
    _, examples = examples_of(words_task, tokenizer, path)
    batch = words_task.collate(examples[:], pad_id=0)
    assert batch["input_ids"].shape == (3, 8)
    # Of 4, 8 and 7 tokens; the first token of each row is [CLS].
    assert batch["firsts"].tolist() == [1, *range(5, 11), *range(13, 18)]
    assert (batch["words"], batch["own"]) == ([1, 6, 5], [(0, 1), (0, 5), (1, 5)])
    assert (batch["rows"], batch["begins"]) == ([0, 1, 1], [0, 0, 5])
    assert batch["tags"].tolist() == [0, 1, 0, 0, 0, 0, IGNORED, IGNORED, 0, 0, 0, 0]
    assert batch["tags"].dtype == batch["firsts"].dtype == np.int64


def test_grid():
    assert grid(np.array([3, 0]), [2, 4]).tolist() == [[3, 4, 4, 4], [0, 1, 2, 3]]
