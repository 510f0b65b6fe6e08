"""Small models that are served."""

import pytest

from onion.tasks.export.export import export
from onion.tasks.export.export_encoder import export_encoder
from tests.onions.material import encoder
from tests.tasks.export.conftest import run_of  # noqa: F401  a fixture


@pytest.fixture(scope="package")
def folders(run_of, tmp_path_factory):  # noqa: F811
    """Exported models by their kind."""
    place, found = tmp_path_factory.mktemp("models"), {}

    def folder(kind):
        if kind not in found:
            found[kind] = place / kind.replace(", ", "-")
            if kind == "embedding":
                export_encoder(encoder(), found[kind], pooling="mean", normalize=True, max_length=12)
            else:
                export(run_of(kind), found[kind])
        return found[kind]

    return folder
