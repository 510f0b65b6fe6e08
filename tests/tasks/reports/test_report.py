"""The folder of a report: it appears as a whole, and nothing else is lost for it."""

import csv
import json

import pytest

from onion.checkpointing.atomic_files import through
from onion.errors import DataError
from onion.tasks.reports.report import Report, Sheet
from tests.items.disks import Watched
from tests.tasks.helpers import snapshot

REPORT = Report(
    summary={"errors": 1, "nothing": float("nan")},
    sheets={"errors.csv": Sheet(["text_a", "label"], [['a "b",\nc', "好"]])},
    pictures={"matrix.svg": "<svg/>"},
)


def test_what_is_written_can_be_read(tmp_path):
    REPORT.write(tmp_path / "new" / "out", {"task": "sing"})
    out = tmp_path / "new" / "out"
    summary = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert summary == {"task": "sing", "errors": 1, "nothing": None, "files": ["errors.csv", "matrix.svg"]}
    with (out / "errors.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["text_a", "label"], ['a "b",\nc', "好"]]
    assert (out / "matrix.svg").read_text() == "<svg/>"


def test_an_earlier_report_is_replaced_with_all_its_files(tmp_path):
    REPORT.write(tmp_path / "out")
    Report(summary={"errors": 0}).write(tmp_path / "out")
    assert list(snapshot(tmp_path)) == ["out", "out/report.json"]


@pytest.mark.parametrize("content", [None, "{", "[]", '{"files": 3}', '{"files": ["other"]}', "[" * 100_000])
def test_a_folder_with_anything_else_is_refused(tmp_path, content):
    (tmp_path / "mine").write_text("mine")
    if content is not None:
        (tmp_path / "report.json").write_text(content)
    before = snapshot(tmp_path)
    with pytest.raises(DataError, match="is not empty, and nothing is overwritten; choose a new folder"):
        REPORT.write(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_report_beside_which_somebody_put_a_file_is_not_replaced(tmp_path):
    REPORT.write(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        REPORT.write(tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").exists()


def test_a_link_to_a_report_is_refused(tmp_path):
    REPORT.write(tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(DataError, match="cannot create a folder there"):
        REPORT.write(tmp_path / "link")


@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_changes_nothing(tmp_path, monkeypatch, earlier):
    class Full(Watched):
        left = 1

        def change(self):
            self.left -= 1
            if self.left < 0:
                raise OSError(28, "No space left on device")

    if earlier:
        Report(summary={"errors": 0}).write(tmp_path / "out")
    before = snapshot(tmp_path)
    with through(Full()), pytest.raises(DataError, match="out: cannot be written: No space left on device"):
        REPORT.write(tmp_path / "out")
    assert snapshot(tmp_path) == before
