"""An example that the README lists has 80 lines at most: the items do the work."""

import re

import pytest

from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LISTED = re.findall(r"`(\w+\.py)`", README.split("## Examples")[1].split("\n## ")[0])


def test_the_readme_lists_examples():
    assert {"two_tasks.py", "gan_gaussians.py", "lr_search.py", "distillation.py"} <= set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_it_has_80_lines_at_most(name):
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) <= 80
