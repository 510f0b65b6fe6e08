"""Pages of the site that are kept elsewhere in the repository, and links that hold in both places: a hook of mkdocs.

Links in Markdown files work in the repository. On the site, CHANGELOG.md, CONTRIBUTING.md, SECURITY.md,
benchmarks/results.md, the examples and the help of the command line are pages too, and links to them are rewritten.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
DOCS = "docs"
COMMANDS = "onion/cli/arguments.py"
COLUMNS = "100"
"""The width of the help of commands."""

ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/results.md": "benchmarks/results.md",
    COMMANDS: "cli.md",
    **{f"examples/{path.name}": f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("*.py"))},
}
"""File in the repository -> page of the site."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)(?=[)#])")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"^((?![-*|>#\s]|\d+\. ).+\n)(?=- )", re.MULTILINE)
"""A line before a list: GitHub needs no empty line there, Python-Markdown does."""

FRAGMENT = re.compile(r"^```python fragment$", re.MULTILINE)
CHINESE = "zh/"


def page_of(path: str) -> str | None:
    """Return the page of the site that a file of the repository is; None: it is none."""
    inside = path.removeprefix(f"{DOCS}/")
    return inside if inside != path else ELSEWHERE.get(path)


def file_of(page: str) -> str:
    """Return the file of the repository that a page of the site is."""
    return next((path for path, other in ELSEWHERE.items() if other == page), f"{DOCS}/{page}")


def for_the_site(text: str, path: str) -> str:
    """Return the Markdown of a file with links that hold on the site, and an empty line before each list.

    Args:
        text: the Markdown; blocks of code stay as they are.
        path: of the file, in the repository.
    """
    page = page_of(path)
    assert page is not None, path
    folder, place = posixpath.dirname(path), posixpath.dirname(page)

    def moved(link: re.Match[str]) -> str:
        target = page_of(posixpath.normpath(posixpath.join(folder, link[1])))
        return link[1] if target is None else posixpath.relpath(target, place or ".")

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LIST.sub(r"\1\n", LINK.sub(moved, part)) for part in parts)


def text_of(path: str) -> str:
    """Return the Markdown of a file that is kept outside of docs/; that of an example is its source."""
    if path == COMMANDS:
        return cli_page()
    text = (ROOT / path).read_text(encoding="utf-8")
    return text if path.endswith(".md") else f"# {Path(path).name}\n\n```python\n{text}```\n"


def cli_page() -> str:
    """Return the page of the command line: the help of every command."""
    from onion.cli.arguments import parser

    head = "# Command line\n\nExit status: 0, 2 for a mistake that the message explains, 128 + n after signal n.\n"
    with patch.dict(os.environ, COLUMNS=COLUMNS):  # argparse fits its lines to the terminal
        helps = [f"## {each.prog}\n\n```text\n{each.format_help()}```\n" for each in commands(parser())]
    return "\n".join([head, *helps])


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from commands(command)


# -- called by mkdocs --------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Give headings the anchors that they have on GitHub."""
    from pymdownx.slugs import slugify

    config["mdx_configs"].setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are kept elsewhere."""
    from mkdocs.structure.files import File

    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=text_of(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page."""
    return FRAGMENT.sub("```python", for_the_site(markdown, file_of(page.file.src_uri)))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Tell browsers the language of the Chinese pages."""
    return output.replace('<html lang="en"', '<html lang="zh"', 1) if page.file.src_uri.startswith(CHINESE) else output
