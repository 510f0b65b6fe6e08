"""The package as a whole: light to import, its public names, its sizes; who may import whom is in test_layers.py."""

import ast
import subprocess
import sys

import pytest

import onion
from onion import errors
from tests.paths import ROOT
from tests.patience import PATIENCE

HEAVY = ["paddle", "tqdm", "safetensors", "tokenizers", "tensorboardX", "numpy"]


def fresh(code):
    """Run code in a fresh process; return its output."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- light -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module", ["onion", "onion.engine.runner", "onion.testing", "onion.engine.drawing", "onion.engine.timing"]
)
def test_importing_the_engine_loads_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    assert fresh(code) == "[]"


def test_a_whole_run_of_the_engine_loads_nothing_heavy():
    code = f"""
import sys
from onion import Observer, Runner
from onion.testing import Batches, Recorder
runner = Runner(Observer(on_batch_end=lambda state: None), Recorder("a"), Batches(2)).timed()
runner.run(passes=1)
str(runner), str(runner.timing())
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert fresh(code) == "[]"


def test_each_item_is_imported_when_it_is_first_asked_for():
    code = "import sys, onion; before = 'onion.items.tester' in sys.modules; onion.Tester; "
    assert fresh(code + "print(before, 'onion.items.tester' in sys.modules, 'onion.items.saver' in sys.modules)") == (
        "False True False"
    )


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in onion.__all__ if name != "TensorBoard"])
def test_every_public_name_is_there(name):
    assert getattr(onion, name).__name__ in (name, "Iterator")


def test_the_public_names_are_in_order_and_hold_every_item_and_error():
    assert onion.__all__ == sorted(onion.__all__)
    assert set(onion.ITEMS) < set(onion.__all__)
    for name, value in vars(errors).items():
        if isinstance(value, type):
            assert name in onion.__all__


def test_every_item_stands_in_the_file_it_is_said_to_stand_in():
    for name, file in onion.ITEMS.items():
        tree = ast.parse((ROOT / "onion" / f"{file.replace('.', '/')}.py").read_text("utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def test_items_are_shown_to_type_checkers_too():
    """The names under TYPE_CHECKING are those that __getattr__ serves."""
    tree = ast.parse((ROOT / "onion" / "__init__.py").read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    shown = {alias.name: node.module for node in block.body for alias in node.names}
    assert shown == {name: f"onion.{file}" for name, file in onion.ITEMS.items()}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'onion' has no attribute 'Trainer'"):
        onion.Trainer  # noqa: B018 - asking is the test


def test_every_error_is_an_onion_error():
    for value in vars(errors).values():
        if isinstance(value, type):
            assert issubclass(value, errors.OnionError)
            assert value.__doc__


# -- sizes -------------------------------------------------------------------------------------------------------------


def lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_the_core_fits_on_three_screens_and_no_file_of_the_engine_is_long():
    assert lines(ROOT / "onion" / "engine" / "rings.py") <= 150
    for path in (ROOT / "onion" / "engine").glob("*.py"):
        assert lines(path) < 300


def test_every_module_says_what_it_is():
    for path in [path for folder in ("onion", "models", "tasks") for path in (ROOT / folder).rglob("*.py")]:
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path
