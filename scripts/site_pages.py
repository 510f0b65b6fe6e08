"""Pages of the site that are kept elsewhere in the repository, and links that hold in both places: a hook of mkdocs.

Links in Markdown files work in the repository. On the site, CHANGELOG.md, CONTRIBUTING.md, SECURITY.md,
benchmarks/results.md, the examples, the notebooks and the help of the command line are pages too, and links to them are
rewritten.
"""

from __future__ import annotations

import base64
import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
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
    **{
        f"{DOCS}/tutorials/{path.name}": f"tutorials/{path.stem}.md"
        for path in sorted((ROOT / DOCS / "tutorials").glob("*.ipynb"))
    },
}
"""File in the repository -> page of the site."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)(?=[)#])")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"^((?![-*|>#\s]|\d+\. ).+\n)(?=- )", re.MULTILINE)
"""A line before a list: GitHub needs no empty line there, Python-Markdown does."""

PICTURES = ("image/svg+xml", "image/png")
"""What a notebook shows as a picture."""

FRAGMENT = re.compile(r"^```python fragment$", re.MULTILINE)
CHINESE = "zh/"


def page_of(path: str) -> str | None:
    """Return the page of the site that a file of the repository is; None: it is none."""
    inside = path.removeprefix(f"{DOCS}/")
    return ELSEWHERE.get(path, inside if inside != path else None)


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
    """Return the Markdown of a page that is kept elsewhere; that of an example is its source."""
    if path == COMMANDS:
        return cli_page()
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".ipynb"):
        return notebook_page(text, Path(path).name)
    return text if path.endswith(".md") else f"# {Path(path).name}\n\n```python\n{text}```\n"


def cli_page() -> str:
    """Return the page of the command line: the help of every command."""
    from onion.cli.arguments import parser
    from onion.cli.completion import parsers

    head = "# Command line\n\nExit status: 0, 2 for a mistake that the message explains, 128 + n after signal n.\n"
    with patch.dict(os.environ, COLUMNS=COLUMNS):  # argparse fits its lines to the terminal
        helps = [f"## {each.prog}\n\n```text\n{each.format_help()}```\n" for each in parsers(parser())]
    return "\n".join([head, *helps])


def notebook_page(text: str, name: str) -> str:
    """Return the Markdown of a notebook.

    Args:
        text: the notebook, as JSON. Its first cell begins with the title.
        name: of its file, which is beside the page on the site.
    """
    cells = json.loads(text)["cells"]
    title, _, rest = "".join(cells[0]["source"]).partition("\n")
    link = f'This page is a notebook: <a href="../{name}" download>{name}</a>.'  # no link of Markdown: it stays a file
    parts = [title, link, rest.strip(), *(part for cell in cells[1:] for part in _parts(cell))]
    return "\n\n".join(parts) + "\n"


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _shown(output)


def _shown(output: Mapping[str, Any]) -> str:
    data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
    for kind in PICTURES:
        if kind in data:
            encoded = data[kind] if kind == "image/png" else base64.b64encode(data[kind].encode()).decode()
            return f"![what the cell shows](data:{kind};base64,{encoded.strip()})"
    printed = data.get("text/plain") or "".join(output["text"])
    return f"```text\n{printed.rstrip()}\n```"


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
