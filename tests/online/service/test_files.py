"""The page's files."""

import asyncio

import pytest

from onion.online.desk import Refused
from onion.online.service.files import files, read


@pytest.fixture
def page(tmp_path):
    folder = tmp_path / "page"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_text("<p>页")
    (folder / "vendor" / "chart.js").write_text("1")
    (folder / "vendor" / "LICENSE").write_text("MIT")
    (tmp_path / "secret.js").write_text("2")
    return folder


def ask(folder, path, **names):
    endpoint = next(route.endpoint for route in files(folder).routes if route.path == path)
    return asyncio.run(endpoint(**names))


def test_the_page_and_its_files(page):
    index = ask(page, "/")
    assert (index.body.decode(), index.media_type) == ("<p>页", "text/html; charset=utf-8")
    script = ask(page, "/static/{name:path}", name="vendor/chart.js")
    assert (script.body, script.media_type) == (b"1", "text/javascript; charset=utf-8")


@pytest.mark.parametrize(
    "name", ["", "../secret.js", "vendor", "vendor/LICENSE", "vendor/../../secret.js", "/etc/passwd"]
)
def test_nothing_else(page, name):
    with pytest.raises(Refused) as refused:
        ask(page, "/static/{name:path}", name=name)
    assert refused.value.status == 404


def test_without_a_page_there_is_none(tmp_path):
    assert read(tmp_path / "nothing") == {}
    with pytest.raises(Refused):
        ask(tmp_path / "nothing", "/")


def test_files_that_change_later_do_not(page):
    router = files(page)
    (page / "index.html").write_text("another")
    endpoint = next(route.endpoint for route in router.routes if route.path == "/")
    assert asyncio.run(endpoint()).body.decode() == "<p>页"
