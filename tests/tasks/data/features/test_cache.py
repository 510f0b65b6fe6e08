import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from onion.checkpointing.lock import locked
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features import cache, hashing
from onion.tasks.data.features.cache import cached_features, clear, digest_of_features, fitted_task, kept, stored
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.regression import Regression
from onion.tasks.token_classification.task import TokenClassification
from tests.patience import PATIENCE
from tests.tasks.helpers import films, write_tsv
from tests.tasks.squad_files import squad
from tests.tasks.tagged import tagged


@pytest.fixture
def data(tmp_path):
    return write_tsv(tmp_path / "a.tsv", films(50, seed=3))


@pytest.fixture
def task(data):
    return Classification(max_length=16).fitted(data)


def test_the_second_time_nothing_is_read_but_the_cache(folder, task, data, tokenizer, monkeypatch):
    first = cached_features(task, data, tokenizer)
    monkeypatch.setattr(Classification, "features", None)  # would be called
    again = cached_features(task, data, tokenizer)
    assert [each["ids"].tolist() for each in first] == [each["ids"].tolist() for each in again]
    assert [each["label"] for each in first] == [each["label"] for each in again]
    assert [path.name for path in folder.iterdir()] == [digest_of_features(task, data, tokenizer, True)]


def test_chunks_make_no_difference(folder, task, data, tokenizer, monkeypatch):
    whole = [(each["row"], each["ids"].tolist()) for each in cached_features(task, data, tokenizer)]
    monkeypatch.setattr(cache, "CHUNK", 7)
    monkeypatch.setattr(cache.chunks_of_features, "__defaults__", (7,))
    monkeypatch.setenv("ONION_HOME", str(folder / "other"))
    assert [(each["row"], each["ids"].tolist()) for each in cached_features(task, data, tokenizer)] == whole


def test_all_that_decides_about_features_is_in_the_key(tmp_path, task, data, tokenizer, encoder_folder):
    key = digest_of_features(task, data, tokenizer, True)
    copy = tmp_path / "elsewhere.tsv"
    copy.write_bytes(data.read_bytes())
    assert digest_of_features(task, copy, tokenizer, True) == key  # what is in the file counts, not where it stands
    copy.write_bytes(data.read_bytes() + b"a\tgood\n")
    (tmp_path / "cased").mkdir()
    for path in encoder_folder.iterdir():
        (tmp_path / "cased" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "cased" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    others = [
        digest_of_features(task, copy, tokenizer, True),
        digest_of_features(task, data, tokenizer, False),
        digest_of_features(Classification(max_length=17).fitted(data), data, tokenizer, True),
        digest_of_features(task, data, Tokenizer.from_pretrained(tmp_path / "cased"), True),
    ]
    assert len({key, *others}) == 5


def test_the_ending_says_how_the_same_bytes_are_read(tmp_path, tokenizer):
    content = "text_a\na film\n"
    for name in ("a.txt", "a.csv", "a.CSV", "b.csv"):
        (tmp_path / name).write_text(content)
    task = MaskedLM(max_length=16)
    text, table = (fitted_task(task, tmp_path / name) for name in ("a.txt", "a.csv"))
    rows = [len(cached_features(task, tmp_path / name, tokenizer)) for name in ("a.txt", "a.csv", "a.CSV", "b.csv")]
    assert rows == [2, 1, 1, 1]
    assert text == table


@pytest.mark.parametrize("name", ["a", "a.text", "a.tsv.gz"])
def test_an_ending_that_is_not_known_is_refused_though_the_bytes_were_seen(folder, data, tokenizer, name):
    new, copy = Classification(max_length=16), data.with_name(name)
    task = fitted_task(new, data)
    cached_features(task, data, tokenizer)
    copy.write_bytes(data.read_bytes())
    with pytest.raises(DataError, match="cannot tell the format by the ending"):
        fitted_task(new, copy)
    with pytest.raises(DataError, match="cannot tell the format by the ending"):
        cached_features(task, copy, tokenizer)


def test_a_pipe_is_refused(folder, task, tmp_path, tokenizer):
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match=r"pipe\.tsv: this is a pipe"):
        cached_features(task, tmp_path / "pipe.tsv", tokenizer)
    theirs, ours = os.pipe()
    (tmp_path / "fed.tsv").symlink_to(f"/dev/fd/{theirs}")
    try:
        with pytest.raises(DataError, match=r"fed\.tsv: this is a pipe or a terminal, and it has to be read more than"):
            cached_features(task, tmp_path / "fed.tsv", tokenizer)
    finally:
        os.close(theirs)
        os.close(ours)


def test_a_damaged_store_is_made_anew(folder, task, data, tokenizer):
    cached_features(task, data, tokenizer)
    (store,) = folder.iterdir()
    (store / "ids.npy").write_bytes(b"")
    assert len(cached_features(task, data, tokenizer)) == 50


def test_bad_rows_leave_nothing(folder, task, tmp_path, tokenizer):
    bad = write_tsv(tmp_path / "bad.tsv", [*films(5, seed=1), ("a", "so so")])
    with pytest.raises(DataError, match=r"bad\.tsv:7: the label 'so so' is unknown"):
        cached_features(task, bad, tokenizer)
    assert list(folder.iterdir()) == []


def test_a_place_where_nothing_can_be_written(tmp_path, monkeypatch, task, data, tokenizer):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "file"))
    for place, use in (
        ("file/features", lambda: cached_features(task, data, tokenizer)),
        (r"key\.json", lambda: kept("a.tsv", lambda: "key", lambda: VALUE)),
    ):
        with pytest.raises(DataError, match=rf"cannot write .*{place}: .*\$ONION_HOME"):
            use()


KILLED = """
import os, signal, sys
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features import cache, store
task, write = Classification(max_length=16).fitted(sys.argv[1]), store.write_synced
def kill(*given):
    if sys.argv[3] == "after":
        write(*given)
    os.kill(os.getpid(), signal.SIGKILL)
store.write_synced = kill
cache.cached_features(task, sys.argv[1], Tokenizer.from_pretrained(sys.argv[2]))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_kill_cut_short_is_never_used_and_swept_away(folder, task, data, tokenizer, encoder_folder, moment):
    words = [sys.executable, "-c", KILLED, str(data), str(encoder_folder), moment]
    killed = subprocess.run(words, capture_output=True, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    (part,) = folder.iterdir()
    assert part.name.startswith(".part-")
    with locked(part):  # another process is still at work on it
        assert len(cached_features(task, data, tokenizer)) == 50
        assert part.is_dir()
    (folder / digest_of_features(task, data, tokenizer, True) / "ids.npy").unlink()
    assert len(cached_features(task, data, tokenizer)) == 50
    assert not part.exists()


OWN = """
from onion.tasks.classification import Classification
class Own(Classification):
    name = "own"
    number = 1
"""


@pytest.fixture
def own_key(task, data, tokenizer, tmp_path):
    """Returns the key of the features of a task of one's own, of which the code is given."""

    def key(code):
        (tmp_path / "own_task.py").write_text(code)
        spec = importlib.util.spec_from_file_location("own_task", tmp_path / "own_task.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["own_task"] = module
        try:
            spec.loader.exec_module(module)
            return digest_of_features(module.Own().fitted(data), data, tokenizer, True)
        finally:
            del sys.modules["own_task"]

    return key


def test_a_task_of_ones_own_is_kept_by_its_code(own_key, task, data, tokenizer):
    key = own_key(OWN)
    assert own_key(OWN.replace("    number", "    # a remark\n    number")) == key
    assert own_key(OWN.replace("1", "2")) != key
    assert own_key(OWN.replace("    number", "    features_version = 2\n    number")) != key
    assert digest_of_features(task, data, tokenizer, True) != key


def test_a_task_that_stands_in_no_file_is_refused(data, tokenizer):
    names = {"__name__": "nowhere"}
    exec(OWN, names)
    told = r"Own: there is no source file of this class, .* define it in a module \(\.py\)"
    with pytest.raises(DataError, match=told):
        digest_of_features(names["Own"](), data, tokenizer, True)


def test_code_of_onion_counts_by_its_versions(task, data, tokenizer, monkeypatch):
    key = digest_of_features(task, data, tokenizer, True)
    sources = {Path(inspect.getsourcefile(each)) for each in Classification.__mro__[:-3]}
    monkeypatch.setattr(Path, "read_bytes", lambda path, read=Path.read_bytes: read(path) + b"#" * (path in sources))
    assert digest_of_features(task, data, tokenizer, True) == key  # a remark more
    keys = {key}
    for place, name in ((Classification, "features_version"), (hashing, "SHARED_VERSION")):
        monkeypatch.setattr(place, name, 9)
        keys.add(digest_of_features(task, data, tokenizer, True))
    assert len(keys) == 3


def test_a_file_that_changes_while_it_is_read_is_not_kept(folder, task, data, tokenizer, monkeypatch):
    features = Classification.features

    def changing(self, *given):
        data.write_bytes(data.read_bytes() + b"a\tgood\n")
        return features(self, *given)

    monkeypatch.setattr(Classification, "features", changing)
    with pytest.raises(DataError, match=r"a\.tsv: changed while it was read .*; start again"):
        cached_features(task, data, tokenizer)
    assert list(folder.iterdir()) == []


MANY = """
import sys
from pathlib import Path
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import cached_features
tokenizer = Tokenizer.from_pretrained(sys.argv[2])
for path in sorted(Path(sys.argv[1]).glob("many-*.tsv")):
    task = Classification(max_length=16).fitted(path)
    print(len(cached_features(task, path, tokenizer)))
"""


def test_processes_at_once_neither_fail_nor_undo_each_other(folder, tmp_path, encoder_folder):
    for number in range(12):
        write_tsv(tmp_path / f"many-{number:02}.tsv", films(20 + number, seed=number))
    words = [sys.executable, "-c", MANY, str(tmp_path), str(encoder_folder)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    wanted = "".join(f"{20 + number}\n" for number in range(12))
    for process in running:
        told, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, told) == (0, wanted), error
    assert len(list(folder.iterdir())) == 12


def aged(path, days):
    os.utime(path, (time.time() - days * 86400,) * 2)


def test_what_is_kept_is_listed(folder, task, data, tokenizer):
    assert stored() == []
    begun = time.time()
    cached_features(task, data, tokenizer)
    fitted_task(Classification(), data)
    features, other = sorted(stored(), key=lambda each: -each.size)
    assert (features.about, other.about) == ({"task": "classification", "file": str(data)}, {})
    assert features.size == sum(path.stat().st_size for path in features.path.iterdir()) > 1000
    assert other.size == other.path.stat().st_size
    assert {each.path for each in (features, other)} == set(folder.iterdir())
    aged(features.path, 40)
    assert [each.path for each in stored()] == [other.path, features.path]
    cached_features(task, data, tokenizer)
    assert {each.used > begun - 2 for each in stored()} == {True}


def test_what_is_long_unused_is_deleted(folder, task, data, tokenizer):
    cached_features(task, data, tokenizer)
    fitted_task(Classification(), data)
    for path in folder.iterdir():
        aged(path, 40)
    assert clear(unused_days=41) == 0
    fitted_task(Classification(), data)
    (kept,) = folder.glob("*.json")
    assert clear(unused_days=39) > 1000
    assert list(folder.iterdir()) == [kept]
    assert len(cached_features(task, data, tokenizer)) == 50
    total = sum(each.size for each in stored())
    assert clear() == total
    assert list(folder.iterdir()) == []
    assert clear() == 0


def test_what_is_in_use_outlives_clearing(folder, task, data, tokenizer):
    examples = cached_features(task, data, tokenizer)
    before = [each["ids"].tolist() for each in examples]
    making = folder / ".part-1"
    making.mkdir()
    with locked(making):
        clear()
        assert list(folder.iterdir()) == [making]
    assert [each["ids"].tolist() for each in examples] == before
    clear()
    assert list(folder.iterdir()) == []


# -- small values ------------------------------------------------------------------------------------------------------

TASKS = [
    Classification(class_weights={"good": 2}, label_smoothing=0.1),
    Regression(),
    Matching(margin=0.2),
    MultiLabel(threshold=0.3),
    TokenClassification(decoder="crf"),
    QuestionAnswering(n_best=3),
    MaskedLM(whole_words=True),
]


def file_for(task, folder):
    """A file to learn this task from."""
    if isinstance(task, QuestionAnswering):
        return squad(folder / "a.json", ("a film", "film", [("film", 2)]), ("a plot", "film", []))
    if isinstance(task, TokenClassification):
        return write_tsv(folder / "a.tsv", tagged(9, seed=1))
    names = ("good", "bad") if isinstance(task, Classification) else ("1", "0")
    rows = [(text, "b", label) for text, label in films(9, 1, *names)]
    return write_tsv(folder / "a.tsv", rows, ("text_a", "text_b", "label"))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_file_is_read_once_for_what_it_tells(tmp_path, monkeypatch, task):
    path = file_for(task, tmp_path)
    wanted = task.fitted(path)
    assert fitted_task(task, path) == wanted
    monkeypatch.setattr(type(task), "fitted", None)  # would be called
    monkeypatch.setattr(type(task), "rows", None)
    assert fitted_task(task, path) == wanted


def test_all_that_decides_is_in_the_key(tmp_path, folder):
    path, other = file_for(TASKS[0], tmp_path), write_tsv(tmp_path / "b.tsv", films(20, 1))
    for task in (Classification(), Classification(max_length=9), Classification(labels=["good", "bad"])):
        for data in (path, other):
            assert fitted_task(task, data) == task.fitted(data)
    assert len(list(folder.iterdir())) == 6
    moved = tmp_path / "moved.tsv"
    moved.write_bytes(path.read_bytes())
    fitted_task(Classification(), moved)
    assert len(list(folder.iterdir())) == 6  # what is in a file counts, not where it stands


def test_a_label_map_beside_the_file_counts_too(tmp_path):
    path = file_for(TokenClassification(), tmp_path)
    alphabetical = fitted_task(TokenClassification(), path)
    for names in (["O", "I-bad", "B-bad", "B-good", "I-good"], ["I-bad", "O", "B-bad", "B-good", "I-good"]):
        (tmp_path / "label_map.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
        assert fitted_task(TokenClassification(), path).labels.names == tuple(names)
        assert fitted_task(attrs.evolve(TokenClassification(), labels=["O", "x"]), path).labels.names == ("O", "x")
    named = tmp_path / "named.json"
    named.write_text('{"x": 0}')
    assert fitted_task(TokenClassification(label_map=str(named)), path).labels.names == ("x",)
    (tmp_path / "label_map.json").unlink()
    assert fitted_task(TokenClassification(), path) == alphabetical


def test_a_file_that_nothing_can_be_learned_from_is_told_each_time(tmp_path, folder):
    path = write_tsv(tmp_path / "a.tsv", [("a", "good")])
    for _ in range(2):
        with pytest.raises(DataError, match=r"a\.tsv: all rows have the label 'good'"):
            fitted_task(Classification(), path)
    assert not folder.exists()


def refuse():
    raise AssertionError("made again")


VALUE = {"labels": ["中", "b"], "pairs": None, "share": 0.1}


def test_a_value_is_made_once_a_key(folder):
    assert kept("a.tsv", lambda: "key", lambda: VALUE) == VALUE
    assert kept("a.tsv", lambda: "key", refuse) == VALUE
    assert kept("a.tsv", lambda: "other", lambda: 5) == 5
    assert sorted(path.name for path in folder.iterdir()) == ["key.json", "other.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"value": 1}', b'{"value": 1, "sum": 1}', b"\xff", b"[" * 9999]
)
def test_what_is_not_as_it_was_written_is_made_anew(folder, content):
    kept("a.tsv", lambda: "key", lambda: VALUE)
    (folder / "key.json").write_bytes(content)
    assert kept("a.tsv", lambda: "key", lambda: 7) == 7
    assert kept("a.tsv", lambda: "key", refuse) == 7


def test_a_file_that_changed_meanwhile(folder):
    keys = iter("ab")
    with pytest.raises(DataError, match=r"a\.tsv: changed while it was read .*; start again"):
        kept("a.tsv", lambda: next(keys), lambda: VALUE)
    assert not folder.exists()
