"""A real Chromium without a window, and in it the page of a real service; only the run behind it is simulated."""

import shutil
from contextlib import ExitStack

import pytest

from onion.online.control import gateway
from onion.online.http.app import PAGE
from onion.online.http.server import Service
from tests.online.http.page.in_memory import InMemoryRun
from tests.patience import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIBRARY = "uPlot.iife.min.js"


@pytest.fixture(scope="module")
def chromium():
    """The browser of the system, driven by playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


def has_library():
    return (PAGE / "vendor" / LIBRARY).is_file()


@pytest.fixture
def curves():
    """For tests that look at curves."""
    if not has_library():
        pytest.skip("the chart library is not there (make web-assets)")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(gateway, "MAX_EVENTS", 100_000)  # a test sends faster than the page reads
    with InMemoryRun() as run:
        yield run


@pytest.fixture
def serve(run):
    """Start services of the run, which are stopped at the end."""
    with ExitStack() as running:

        def start(**settings):
            service = Service(run, **{"port": 0, **settings})
            service.start()
            running.callback(service.stop)
            return service

        yield start


@pytest.fixture
def tab(chromium):
    """An empty tab; ``tab.complaints`` collects console errors, uncaught ones, and violations of the policy.

    That the chart library is missing where there is none is not an error.
    """
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(1000 * PATIENCE)
    tab = context.new_page()
    tab.complaints = []

    def complain(said):
        is_of_library = "/vendor/" in f"{said.text} {said.location.get('url')}"
        if said.type in ("error", "warning") and (has_library() or not is_of_library):
            tab.complaints.append(said.text)

    tab.on("console", complain)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    yield tab
    context.close()


@pytest.fixture
def page(tab, serve):
    """The page of a run, connected; at the end there must be no complaints."""
    tab.goto(serve().url)
    tab.wait_for_selector("#state[data-state=running]")
    tab.evaluate("async () => { window.curves = (await import('/static/curves.js')).curves; }")
    tab.wait_for_function("() => document.getElementById('drawing').textContent !== ''")
    yield tab
    assert tab.complaints == []
