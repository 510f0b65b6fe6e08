import hashlib
import json

import attrs
import pytest

from onion.errors import CheckpointError, DataError
from onion.tasks.jobs.settings import OWN_FILES, RUN_FILE, Settings, claim_folder, read_json, read_record, write_json


@pytest.fixture
def settings(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(name)
    return Settings(task="classify", train=str(tmp_path / "a.tsv"), dev=str(tmp_path / "b.tsv"))


def test_the_record_holds_the_settings_and_the_sums_of_the_files(settings):
    record = settings.record()
    assert json.loads(json.dumps(record)) == record
    assert (record["passes"], record["lr"], record["encoder"]) == (3, 5e-5, "minilm")
    assert record["train_sha256"] == hashlib.sha256(b"a.tsv").hexdigest()
    assert record["dev_sha256"] == hashlib.sha256(b"b.tsv").hexdigest()


def test_a_file_that_went_away(settings, tmp_path):
    (tmp_path / "b.tsv").unlink()
    with pytest.raises(DataError, match=r"b\.tsv: there is no such file"):
        settings.record()


def test_a_new_folder_is_claimed_and_an_own_one_recognised(tmp_path, settings):
    out = tmp_path / "deep" / "out"
    assert claim_folder(out, settings.record()) is False
    assert read_record(out) == settings.record()
    assert [path.name for path in out.iterdir()] == [RUN_FILE]
    assert claim_folder(out, settings.record()) is True


def test_another_run_is_refused_and_the_differences_are_told(tmp_path, settings):
    out = tmp_path / "out"
    claim_folder(out, settings.record())
    before = (out / RUN_FILE).read_bytes()
    (tmp_path / "a.tsv").write_text("something else")
    with pytest.raises(CheckpointError, match="another run") as caught:
        claim_folder(out, {**settings.record(), "lr": 1.0})
    assert "lr 5e-05 there, 1.0 here" in str(caught.value)
    assert "the train file has other content" in str(caught.value)
    assert "dev" not in str(caught.value).replace(str(tmp_path), "")
    assert (out / RUN_FILE).read_bytes() == before


@pytest.mark.parametrize("name", [*OWN_FILES, "step-00000004"])
def test_a_folder_that_holds_what_a_run_would_overwrite_is_refused(tmp_path, settings, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("precious")
    with pytest.raises(CheckpointError, match=f"holds {name}, but no run of onion"):
        claim_folder(out, settings.record())
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "precious"


def test_a_folder_with_other_things_is_taken(tmp_path, settings):
    (tmp_path / "notes.txt").write_text("mine")
    assert claim_folder(tmp_path, settings.record()) is False


def test_a_file_in_the_place_of_the_folder(tmp_path, settings):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CheckpointError, match=r"cannot write .*run\.json"):
        claim_folder(tmp_path / "out", settings.record())


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b"[]"])
def test_a_record_that_is_missing_or_damaged(tmp_path, content):
    if content is not None:
        (tmp_path / RUN_FILE).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"run\.json is missing or damaged"):
        read_record(tmp_path)


def test_json_of_any_language_comes_back(tmp_path):
    write_json(tmp_path / "x.json", ["so so", "中立", "é"])
    assert read_json(tmp_path, "x.json") == ["so so", "中立", "é"]
    assert "中立" in (tmp_path / "x.json").read_text(encoding="utf-8")


def test_a_data_file_is_the_same_wherever_it_stands(tmp_path, settings):
    out = tmp_path / "out"
    claim_folder(out, settings.record())
    (tmp_path / "moved.tsv").write_bytes((tmp_path / "a.tsv").read_bytes())
    assert claim_folder(out, attrs.evolve(settings, train=str(tmp_path / "moved.tsv")).record()) is True
