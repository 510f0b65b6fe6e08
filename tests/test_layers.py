"""Who may import whom, read from the source; and that no imports go in a circle."""

import ast

import pytest

import onion
from tests.paths import ROOT

TOPS = {"onion": "onion", "models": "onion.models", "tasks": "onion.tasks"}
"""Folder -> the package that it is imported as."""

ENGINE = (
    *(f"onion.{name}" for name in ("engine", "errors", "messages", "validation")),
    *("onion.host.operating_system", "onion.host.process_limits", "onion.host.launch"),
)
FILES = tuple(f"onion.data.{name}" for name in ("files", "opening", "table"))
READING = (
    *(f"onion.tasks.data.{name}" for name in ("rows", "texts", "labels", "features")),
    *(f"onion.tasks.question_answering.{name}" for name in ("json_value", "questions", "windows")),
    *(f"onion.tasks.token_classification.{name}" for name in ("tagged_text", "word_windows")),
)
NETWORKS = (
    *(f"onion.tasks.networks.{name}" for name in ("gan_bert", "distillation", "heads", "multi_head")),
    *(f"onion.tasks.networks.{name}" for name in ("classifier", "regressor", "multilabel_classifier", "matchers")),
    *(f"onion.tasks.networks.{name}" for name in ("reader", "masked_language_model")),
    "onion.tasks.token_classification.tagger",
)
ARRAYS = ("onion.tasks.batches", "onion.tasks.probabilities")
"""What both of them use."""
DECODING = (
    *("onion.tasks.decoding", "onion.tasks.masked_lm.guessing", "onion.tasks.question_answering.answers"),
    *(f"onion.tasks.token_classification.{name}" for name in ("decoding", "viterbi", "tags", "batches")),
)
"""What networks and exported models use."""
WITHOUT_PADDLE = (
    *READING,
    *DECODING,
    *(f"onion.tasks.{name}" for name in ("registry", "task", "collector", "data", "metrics", "reports")),
    *(f"onion.tasks.finetune.{name}" for name in ("predictor", "recipes", "inference", "run_folder", "run_files")),
    *("onion.tasks.embedding.files", "onion.tasks.embedding.npy", "onion.tasks.networks.paths"),
    *(f"onion.models.{name}" for name in ("tokenizer", "tokenization", "families", "hub", "weights")),
)
UPPER = ("onion.models", "onion.tasks", "onion.cli", "models", "tasks")
TESTS = ("tests", "pytest", "hypothesis")
RUNNING = ("onion.engine.runner", "onion.engine.item", "onion.engine.state")

RULES = [
    # of these modules, and of those in them, none imports these, not even within a function
    (ENGINE, ("paddle", "numpy", "onion.items", "onion.data", "onion.device", *UPPER)),
    (("onion.checkpointing.checkpoint", "onion.device"), ("onion.items", "onion.data", "onion.engine.runner", *UPPER)),
    (("onion.data",), ("onion.items", *RUNNING, "onion.checkpointing.checkpoint", *UPPER)),
    (("onion.items", "onion.multitask.strategies"), UPPER),
    (("onion.models",), ("onion.items", "onion.tasks", "onion.engine.runner", "onion.cli", "tasks", "models")),
    (("onion.tasks",), ("onion.cli", "tasks", "models")),
    (NETWORKS, (*FILES, *READING, "onion.tasks.task", "onion.tasks.finetune", "onion.tasks.registry")),
    (READING, (*NETWORKS, "onion.tasks.finetune", "onion.tasks.registry")),
    (DECODING, ("paddle", "onion.models", *NETWORKS, *READING, "onion.tasks.task", "onion.tasks.finetune")),
    (ARRAYS, ("paddle", "onion.models", "onion.tasks", *FILES)),
    (("onion",), TESTS),
]
ONLINE = "onion.online"
COMMANDS = "onion.cli"
"""Alone imports what is online."""


def modules():
    """Return module -> file, of the whole product."""
    found = {}
    for folder, package in TOPS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports(path, lazy=True):
    """Return the modules that a file imports, but for typing; ``from onion import Tester`` imports the item's file.

    Args:
        path: the file.
        lazy: with those that are imported within functions.
    """
    found, nodes = set(), list(ast.parse(path.read_text("utf-8")).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                item = f"onion.{onion.ITEMS.get(alias.name)}" if node.module == "onion" else ""
                inner = f"{node.module}.{alias.name}"
                found.add(next((name for name in (item, inner) if name in MODULES), node.module))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
        elif lazy or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            nodes += ast.iter_child_nodes(node)
    return found


ALL = {module: imports(path) for module, path in MODULES.items()}
AT_THE_TOP = {module: imports(path, lazy=False) for module, path in MODULES.items()}


def within(module, *packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def reached(module, graph):
    """Return all that comes with a module, itself too."""
    found, left = set(), [module]
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left += graph.get(here, ())
    return found


def circles(graph):
    """Return the sets of modules that import each other."""
    behind = {module: reached(module, graph) for module in graph}
    return {
        frozenset(other for other in behind[module] if module in behind.get(other, ()))
        for module, imported in graph.items()
        if any(module in behind.get(other, ()) for other in imported)
    }


@pytest.mark.parametrize(("packages", "forbidden"), RULES, ids=[packages[0] for packages, _ in RULES])
def test_arrows_of_the_design(packages, forbidden):
    for package in packages:
        inside = [module for module in ALL if within(module, package)]
        assert inside, f"there is no {package}"
        for module in inside:
            wrong = sorted(name for name in ALL[module] if within(name, *forbidden))
            assert not wrong, f"{module} imports {wrong}"


def test_nothing_but_the_commands_imports_what_is_online():
    for module in ALL:
        if not within(module, ONLINE, COMMANDS):
            assert not [name for name in ALL[module] if within(name, ONLINE)], module


def test_paddle_is_imported_at_the_top_by_no_module_that_works_without():
    for module, imported in AT_THE_TOP.items():
        if not within(module, "onion.models", "onion.tasks"):
            assert not any(within(name, "paddle") for name in imported), module
    for module in MODULES:
        if within(module, *WITHOUT_PADDLE):
            assert not any(within(name, "paddle", *NETWORKS) for name in reached(module, AT_THE_TOP)), module


def test_no_imports_go_in_a_circle():
    """Not even those within functions."""
    assert circles(ALL) == set()
    assert circles({"a": {"b", "os"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == {frozenset("bc"), frozenset("d")}


def test_models_and_tasks_are_linked_where_tools_look_for_them():
    for folder in ("models", "tasks"):
        assert (ROOT / "onion" / folder).resolve() == (ROOT / folder).resolve()
