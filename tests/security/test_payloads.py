"""That the payloads are none of straw: in a reader that trusts its file, each does what it was made for."""

import copyreg
import io
import pickle

import numpy as np
import pytest
import yaml

from tests.security.payloads import EXTENSION, arrays, pickled_calls, yamls


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
