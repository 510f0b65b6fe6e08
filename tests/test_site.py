"""The site of mkdocs.yml: every page can be reached, every public name is on an API page, no link is dead.

All of it is read from the files; `make docs` builds the site.
"""

import ast
import importlib
import json
import posixpath
import re
from configparser import ConfigParser

import pytest
import yaml

import onion
import onion.data
import onion.online
import onion.testing
from onion import inference, schedules
from onion.models.families import FAMILIES
from onion.multitask import strategies
from onion.tasks.registry import TASKS
from scripts.site_pages import ELSEWHERE, file_of, for_the_site, notebook_page, page_of, text_of
from tests.paths import ROOT

DOCS = ROOT / "docs"
SETTINGS = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
WRITTEN = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
PAGES = sorted([*WRITTEN, *ELSEWHERE.values()])
IN_API = re.compile(r"^::: (\S+)$", re.MULTILINE)


def source(page):
    path = file_of(page)
    return text_of(path) if path in ELSEWHERE else (ROOT / path).read_text(encoding="utf-8")


def in_nav(entry):
    """Return the pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in in_nav(part)]


# -- navigation --------------------------------------------------------------------------------------------------------


def test_every_page_but_the_sources_of_examples_is_in_the_navigation_once():
    expected = [page for page in PAGES if not page.startswith("examples/")]
    assert sorted(in_nav(SETTINGS["nav"])) == expected


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages_and_files_of_the_site(page):
    text = re.sub(r"^```.*?^```$", "", for_the_site(source(page), file_of(page)), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", text)
    targets = [posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in links]
    assert [target for target in targets if target not in PAGES and not (DOCS / target).is_file()] == []


@pytest.mark.parametrize(
    ("path", "link", "moved"),
    [
        ("docs/reliability.md", "../benchmarks/results.md", "benchmarks/results.md"),
        ("docs/tutorials/item.md", "../../CONTRIBUTING.md#add-an-item", "../contributing.md#add-an-item"),
        ("CONTRIBUTING.md", "docs/items.md#placement", "items.md#placement"),
        ("benchmarks/results.md", "../docs/performance.md", "../performance.md"),
        ("docs/examples.md", "../examples/siamese.py", "examples/siamese.md"),
        ("docs/tasks.md", "../onion/cli/arguments.py#onion-train", "cli.md#onion-train"),
        ("docs/quickstart.md", "tutorials/gan.ipynb", "tutorials/gan.md"),
        ("docs/tutorials/gan.ipynb", "../../examples/gan_gaussians.py", "../examples/gan_gaussians.md"),
        ("docs/items.md", "#placement", "#placement"),
        ("docs/items.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/index.md", "onion.svg", "onion.svg"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(path, link, moved):
    assert for_the_site(f"[a]({link}) `b`\n", path) == f"[a]({moved}) `b`\n"


def test_links_in_code_stay():
    code = "```python\na[0](../benchmarks/results.md)\n```\n"
    assert for_the_site(code, "docs/items.md") == code


def test_the_page_of_the_command_line_has_every_command():
    headings = re.findall(r"^## (.*)$", source("cli.md"), re.MULTILINE)
    assert {"onion", "onion train", "onion weights get", "onion ctl pause"} <= set(headings)
    assert "--learning-rate" in source("cli.md")


def test_the_page_of_a_notebook_has_its_prose_code_outputs_and_pictures():
    printed = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
    value = {"output_type": "execute_result", "data": {"text/plain": ["3"]}}
    drawing = {"output_type": "display_data", "data": {"text/plain": ["<SVG>"], "image/svg+xml": ["<svg/>"]}}
    pixels = {"output_type": "display_data", "data": {"text/plain": ["<Figure>"], "image/png": "QUJD\n"}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Prose."]},
        {"cell_type": "code", "source": ["a = 1\n", "a"], "outputs": [printed, value, drawing, pixels]},
    ]
    assert notebook_page(json.dumps({"cells": cells}), "a.ipynb").split("\n\n") == [
        "# Title",
        'This page is a notebook: <a href="../a.ipynb" download>a.ipynb</a>.',
        "Prose.",
        "```python\na = 1\na\n```",
        "```text\n1\n2\n```",
        "```text\n3\n```",
        "![what the cell shows](data:image/svg+xml;base64,PHN2Zy8+)",
        "![what the cell shows](data:image/png;base64,QUJD)\n",
    ]


def test_a_list_gets_an_empty_line_before_it():
    assert for_the_site("Settings:\n- a\n  b\n- c\n", "docs/items.md") == "Settings:\n\n- a\n  b\n- c\n"


def test_a_file_has_one_page():
    assert [file_of(page) for page in PAGES if page_of(file_of(page)) != page] == []
    assert page_of("setup.cfg") is None


# -- API ---------------------------------------------------------------------------------------------------------------


def shown():
    """Return the names on the API pages."""
    return [name for page in WRITTEN if page.startswith("api/") for name in IN_API.findall(source(page))]


def defined_in(module):
    """Return the public functions and classes that a module defines."""
    members = vars(module).items()
    return [name for name, what in members if name[0] != "_" and getattr(what, "__module__", "") == module.__name__]


def imported_from(*packages):
    """Return the names that pages and examples import from some packages."""
    blocks = [block for page in PAGES for block in re.findall(r"^```python\n(.*?)^```", source(page), re.M | re.S)]
    return {
        f"{node.module}.{alias.name}"
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(packages)
        for alias in node.names
    }


def test_every_public_name_is_on_an_api_page():
    public = {f"onion.{name}" for name in onion.__all__}
    for module in (onion.data, onion.online, onion.testing, strategies):
        public |= {f"{module.__name__}.{name}" for name in module.__all__}
    for module in (inference, schedules):
        public |= {f"{module.__name__}.{name}" for name in defined_in(module)}
    assert sorted(public - set(shown())) == []


def test_every_task_and_family_is_on_an_api_page():
    classes = {*TASKS.values(), *(family.config for family in FAMILIES.values())}
    names = {f"{each.__module__}.{each.__qualname__}" for each in classes}
    names |= {family.encoder.replace(":", ".") for family in FAMILIES.values()}
    assert sorted(names - set(shown())) == []


def test_what_pages_and_examples_import_of_models_and_tasks_is_on_an_api_page():
    """Modules too: `from onion.tasks.networks import distillation`."""
    known = {*shown(), *(name.rpartition(".")[0] for name in shown())}
    assert sorted(imported_from("onion.models", "onion.tasks") - known) == []


@pytest.mark.parametrize("name", shown())
def test_a_name_on_an_api_page_exists(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


def test_a_name_is_on_one_api_page():
    assert sorted({name for name in shown() if shown().count(name) > 1}) == []


# -- installation ------------------------------------------------------------------------------------------------------


def test_the_page_of_the_installation_lists_the_extras():
    parser = ConfigParser()
    parser.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`.*?`) \|", source("install.md"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(parser["options.extras_require"])


@pytest.mark.parametrize("page", [page for page in PAGES if "onion-paddle[" in source(page)])
def test_the_extras_of_a_command_exist(page):
    named = {name for names in re.findall(r"onion-paddle\[([a-z,]+)\]", source(page)) for name in names.split(",")}
    assert named <= set(re.findall(r"^(\w+) =$", (ROOT / "setup.cfg").read_text(encoding="utf-8"), re.MULTILINE))


# -- forms -------------------------------------------------------------------------------------------------------------


def test_the_citation_has_the_version_and_the_licence_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    parser = ConfigParser()
    parser.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (onion.__version__, parser["metadata"]["license"])
    assert parser["metadata"]["version"] == onion.__version__


@pytest.mark.parametrize("form", ["bug_report", "feature_request"])
def test_a_form_for_issues_has_what_github_requires(form):
    """Source: GitHub's syntax for issue forms."""
    read = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(read)
    ids = [field["id"] for field in read["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    for field in read["body"]:
        assert field["type"] in ("markdown", "textarea", "checkboxes")
        assert "value" in field["attributes"] if field["type"] == "markdown" else field["attributes"]["label"]
