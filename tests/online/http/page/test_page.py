"""The page in a real browser, in front of a service whose run the test controls."""

import pytest

from onion.online.http import Limits
from tests.online.http.page.in_memory import DRAWING

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
TOKEN = "a-token-that-is-long"


def text(page, selector, wanted):
    """Wait until an element has a text; return it."""
    element = page.locator(selector)
    element.filter(has_text=wanted).first.wait_for(state="attached")
    return element


def points(page, key="loss"):
    """Return the points of a curve, as the chart has them: steps and values."""
    return page.evaluate("(key) => curves.get(key).chart.data.map((part) => [...part])", key)


def drawn(page, count, key="loss"):
    """Wait until a curve is drawn with so many points; return them."""
    code = "([key, count]) => curves.get(key)?.chart.data[0].length === count"
    page.wait_for_function(code, arg=[key, count])
    return points(page, key)


def picture(page):
    """Return the chart of the loss as it looks."""
    return page.locator("figure canvas").first.evaluate("(canvas) => canvas.toDataURL()")


def save(page, run):
    """Save, and assert that this is the only command so far."""
    page.click("text=Save")
    text(page, "#answer", "save: done")
    assert run.heard == [("save", {})]


def leave_dialog(page, leave):
    page.wait_for_selector("#stop-dialog[open]")
    leave()
    page.wait_for_selector("#stop-dialog", state="hidden")


def connect(tab, service):
    tab.goto(service.url)
    text(tab, "#state", "running")
    return service


def restart(serve, service, stopped=lambda: None):
    """Stop a service, and serve the run at the same port again."""
    service.stop()
    stopped()
    serve(port=int(service.url.rpartition(":")[2]))


# -- what it shows -----------------------------------------------------------------------------------------------------


def test_the_values_are_those_of_the_run(page, run):
    run.go(3)
    text(page, "#step", "3")
    shown = {name: page.inner_text(f"#{name}") for name in ("loss", "speed", "queue", "rejected", "log_values")}
    assert shown == {
        "loss": "0.66667",
        "speed": "12.5",
        "queue": "7",
        "rejected": "3",
        "log_values": "learning_rate\t0.1",
    }
    assert page.title() == "running · onion"


def test_curves_move_as_events_come(curves, page, run):
    run.go(20)
    steps, values = drawn(page, 21)  # the first is that of the first status
    assert steps == list(range(21))
    assert values == [2.0] + [2.0 / step for step in steps[1:]]
    before = picture(page)
    run.go(20, loss=1.5)
    drawn(page, 41)
    assert picture(page) != before


def test_metrics_have_curves_of_their_own_and_the_queue_one_over_time(curves, page, run):
    run.tell("metrics", {"step": 5, "metrics": {"tester.accuracy": 0.5, "not a number": None}})
    run.tell("metrics", {"step": 9, "metrics": {"tester.accuracy": 0.75}})
    assert drawn(page, 2, "metric tester.accuracy") == [[5, 9], [0.5, 0.75]]
    assert page.locator("figcaption .name").all_inner_texts() == ["loss", "queue, samples", "tester.accuracy"]
    run.queue = 99
    run.go(1)
    assert drawn(page, 2, "queue")[1] == [7, 99]


def test_a_status_repeats_a_metric_without_a_new_point(curves, page, run):
    run.metrics = {"tester.accuracy": 0.5}
    run.go(4)
    run.metrics = {"tester.accuracy": 0.625}
    run.go(4)
    assert drawn(page, 2, "metric tester.accuracy") == [[1, 5], [0.5, 0.625]]


def test_a_run_that_went_back_to_its_checkpoint_draws_over_what_was_lost(curves, page, run):
    run.go(10)
    drawn(page, 11)
    run.step = 5
    run.go(1, loss=9.0)
    assert drawn(page, 7) == [[0, 1, 2, 3, 4, 5, 6], [2.0, 2.0, 1.0, 2 / 3, 0.5, 0.4, 9.0]]


def test_the_onion_is_drawn_with_the_cost_of_each_item(page, run):
    assert page.locator("#drawing").text_content() == DRAWING
    run.go(5)
    text(page, "#costs td", "5")  # asked for again after a few seconds
    cells = page.locator("#costs tr").first.inner_text().split("\t")
    assert cells[:5] == ["control_server", "on_batch", "5", "1.0", "2.0"]
    assert page.locator("meter").evaluate_all("all => all.map((one) => one.value)") == [0.25, 0.75, 1]


def test_a_runner_that_is_not_timed_shows_how_to_time_it(tab, serve, run):
    run.timed = False
    tab.goto(serve().url)
    text(tab, "#untimed", "runner.timed()")
    assert tab.locator("#costs tr").count() == 0


# -- what it does ------------------------------------------------------------------------------------------------------


def test_pause_stops_the_curves_and_the_state_shows_it_until_resume(curves, page, run):
    run.go(5)
    drawn(page, 6)
    page.click("text=Pause")
    text(page, "#state", "paused")
    text(page, "#answer", "pause: done after step 5")
    run.go(5)  # does nothing: the run is paused
    page.click("text=Resume")
    text(page, "#state", "running")
    assert len(points(page)[0]) == 6
    assert run.heard == [("pause", {}), ("resume", {})]


def test_step_runs_the_given_number_of_batches(page, run):
    page.fill("#steps", "4")
    page.click("#stepping button")
    text(page, "#answer", "step: done after step 4")
    page.fill("#steps", "0")
    page.click("#stepping button")  # the browser refuses it
    assert run.heard == [("step", {"n": 4})]


def test_stop_asks_first_and_does_nothing_on_cancel(page, run):
    for leave in (lambda: page.click("#stop-dialog >> text=Cancel"), lambda: page.keyboard.press("Escape")):
        page.click("#stop")
        leave_dialog(page, leave)
    save(page, run)
    page.click("#stop")
    page.click("#stop-dialog >> button:text('Stop the run')")
    text(page, "#state", "ended")
    text(page, "#lost", "The run has ended.")
    assert run.heard[1:] == [("stop", {"why": "asked on the page"})]
    assert page.is_disabled("text=Pause")


def test_a_stop_that_was_refused_is_not_repeated_by_escape(page, run):
    run.refusal = "not now"
    page.click("#stop")
    page.click("#stop-dialog >> button:text('Stop the run')")
    text(page, "#answer", "stop: not now")
    run.refusal = None
    page.click("#stop")
    leave_dialog(page, lambda: page.keyboard.press("Escape"))
    save(page, run)
    assert page.complaints.pop().startswith("Failed to load resource")


def test_one_key_does_not_stop_the_run(page, run):
    page.focus("#stop")
    page.keyboard.press("Enter")
    leave_dialog(page, lambda: page.keyboard.press("Enter"))  # the first button is Cancel
    save(page, run)


def test_a_setting_is_set_and_shown(page, run):
    field = page.get_by_role("spinbutton", name="parameter_updater.rate")
    assert field.input_value() == "0.1"
    field.fill("0.25")
    run.go(2)  # a status does not take away what is being written
    text(page, "#step", "2")
    assert field.input_value() == "0.25"
    assert page.inner_text(".range") == "is 0.1, from 0 to 1"
    page.click("button:text('Set')")
    text(page, "#answer", "set parameter_updater.rate: done after step 2")
    text(page, "#commands td", "set parameter_updater.rate=0.25")
    assert page.locator("#commands tr").count() == 1  # the answer and the event are one
    run.settings["parameter_updater.rate"]["value"] = 0.5  # by another client
    run.go(1)
    text(page, "#step", "3")
    assert field.input_value() == "0.5"
    assert run.heard == [("set", {"parameter_updater.rate": 0.25})]


def test_a_setting_beyond_its_range_is_not_sent(page, run):
    page.get_by_role("spinbutton", name="parameter_updater.rate").fill("2")
    page.click("button:text('Set')")
    assert not page.evaluate("document.querySelector('.setting').checkValidity()")
    save(page, run)


def test_a_ring_is_switched_off_and_on(page, run):
    page.uncheck("#switches input")
    text(page, "#answer", "disable drop words: done")
    page.check("#switches input")
    text(page, "#answer", "enable drop words: done")
    assert run.heard == [("disable", {"ring": "drop words"}), ("enable", {"ring": "drop words"})]


def test_a_refusal_is_shown_and_the_switch_goes_back(page, run):
    run.refusal = "No ring can be switched today."
    page.click("#switches label")
    text(page, "#answer", "disable drop words: No ring can be switched today.")
    page.wait_for_function("() => document.querySelector('#switches input').checked")
    assert page.inner_text("#commands tr") == "-\tdisable drop words\t-\tNo ring can be switched today."
    assert page.complaints.pop().startswith("Failed to load resource")  # the browser's own word for a 400


def test_a_command_that_failed_is_listed_with_its_error_and_each_is_listed_once(page, run):
    run.ask("save", {})  # by another client
    text(page, "#commands", "save")
    page.click("button:text('Test')")
    text(page, "#answer", "test failed: the test data are gone")
    assert [row.split("\t") for row in page.locator("#commands tr").all_inner_texts()] == [
        ["2", "test", "0", "the test data are gone"],
        ["1", "save", "0", "done"],
    ]
    assert page.locator("#commands tr.bad").count() == 1
    assert page.complaints.pop().startswith("Failed to load resource")


def test_the_answer_of_a_call_keeps_the_arguments_of_the_event(page):
    code = "async (row) => (await import('/static/commands.js')).answered(row)"
    row = {"number": 1, "command": "step", "step": 5, "result": None}
    page.evaluate(code, {**row, "arguments": {"n": 5}})
    page.evaluate(code, row)
    assert page.inner_text("#commands tr") == "1\tstep n=5\t5\tdone"


def calls(page, *answers):
    """Let the next calls of ``save`` reach the service, but give the page these answers: a status, or None: no answer.

    Returns:
        The idempotency keys of all of them, as they arrive.
    """
    keys, left = [], list(answers)

    def between(route):
        keys.append(route.request.headers["idempotency-key"])
        if not left:
            route.continue_()
            return
        route.fetch()
        status = left.pop(0)
        if status is None:
            route.abort()
        else:
            route.fulfill(status=status, json={"queued": True})

    page.route("**/save?*", between)
    return keys


@pytest.mark.parametrize("answer", [202, None], ids=["still queued", "lost"])
def test_a_command_without_a_final_answer_is_repeated_with_the_same_key(page, run, answer):
    keys = calls(page, answer)
    save(page, run)
    assert (len(keys), len(set(keys))) == (2, 1)
    if answer is None:
        assert page.complaints.pop().startswith("Failed to load resource")


def test_two_commands_have_two_keys(page, run):
    keys = calls(page)
    for number in ("1", "2"):
        page.click("text=Save")
        text(page, "#commands td", number)
    assert len(set(keys)) == 2


# -- what may come from outside ----------------------------------------------------------------------------------------


def test_hostile_names_stay_text(page, run):
    run.settings[HOSTILE] = {"value": 1.0, "low": 0.0, "high": 2.0}
    run.rings[HOSTILE] = True
    run.tell("metrics", {"step": 1, "metrics": {HOSTILE: 1.0, "__proto__": 2.0}})
    run.tell("command", {"number": 1, "command": HOSTILE, "step": 1, "result": HOSTILE, "arguments": {HOSTILE: 1}})
    run.go(1)
    for place in ("#plots", "#settings", "#switches", "#commands"):
        text(page, place, HOSTILE)
    assert page.locator("img, iframe, script:not([src])").count() == 0


def test_more_metrics_than_room_are_counted(page, run):
    run.tell("metrics", {"step": 1, "metrics": {f"metric {number}": 1.0 for number in range(40)}})
    text(page, "#surplus", "18 more metrics are not drawn.")
    assert page.locator("figure").count() == 24


def test_memory_is_bounded_after_20_000_events(page, run):
    for number in range(1, 20_001):
        run.tell("metrics", {"step": number, "metrics": {"m": float(number)}})
        if number % 100 == 0:
            run.tell("command", {"number": number // 100, "command": "save", "step": number, "result": None})
    page.wait_for_function("() => curves.get('metric m')?.series.last === 20000")
    lengths = page.evaluate("[...curves.values()].map((each) => each.series.length)")
    assert 5000 < max(lengths) <= 7500
    assert page.evaluate("async () => (await import('/static/commands.js')).rows.length") == 50
    assert page.evaluate("document.getElementsByTagName('*').length") < 600


# -- connection and token ----------------------------------------------------------------------------------------------


def test_a_lost_connection_is_shown_and_restored(tab, serve, run):
    def look():
        text(tab, "#state", "lost")
        text(tab, "#lost", "Trying again.")
        run.go(7)

    restart(serve, connect(tab, serve()), look)
    tab.dispatch_event("#again", "click")  # on a busy machine it may have tried by itself, and hidden the button
    text(tab, "#state", "running")
    text(tab, "#step", "7")
    tab.wait_for_selector("#lost", state="hidden")
    assert all("ERR_" in said for said in tab.complaints)  # what the browser says of a connection


def test_it_reconnects_by_itself(tab, serve):
    restart(serve, connect(tab, serve()), lambda: text(tab, "#state", "lost"))
    text(tab, "#state", "running")


def test_a_refusal_of_events_is_shown(tab, serve):
    full = connect(tab, serve(limits=Limits(subscribers=1)))
    other = tab.context.new_page()
    other.goto(full.url)
    text(other, "#lost", "There are 1 subscribers already. Trying again.")


def test_a_token_is_asked_for_once_and_kept_for_the_tab(tab, serve):
    tab.goto(serve(token=TOKEN).url)
    tab.fill("#token", "another")
    tab.keyboard.press("Enter")
    text(tab, "#token-why", "does not accept")
    tab.fill("#token", TOKEN)
    tab.keyboard.press("Enter")
    text(tab, "#state", "running")
    tab.reload()
    text(tab, "#state", "running")
    assert not tab.is_visible("#token-dialog")
    assert tab.evaluate("Object.values(sessionStorage)") == [TOKEN]
    assert TOKEN not in tab.url + tab.content()


def test_without_a_token_the_page_waits_until_it_is_asked_again(tab, serve):
    tab.clock.install()
    tab.goto(serve(token=TOKEN).url)
    tab.wait_for_selector("#token-dialog[open]")
    tab.keyboard.press("Escape")
    text(tab, "#lost", "This run asks for a token.")
    tab.clock.fast_forward(60_000)
    assert not tab.is_visible("#token-dialog")
    tab.dispatch_event("#again", "click")  # on a busy machine it may have tried by itself, and hidden the button
    tab.wait_for_selector("#token-dialog[open]")


# -- how it looks ------------------------------------------------------------------------------------------------------


def test_without_the_chart_library_a_text_replaces_the_curves(tab, serve, run):
    tab.route("**/vendor/*", lambda route: route.fulfill(status=404))
    tab.goto(serve().url)
    text(tab, ".plot", "run “make web-assets”")
    run.go(2)
    text(tab, "figcaption .value", "1")
    tab.click("text=Pause")
    text(tab, "#state", "paused")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_wider_than_the_window(page, run, width):
    page.set_viewport_size({"width": width, "height": 800})
    run.settings["a_" * 60] = {"value": 1.0, "low": 0.0, "high": 2.0}
    run.metrics = {"b" * 200: 1.0}
    run.tell("command", {"number": 1, "command": "save", "step": 1, "result": "c" * 500})
    run.go(1)
    text(page, "#plots", "b" * 200)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page, run, scheme):
    page.emulate_media(color_scheme=scheme)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 30
    assert min(ratios.values()) >= 4.5, ratios


def test_every_field_and_button_has_a_name(page):
    names = page.locator("button, input, meter, table, [role]").evaluate_all(
        """all => all.filter((one) => one.tagName !== "TABLE" || !one.closest("[aria-label], [aria-labelledby]"))
            .map((one) => one.ariaLabel || one.textContent.trim() || one.labels?.[0]?.textContent || one.role)"""
    )
    assert len(names) > 20
    assert all(names)


def test_figures_do_not_move_the_page(page, run):
    code = "['hand', 'curves', 'settings'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
    before = page.evaluate(code)
    run.go(1, loss=123456789.125)
    text(page, "#step", "1")
    page.click("text=Save")
    text(page, "#answer", "save: done")
    assert page.evaluate(code) == before


CONTRAST = """() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [red, green, blue] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  };
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour !== "rgba(0, 0, 0, 0)" || !element.parentElement ? colour : ground(element.parentElement);
  };
  const ratios = {};
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility()) continue;
    const pair = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
    ratios[`${element.tagName} ${element.id} ${element.className} ${Object.keys(ratios).length}`] =
      (pair[0] + 0.05) / (pair[1] + 0.05);
  }
  return ratios;
}"""
