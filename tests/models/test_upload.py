"""A folder goes to a hub on this machine, and comes back from it byte by byte."""

import shutil

import pytest

from onion.errors import WeightsError
from onion.models.downloads.repository import fetch_repository
from onion.models.upload import check_upload, upload_folder
from tests.models.hub_server import UPLOADS, Repository, library_with, serving_hub
from tests.tasks.helpers import snapshot

pytestmark = UPLOADS

FILES = {
    "config.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "model.safetensors": bytes(range(256)) * 40,
    "README.md": b"# x",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    cache = tmp_path_factory.mktemp("huggingface") / "cache"
    with serving_hub(cache) as server:
        yield server, cache


@pytest.fixture
def hub(served, monkeypatch):
    """A hub without repositories, an empty cache, and a token that may write those of ada."""
    server, cache = served
    shutil.rmtree(cache, ignore_errors=True)
    server.clear()
    monkeypatch.setenv("HF_TOKEN", server.token)
    return server


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def refused(folder, name="ada/films"):
    """The message of an upload that fails; it is one line, and nothing has changed."""
    before = snapshot(folder)
    with pytest.raises(WeightsError) as caught:
        upload_folder(folder, name, "a message")
    assert snapshot(folder) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_new_repository_has_the_files_in_one_commit(hub, folder, capfd):
    assert upload_folder(folder, "ada/films", "a message") == f"{hub.address}/ada/films"
    repository = hub.repositories["ada/films"]
    assert repository.files == FILES | {".gitattributes": b""}
    assert (repository.messages, repository.private) == (["a message"], False)
    assert capfd.readouterr() == ("", "")  # no terminal, no progress
    fetched = fetch_repository("ada/films")
    assert {path.name: path.read_bytes() for path in fetched.iterdir()} == {
        name: content for name, content in FILES.items() if name != "README.md"
    }


def test_other_files_of_a_repository_stay(hub, folder):
    hub.repositories["ada/films"] = Repository({"LICENSE": b"free", "config.json": b"old"})
    upload_folder(folder, "ada/films", "a message", private=True)
    assert hub.repositories["ada/films"].files == FILES | {"LICENSE": b"free"}
    assert not hub.repositories["ada/films"].private  # which only decides about new ones


def test_a_branch_is_created_and_the_main_one_stays(hub, folder):
    upload_folder(folder, "ada/films", "first", private=True)
    (folder / "config.json").write_bytes(b'{"newer": 1}')
    for _ in range(2):  # the second time it exists
        upload_folder(folder, "ada/films@v2", "second")
    assert hub.repositories["ada/films"].private
    assert hub.repositories["ada/films"].files["config.json"] == b"{}"
    assert (fetch_repository("ada/films@v2") / "config.json").read_bytes() == b'{"newer": 1}'


@pytest.mark.parametrize("name", ["films", "a/b/c", "../x", "", "ada/films@"])
def test_what_is_no_name_of_a_repository(name):
    with pytest.raises(WeightsError, match="is written OWNER/NAME"):
        check_upload(name)


def test_without_a_token_or_offline_nothing_is_sent(hub, folder, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert refused(folder).endswith("without a token that may write; set HF_TOKEN or run `hf auth login`")
    with library_with(HF_HUB_OFFLINE="1"):
        assert refused(folder).endswith("HF_HUB_OFFLINE is set; unset it")
    assert hub.requests == []


@pytest.mark.parametrize(
    ("token", "name", "told"),
    [
        ("hf_wrong", "ada/films", "(HTTP 401): the token is invalid; set HF_TOKEN"),
        ("hf_reader", "ada/films", "(HTTP 403): the token may not write there; is ada you or yours?"),
        ("hf_right", "eve/films", "(HTTP 403): the token may not write there; is eve you or yours?"),
    ],
)
def test_tokens_that_may_not_write(hub, folder, monkeypatch, token, name, told):
    monkeypatch.setenv("HF_TOKEN", token)
    assert told in refused(folder, name)
    assert hub.repositories == {}


def test_what_else_the_hub_may_say(hub, folder):
    hub.changing = True
    assert "was changed by someone else meanwhile (HTTP 412); push again" in refused(folder)
    hub.changing, hub.down = False, True
    assert "(HTTP 503)" in refused(folder)
    hub.down = False
    (folder / "README.md").write_text("---\nlicense: none-such\n---\n")
    assert 'was refused: Invalid metadata in README.md. - "license" must be one of' in refused(folder)
    assert hub.repositories["ada/films"].files == {".gitattributes": b""}
    with library_with(HF_ENDPOINT="http://127.0.0.1:1"):
        assert "http://127.0.0.1:1/ada/films cannot be reached (" in refused(folder)
