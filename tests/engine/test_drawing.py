"""The onion as text and as a picture."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from onion import Runner, RunnerItem
from onion.engine.drawing import as_svg, as_text, settings, way_out
from onion.testing import Batches, Recorder


class Saving(RunnerItem):
    """A ring with settings of many kinds."""

    def __init__(self, folder, every=100, keep=3, fast=False, model=None, function=None):
        self.folder, self.every, self.keep, self.fast = folder, every, keep, fast
        self.model, self.function = model, function

    def initialize(self, state):
        yield

    def on_batch(self, state):
        yield


class Testing(RunnerItem):
    """An item that runs an onion of its own."""

    __test__ = False

    def __init__(self, runner, every="pass"):
        self.runner, self.every = runner, every

    def on_pass(self, state):
        yield
        self.runner.run(passes=1, parent=state)


class Working(RunnerItem):
    """A ring without a way out."""

    def __init__(self, network):
        self.network = network

    def on_batch(self, state):
        pass


class Network:
    """Something that is no plain setting: its class is shown."""


def onion():
    network = Network()
    test = Runner(Batches(1), Recorder("judge"), Working(network))
    return Runner(
        Saving(Path("out"), every=500),
        Testing(test, every=200),
        Batches(3),
        Runner(Recorder("critic"), Working(network)),
        Working(network),
    )


def test_the_drawing_of_a_nested_onion_with_an_onion_that_an_item_runs():
    assert str(onion()).splitlines() == [
        "Runner                                  initialize  pass  batch",
        "╭ saving  Saving(out, every=500)            ↕        ·      ↕",
        "│╭ testing  Testing(Runner, every=200)      ·        ↕      ·",
        "││  runs runner:",
        "││     batches  Batches()                   ·        ↓      ·",
        "││   ╭ judge  Recorder()                    ↕        ↕      ↕",
        "││   │  working  Working(Network)           ·        ·      ↓",
        "││   ╰",
        "││  batches  Batches()                      ·        ↓      ·",
        "││  runner  Runner()                        ·        ·      ↓",
        "││    ╭ critic  Recorder()                  ↕        ↕      ↕",
        "││    │  working  Working(Network)          ·        ·      ↓",
        "││    ╰",
        "││  working-2  Working(Network)             ·        ·      ↓",
        "│╰",
        "╰",
    ]


def test_an_empty_onion_is_its_heading():
    assert str(Runner()) == "Runner  initialize  pass  batch"


@pytest.mark.parametrize(("hook", "place"), [("initialize", 0), ("on_pass", 1), ("on_batch", 2)])
def test_a_dot_is_no_hook_an_arrow_a_way_in_a_double_arrow_a_way_in_and_out(hook, place):
    def plain(self, state):
        pass

    def ring(self, state):
        yield

    for function, arrow, expected in ((plain, "↓", False), (ring, "↕", True)):
        item = type("Item", (RunnerItem,), {hook: function})()
        line = str(Runner(item)).splitlines()[1]
        assert re.findall("[↕↓·]", line) == ["·"] * place + [arrow] + ["·"] * (2 - place)
        assert line.startswith("╭") == expected
        assert way_out(item, hook) is expected
    assert way_out(RunnerItem(), hook) is None


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Saving("out"), "Saving(folder='out')"),
        (Saving(Path("a/b")), "Saving(a/b)"),
        (Saving("out", every=100, keep=3), "Saving(folder='out')"),
        (Saving("out", 200, fast=True), "Saving(folder='out', every=200, fast=True)"),
        (Saving("out", keep=0, fast=0), "Saving(folder='out', keep=0)"),
        (Saving("a\nb"), r"Saving(folder='a\nb')"),
        (Saving(None), "Saving()"),
        (Saving(["a", "b"]), "Saving()"),
        (Saving("out", model=Network()), "Saving(folder='out', Network)"),
        (Saving("out", model=np.zeros(9)), "Saving(folder='out', ndarray)"),
        (Saving("out", function=len), "Saving(folder='out')"),
        (Recorder("a"), "Recorder()"),
        (RunnerItem(), "RunnerItem()"),
        (Runner(name="gan"), "Runner()"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_item_is_written_as_the_call_that_makes_it_with_what_differs_from_the_defaults(item, text):
    assert settings(item) == text


# -- items that know runners -------------------------------------------------------------------------------------------


def test_an_item_that_remembers_the_onion_it_stands_in_does_not_run_it():
    class Remembers(RunnerItem):
        def check(self, runner):
            self.onion = runner

    assert str(Runner(Remembers())).splitlines()[1:] == ["  remembers  Remembers()      ·        ·      ·"]
    outer = Runner(Batches(1), Runner(Remembers()))
    assert "runs" not in str(outer)
    assert "remembers" in as_svg(outer)


def test_private_attributes_are_not_shown():
    class Private(RunnerItem):
        def __init__(self, secret, *more, **options):
            self._secret = secret

    assert settings(Private(3, 4, a=5)) == "Private()"
    assert "hidden" not in str(Runner(Private(Runner(Recorder("hidden")))))


# -- pictures ----------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def boxes(runner):
    """Return x, y, width and height of the rectangles of a picture; the first is the background."""
    sides = ("x", "y", "width", "height")
    return [[float(box.get(key, 0)) for key in sides] for box in ET.fromstring(as_svg(runner)).iter(f"{SVG}rect")]


def test_the_picture_is_well_formed_and_names_every_item():
    runner = onion()
    shown = texts(as_svg(runner))
    for item in [*runner.walk(), *runner["testing"].runner.walk()]:
        assert f"{item.name}  {settings(item)}" in shown
    assert "runs runner:" in shown


def test_the_boxes_are_the_rings_with_a_way_out():
    assert texts(as_svg(Runner())) == []
    assert len(boxes(onion())) == 1 + 4, "the background and saving, testing, judge, critic"


def test_everything_is_on_the_canvas_and_each_text_in_its_own_line():
    root = ET.fromstring(as_svg(onion()))
    width, height = float(root.get("width")), float(root.get("height"))
    places = [(float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")]
    lines = [y for _, y in places]
    assert lines == sorted(set(lines)), "one below the other, in the order of the rings"
    assert all(0 < x < width and 0 < y < height for x, y in places)
    assert all(x + wide <= width and y + tall <= height for x, y, wide, tall in boxes(onion()))


def test_a_box_holds_what_is_inside_its_ring():
    nested = boxes(Runner(Recorder("a"), Recorder("b"), Recorder("c")))[1:]
    for (x, y, width, height), (x2, y2, width2, height2) in pairwise(nested):
        assert x < x2 < x2 + width2 <= x + width
        assert y < y2 < y2 + height2 <= y + height


def test_two_boxes_are_one_in_the_other_or_apart():
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(boxes(onion()), 2):
        within = x <= x2 < x2 + width2 <= x + width and y <= y2 < y2 + height2 <= y + height
        assert within or y2 >= y + height


def test_signs_that_mean_something_in_xml_are_escaped():
    item = Recorder("<a> & \"b\" 'c'")
    assert texts(as_svg(Runner(item, Saving("</text>")))) == [
        "<a> & \"b\" 'c'  Recorder()",
        "saving  Saving(folder='</text>')",
    ]


def test_draw_writes_a_picture_or_a_text_by_the_suffix(tmp_path):
    runner = onion()
    runner.draw(tmp_path / "onion.svg")
    runner.draw(str(tmp_path / "onion.txt"))
    assert (tmp_path / "onion.svg").read_text("utf-8") == as_svg(runner)
    assert (tmp_path / "onion.txt").read_text("utf-8") == as_text(runner) + "\n"


def test_a_notebook_shows_the_picture_and_repr_is_short():
    runner = Runner(Recorder("a", []), Batches(1), Runner(Recorder("b", []), name="inner"))
    assert runner._repr_svg_() == as_svg(runner)
    assert repr(runner) == f"Runner({', '.join(item.name for item in runner.items)})"
    assert repr(runner).endswith(", inner)")
