"""Print the arguments of a class of another library, and their defaults, from its source; nothing of it is run.

python -m scripts.peer_arguments site-packages/transformers/training_args.py TrainingArguments

tests/peers/ has the lists by which tests/test_migrating.py checks docs/migrating.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

REQUIRED = "required"


def arguments(source: str, name: str) -> dict[str, str]:
    """Return the fields of a dataclass, or else the arguments of ``__init__``: name -> default, as it is written.

    Raises:
        LookupError: there is no such class.
    """
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.name == name)
    kind = next(classes, None)
    if kind is None:
        raise LookupError(f"there is no class {name}")
    maker = next((each for each in kind.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    return dict(_fields(kind) if maker is None else _parameters(maker))


def _fields(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    constants = {
        target.id: ast.unparse(node.value)
        for node in kind.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in kind.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = REQUIRED if node.value is None else _of_field(node.value)
            yield node.target.id, constants.get(default, default)


def _of_field(value: ast.expr) -> str:
    """Return the default in ``field(default=..., ...)``, or the value itself."""
    if not (isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field")):
        return ast.unparse(value)
    given = {each.arg: ast.unparse(each.value) for each in value.keywords}
    if "default_factory" in given:
        return f"{given['default_factory']}()"
    return given.get("default", REQUIRED)


def _parameters(maker: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    by_position = maker.args.args[1:]
    without = [None] * (len(by_position) - len(maker.args.defaults))
    defaults = [*without, *maker.args.defaults, *maker.args.kw_defaults]
    for argument, default in zip([*by_position, *maker.args.kwonlyargs], defaults, strict=True):
        yield argument.arg, REQUIRED if default is None else ast.unparse(default)


if __name__ == "__main__":
    for argument, default in arguments(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]).items():
        print(f"{argument} = {default}")
