"""Pages of the site that are kept elsewhere in the repository, and links that hold in both places: a hook of mkdocs.

Links in Markdown files work in the repository. On the site, CHANGELOG.md, CONTRIBUTING.md, SECURITY.md,
benchmarks/results.md and the examples are pages too, and links to them are rewritten.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = "docs"
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/results.md": "benchmarks/results.md",
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


def example_page(path: Path) -> str:
    """Return the page of an example: its source."""
    return f"# {path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"


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
        source = ROOT / path
        text = example_page(source) if source.suffix == ".py" else source.read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page."""
    return FRAGMENT.sub("```python", for_the_site(markdown, file_of(page.file.src_uri)))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Tell browsers the language of the Chinese pages."""
    return output.replace('<html lang="en"', '<html lang="zh"', 1) if page.file.src_uri.startswith(CHINESE) else output
