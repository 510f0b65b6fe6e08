import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from onion.models.tokenization.basic_tokenizer import Characters
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
TEXTS = ["a b c " * 10, "c " * 9] * 4


@pytest.fixture
def tokenizer(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCAB))
    return Tokenizer.from_pretrained(tmp_path)


def plain(encodings):
    return [(one.ids.tolist(), one.truncated) for one in encodings]


def test_threads_do_not_get_each_others_lengths(tokenizer):
    """The prefetching of data and a tester may share a tokenizer."""
    jobs = {
        5: lambda: plain(tokenizer(TEXTS, max_length=5)),
        9: lambda: plain(tokenizer(TEXTS, TEXTS, max_length=9)),
        12: lambda: plain(tokenizer(TEXTS, max_length=12, offsets=True)),
        "windows": lambda: [plain(windows) for windows in tokenizer.windows(TEXTS, max_length=9, stride=3)],
        "files": tokenizer.files,
    }
    wanted = {name: job() for name, job in jobs.items()}
    with ThreadPoolExecutor(len(jobs)) as pool:
        found = pool.map(lambda name: [jobs[name]() for _ in range(100)], jobs)
        for name, results in zip(jobs, found, strict=True):
            assert all(one == wanted[name] for one in results), name


def test_a_character_has_its_stand_in_even_while_another_thread_learns_of_it(tokenizer, monkeypatch):
    text, reference, meanwhile = "a\u061db", Characters._reference, []
    wanted = plain(tokenizer([text]))
    fresh = Tokenizer(tokenizer._backend)

    def learn(characters, character):
        if not meanwhile:
            meanwhile.append("begun")
            meanwhile.append(plain(fresh([text])))
        return reference(characters, character)

    monkeypatch.setattr(Characters, "_reference", learn)
    assert plain(fresh([text])) == wanted == [([2, 5, 1, 6, 3], False)]
    assert meanwhile == ["begun", wanted]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda tokenizer: pickle.loads(pickle.dumps(tokenizer))])
def test_copies_are_of_their_own(tokenizer, copied):
    wanted = plain(tokenizer(TEXTS, max_length=5))
    other = copied(tokenizer)
    assert plain(other(TEXTS, max_length=12)) != wanted
    assert plain(tokenizer(TEXTS, max_length=5)) == plain(other(TEXTS, max_length=5)) == wanted
