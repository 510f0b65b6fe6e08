import os

import pytest

from onion.errors import WeightsError
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.formats.paths import is_file, is_folder
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights


def test_files_and_folders(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert is_folder(tmp_path)
    assert not is_file(tmp_path)
    assert is_file(tmp_path / "file")
    for nothing in (tmp_path / "nowhere", tmp_path / "file" / "inside", tmp_path / "link"):
        assert not is_file(nothing)
        assert not is_folder(nothing)


READERS = [Encoder.from_pretrained, Tokenizer.from_pretrained, hub.resolve, EncoderConfig.read, read_weights]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
@pytest.mark.parametrize(
    ("path", "message"), [("a" * 300, "cannot read: File name too long"), ("a\0b", "not a file name")]
)
def test_paths_that_cannot_be(read, path, message):
    with pytest.raises(WeightsError, match=message):
        read(path)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
def test_a_folder_that_may_not_be_searched(tmp_path, monkeypatch, read):
    inside = os.fspath(tmp_path / "closed" / "model")
    real = os.stat

    def stat(path, *given, **more):
        if os.fspath(path).startswith(inside):  # permissions do not bind every user that runs tests
            raise PermissionError(13, "Permission denied", path)
        return real(path, *given, **more)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(WeightsError, match=r"closed/model: cannot read: Permission denied"):
        read(inside)
