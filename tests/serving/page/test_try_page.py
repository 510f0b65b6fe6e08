"""The page of a service in a real browser: every task is drawn, errors are sentences, texts stay texts."""

import json
from contextlib import ExitStack

import pytest

from onion.serving import app
from onion.serving.limits import ServingLimits
from scripts.web_assets import INTERFACE, complete
from tests.online.http.page.conftest import chromium  # noqa: F401  a fixture
from tests.patience import PATIENCE
from tests.serving.services import served

pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.slow, pytest.mark.browser]

KINDS = {
    "films": "classification",
    "several": "multilabel",
    "number": "regression",
    "pairs": "matching",
    "tags": "token-classification",
    "reader": "question-answering",
    "masks": "masked-lm",
    "vectors": "embedding",
}
TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def service(folders):
    limits = ServingLimits(body=4096)
    with served({name: folders(kind) for name, kind in KINDS.items()}, limits=limits) as server:
        yield server


@pytest.fixture
def opened(chromium):  # noqa: F811
    """Open the page of a service; an error in it fails the test."""
    with ExitStack() as held:

        def open_page(server, path=""):
            context = chromium.new_context()
            context.set_default_timeout(1000 * PATIENCE)
            held.callback(context.close)
            page, errors = context.new_page(), []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on(
                "console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None
            )
            held.callback(lambda: _none(errors))
            page.goto(f"{server.url}{path}")
            return page

        yield open_page


def _none(errors):
    assert errors == []


def ask(page, model, **fields):
    page.wait_for_selector(f"#model option[value={model}]", state="attached")
    page.select_option("#model", model)
    for name, text in fields.items():
        page.fill(f"textarea[name={name}]", text)
    page.click("#submit")
    page.wait_for_selector("#answer > *, #error:not([hidden])")


def test_probabilities_are_bars_and_the_label_comes_first(opened, service):
    page = opened(service)
    ask(page, "films", text_a="a good film")
    names = page.locator("table.bars th").all_inner_texts()
    values = [float(text) for text in page.locator("table.bars td:last-child").all_inner_texts()]
    assert sorted(name.removesuffix(" ✓") for name in names) == ["bad", "good"]
    assert names[0].endswith(" ✓")
    assert values == sorted(values, reverse=True)
    assert " ms, " in page.inner_text("#took")
    assert "classification, version 1, 16 tokens" in page.inner_text("#about")


def test_other_tasks_are_drawn(opened, service):
    page = opened(service)
    ask(page, "several", text_a="a good film")
    assert page.locator("table.bars tr").count() == 2
    ask(page, "number", text_a="a good film")
    float(page.inner_text(".number"))
    ask(page, "pairs", text_a="a good film", text_b="a plot")
    assert page.locator("table.bars tr").count() == 1
    ask(page, "masks", text_a="a [MASK] [MASK] film")
    assert page.locator("h2").all_inner_texts() == ["Mask 1", "Mask 2"]
    assert page.locator("table.bars tr").count() == 10
    ask(page, "vectors", text_a="a good film", text_b="a good film")
    assert page.inner_text(".number") == "1.0000"


def test_an_answer_is_marked_in_its_context_behind_an_emoji(opened, service):
    page = opened(service)
    context = "😀 the film was great"
    ask(page, "reader", question="what", context=context)
    assert page.inner_text("#answer .text") == context
    assert page.inner_text("#answer .text mark") == _answer(page, {"question": "what", "context": context})["answer"]


def _answer(page, row):
    answer = page.request.post(f"{page.url}models/reader/predict", data=json.dumps({"inputs": [row]}))
    return answer.json()["predictions"][0]


def test_spans_are_coloured_behind_an_emoji(opened, service):
    page = opened(service)
    text = "😀 awful bad plot and great happy actor"
    answer = page.request.post(f"{service.url}/models/tags/predict", data=json.dumps({"inputs": [text]})).json()
    ask(page, "tags", text_a=text)
    marks = page.locator("#answer .text mark").all()
    spans = answer["predictions"][0]["spans"]
    assert [mark.evaluate("each => each.firstChild.data") for mark in marks] == [span["text"] for span in spans]
    assert page.locator("details tr").count() == len(answer["predictions"][0]["tokens"])


def test_texts_stay_texts(opened, service):
    page = opened(service)
    text = "<img src=x onerror=alert(1)> film"
    ask(page, "tags", text_a=text)
    assert page.inner_text("#answer .text").startswith("<img src=x onerror=alert(1)>")
    assert page.locator("#answer img").count() == 0


def test_an_error_is_a_sentence(opened, service):
    page = opened(service)
    ask(page, "films", text_a="film " * 2000)
    assert page.inner_text("#error") == "The body has more than 4,096 bytes."
    ask(page, "films", text_a="a film")
    page.wait_for_selector("#error", state="hidden")


def test_control_and_enter_send(opened, service):
    page = opened(service)
    page.wait_for_selector("textarea")
    page.fill("textarea", "a good film")
    page.press("textarea", "Control+Enter")
    page.wait_for_selector("table.bars")


def test_a_token_is_asked_for_and_kept(opened, folders):
    with served({"films": folders("classification")}, token=TOKEN) as server:
        page = opened(server)
        page.fill("#token-value", "another-token-that-is-wrong")
        page.click("#token button")
        page.wait_for_selector("#token[open]")
        page.fill("#token-value", TOKEN)
        page.click("#token button")
        ask(page, "films", text_a="a good film")
        page.reload()
        ask(page, "films", text_a="a film")
        assert page.locator("#token[open]").count() == 0


def test_every_field_has_a_name_for_screen_readers(opened, service):
    page = opened(service)
    page.wait_for_selector("textarea")
    for name in ("Model", "Text"):
        assert page.get_by_label(name, exact=True).count() == 1
    page.select_option("#model", "reader")
    assert [page.get_by_label(name, exact=True).count() for name in ("Question", "Context")] == [1, 1]


# -- the interface -----------------------------------------------------------------------------------------------------


@pytest.fixture
def swagger():
    if not complete(INTERFACE.vendor, INTERFACE.files):
        pytest.skip("Swagger UI is not there (make web-assets)")


@pytest.mark.usefixtures("swagger")
def test_the_interface_is_shown_and_tried_out_with_the_token(opened, folders):
    with served({"films": folders("classification")}, token=TOKEN) as server:
        page = opened(server, "/docs")
        page.wait_for_selector("#token[open]")
        page.fill("#token-value", TOKEN)
        page.click("#token button")
        page.wait_for_selector(".opblock")
        paths = page.locator(".opblock-summary-path").all_inner_texts()
        assert {"/models", "/v1/embeddings", "/predict"} <= {path.replace("\u200b", "") for path in paths}
        page.locator(".opblock", has_text="/models").first.locator(".opblock-summary").first.click()
        page.click(".try-out button")
        page.click("button.execute")
        page.wait_for_selector(".live-responses-table")
        assert "films" in page.inner_text(".live-responses-table .response .response-col_description")


def test_without_its_library_the_page_says_so(opened, folders, monkeypatch, tmp_path):
    for file in app.PAGE.glob("*.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(app, "PAGE", tmp_path)
    with served({"films": folders("classification")}) as server:
        page = opened(server)
        told = page.request.get(f"{server.url}/docs")
        assert (told.status, told.json()["error"]) == (404, app.WITHOUT_LIBRARY)
