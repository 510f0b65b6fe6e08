"""The package as a whole: light to import, its public names, its sizes; who may import whom is in test_layers.py."""

import ast
from configparser import ConfigParser

import pytest

import onion
from onion import errors
from tests.fresh_python import python
from tests.paths import ROOT

HEAVY = ["paddle", "tqdm", "safetensors", "tokenizers", "tensorboardX", "visualdl", "wandb", "mlflow", "PIL", "numpy"]


def test_a_whole_run_of_the_engine_loads_nothing_heavy():
    code = f"""
import sys
import onion.engine.drawing, onion.engine.timing
from onion import Observer, Runner
from onion.testing import Batches, Recorder
runner = Runner(Observer(on_batch_end=lambda state: None), Recorder("a"), Batches(2)).timed()
runner.run(passes=1)
str(runner), str(runner.timing())
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert python(code)[0] == "[]"


def test_each_item_is_imported_when_it_is_first_asked_for():
    code = "import sys, onion; before = 'onion.items.tester' in sys.modules; onion.Tester; "
    code += "print(before, 'onion.items.tester' in sys.modules, 'onion.items.saver' in sys.modules)"
    assert python(code)[0] == "False True False"


@pytest.mark.parametrize("name", onion.__all__)
def test_every_public_name_is_there(name):
    assert getattr(onion, name).__name__ in (name, "Iterator")


def test_the_public_names_are_in_order_and_hold_every_item_and_error():
    assert onion.__all__ == sorted(onion.__all__)
    assert set(onion.ITEMS) < set(onion.__all__)
    for error in (value for value in vars(errors).values() if isinstance(value, type)):
        assert error.__name__ in onion.__all__
        assert issubclass(error, errors.OnionError)
        assert error.__doc__


def test_every_item_is_in_its_file_and_shown_to_type_checkers():
    for name, file in onion.ITEMS.items():
        tree = ast.parse((ROOT / "onion" / f"{file.replace('.', '/')}.py").read_text("utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    # The names under TYPE_CHECKING are those that __getattr__ serves.
    tree = ast.parse((ROOT / "onion" / "__init__.py").read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    shown = {alias.name: node.module for node in block.body for alias in node.names}
    assert shown == {name: f"onion.{file}" for name, file in {**onion.ITEMS, **onion.FUNCTIONS}.items()}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'onion' has no attribute 'Trainer'"):
        onion.Trainer  # noqa: B018 - asking is the test


def test_every_folder_of_modules_is_in_the_wheel():
    """An editable installation finds them all; a wheel has what is listed."""
    settings = ConfigParser()
    settings.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    there = set()
    for folder, package in (("onion", "onion"), ("models", "onion.models"), ("tasks", "onion.tasks")):
        for path in (ROOT / folder).rglob("__init__.py"):
            parts = path.parent.relative_to(ROOT / folder).parts
            if not parts or (folder, parts[0]) not in {("onion", "models"), ("onion", "tasks")}:  # links
                there.add(".".join((package, *parts)))
    assert set(settings["options"]["packages"].split()) == there


def lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_no_file_of_the_engine_is_long_and_every_module_has_a_docstring():
    assert lines(ROOT / "onion" / "engine" / "rings.py") <= 150
    for path in (ROOT / "onion" / "engine").glob("*.py"):
        assert lines(path) < 300
    for path in [path for folder in ("onion", "models", "tasks") for path in (ROOT / folder).rglob("*.py")]:
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path
