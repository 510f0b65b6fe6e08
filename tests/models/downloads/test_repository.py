import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from onion.errors import WeightsError
from onion.models.downloads.repository import cached_repository, fetch_repository, is_repository
from tests.models.hub_server import Repository, library_with, serving_hub

CONFIG, VOCAB, WEIGHTS = b"{}", b"[PAD]\n", bytes(range(256)) * 40
BERT = {"config.json": CONFIG, "vocab.txt": VOCAB, "model.safetensors": WEIGHTS}
OTHERS = {"pytorch_model.bin": b"a pickle", "tf_model.h5": b"x", "README.md": b"x", "onnx/model.safetensors": b"x"}
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})
SHARDS = {"model.safetensors.index.json": INDEX.encode(), "model-00001-of-00002.safetensors": WEIGHTS}
SHARDS |= {"model-00002-of-00002.safetensors": WEIGHTS[1:]}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A hub, and the folder of the cache."""
    cache = tmp_path_factory.mktemp("huggingface") / "cache"
    with serving_hub(cache) as server:
        yield server, cache


@pytest.fixture
def hub(served):
    """A hub with the repository a/bert, and an empty cache."""
    server, cache = served
    shutil.rmtree(cache, ignore_errors=True)
    server.clear()
    server.repositories["a/bert"] = Repository(BERT | OTHERS)
    return server


@pytest.fixture
def cache(served):
    return served[1] / "hub"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(name):
    """The message of a repository that cannot be fetched; it is one line."""
    with pytest.raises(WeightsError) as caught:
        fetch_repository(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_an_encoder_needs_is_fetched_once_and_nothing_else(hub, capfd):
    assert cached_repository("a/bert") is None
    folder = fetch_repository("a/bert")
    assert content(folder) == BERT
    assert hub.fetched() == set(BERT)
    asked = len(hub.requests)
    assert cached_repository("a/bert") == folder
    assert len(hub.requests) == asked
    assert capfd.readouterr() == ("", "")  # no terminal, no progress


@pytest.mark.parametrize(
    "weights",
    [{"pytorch_model.bin": b"a pickle"}, {"model_state.pdparams": b"a pickle"}, SHARDS],
    ids=lambda weights: next(iter(weights)),
)
def test_other_weights_are_fetched_where_there_is_no_single_safetensors(hub, weights):
    files = {"config.json": CONFIG, "tokenizer.json": CONFIG, **weights}
    hub.repositories["a/other"] = Repository({**files, "README.md": b"x"})
    folder = fetch_repository("a/other")
    assert content(folder) == files
    assert cached_repository("a/other") == folder


def test_a_revision_and_a_newer_commit(hub):
    repository = hub.repositories["a/bert"]
    first, folder = repository.commit, fetch_repository("a/bert")
    repository.update(**{"config.json": b'{"newer": 1}'})
    assert cached_repository("a/bert") == folder
    assert fetch_repository(f"a/bert@{first}") == folder
    newer = fetch_repository("a/bert")
    assert (newer / "config.json").read_bytes() == b'{"newer": 1}'
    assert cached_repository("a/bert") == newer
    assert cached_repository(f"a/bert@{first}") == folder
    message = refused("a/bert@v9")
    assert message == f"{hub.address}/a/bert@v9 is not a branch, tag or commit of that repository"


def test_without_the_hub_the_cache_is_used(hub):
    folder = fetch_repository("a/bert")
    hub.down = True
    assert fetch_repository("a/bert") == folder
    with library_with(HF_HUB_OFFLINE="1"):
        assert fetch_repository("a/bert") == folder


@pytest.mark.parametrize("lost", ["model.safetensors", *SHARDS])
def test_what_is_not_whole_is_not_taken_from_the_cache(hub, lost):
    """As a killed download leaves it: the link to a file is the last that is made."""
    hub.repositories["a/bert"] = Repository(BERT if lost in BERT else {"vocab.txt": VOCAB, **SHARDS})
    folder = fetch_repository("a/bert")
    (folder / lost).unlink()
    assert cached_repository("a/bert") is None
    assert (fetch_repository("a/bert") / lost).is_file()
    assert cached_repository("a/bert") == folder


def test_a_damaged_index_is_left_to_the_reader(hub):
    files = {"config.json": CONFIG, "vocab.txt": VOCAB, "model.safetensors.index.json": b"[1]"}
    hub.repositories["a/index"] = Repository(files)
    assert content(fetch_repository("a/index")) == files


# -- no use ------------------------------------------------------------------------------------------------------------


def test_no_such_repository_a_private_one_and_its_token(hub, monkeypatch):
    hub.repositories["a/private"] = Repository(BERT, private=True)
    for name in ("a/none", "a/private"):
        told = f"{hub.address}/{name} does not exist, nor does a folder {name}; if it is private, set HF_TOKEN"
        assert refused(name).startswith(told)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    for name in ("a/private", "a/bert"):
        assert "cannot be read (HTTP 401): the token is invalid" in refused(name)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert content(fetch_repository("a/private")) == BERT
    assert "does not exist" in refused("a/none")


def test_a_gated_repository(hub, monkeypatch):
    hub.repositories["a/gated"] = Repository(BERT, gated=True)
    assert f"{hub.address}/a/gated is gated; accept its terms on that page, then set HF_TOKEN" in refused("a/gated")
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert "is gated" in refused("a/gated")


def test_no_network(hub, cache):
    hub.down = True
    assert "cannot be read (HTTP 503); try again later, or set HF_ENDPOINT to a mirror" in refused("a/bert")
    absent = f"is not in the cache ({cache}), and there is no folder a/bert; "
    with library_with(HF_ENDPOINT="http://127.0.0.1:1"):
        message = refused("a/bert")
        assert message.startswith("http://127.0.0.1:1/a/bert cannot be reached (")
        assert f"{absent}set HF_ENDPOINT to a mirror, or copy the cache from a machine" in message
    with library_with(HF_HUB_OFFLINE="1"):
        assert refused("a/bert") == f"{hub.address}/a/bert {absent}to fetch it, unset HF_HUB_OFFLINE"


def test_a_server_that_is_no_hub(hub):
    hub.publish("/api/models/a/bert/revision/main", b"<html>log in</html>")
    assert f"{hub.address}/a/bert cannot be reached (" in refused("a/bert")


def test_a_repository_without_weights(hub):
    hub.repositories["a/words"] = Repository({"config.json": CONFIG, "model.gguf": b"x"})
    told = "has no weights that onion reads (model.safetensors, model_state.pdparams, pytorch_model.bin)"
    assert refused("a/words").endswith(told)
    assert "model.gguf" not in hub.fetched()


def test_a_cache_that_cannot_be_written(hub, cache):
    cache.parent.mkdir()
    cache.write_text("a file")
    assert cached_repository("a/bert") is None
    assert f"cannot be written to {cache}" in refused("a/bert")


def test_a_name_that_is_too_long(hub):
    assert cached_repository(f"a/{'b' * 100}") is None
    assert "Repo id must" in refused(f"a/{'b' * 100}")


@pytest.mark.parametrize("name", ["../../escape.safetensors", "model-/../../x-of-1.safetensors", "/etc/vocab.txt"])
def test_a_file_that_leads_out_of_the_folder_is_not_written(hub, cache, name):
    hub.repositories["a/evil"] = Repository({**BERT, name: b"evil"})
    with suppress(WeightsError):
        assert content(fetch_repository("a/evil")) == BERT
    assert {path.name for path in cache.parent.parent.rglob("*.*") if path.is_symlink()} <= set(BERT)
    assert b"evil" not in {path.read_bytes() for path in cache.parent.parent.rglob("*.safetensors")}


@pytest.mark.parametrize("name", ["a/b", "a/b@main", "a/b@refs/pr/1", "A-1/b_2.c"])
def test_names_of_repositories(name):
    assert is_repository(name)


@pytest.mark.parametrize("name", ["b", "a/b/c", "/a/b", "a/b@", "./b", "../b", "a/..", "a b/c", "中/文", "a/b--c", ""])
def test_what_is_no_name_of_a_repository(name):
    assert not is_repository(name)


# -- processes ---------------------------------------------------------------------------------------------------------

FETCH = """
import sys
from onion.models.downloads.repository import fetch_repository
print("ready", flush=True)
sys.stdin.readline()
print(fetch_repository("a/bert"), flush=True)
"""


def test_processes_at_once_get_the_whole_folder(hub):
    """Settings come from the environment, as a user sets them."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", FETCH], **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    folders = {process.communicate("\n")[0].strip() for process in processes}
    (folder,) = folders
    assert content(Path(folder)) == BERT
    assert cached_repository("a/bert") == Path(folder)


def test_the_library_is_imported_when_it_is_needed():
    program = "import sys, onion.models.hub; print('huggingface_hub' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"
