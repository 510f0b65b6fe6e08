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
    assert str(onion()) == "\n".join(
        [
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
    )


def test_an_empty_onion_is_its_heading():
    assert str(Runner()) == "Runner  initialize  pass  batch"


def test_the_columns_stand_below_their_headings():
    lines = str(onion()).splitlines()
    heading = lines[0]
    columns = [heading.index(word) + len(word) // 2 for word in ("initialize", "pass", "batch")]
    for line in lines[1:]:
        arrows = [place for place, sign in enumerate(line) if sign in "↕↓·"]
        if arrows:
            assert all(abs(place - column) <= 1 for place, column in zip(arrows, columns, strict=True)), line


def test_every_bracket_that_opens_closes():
    text = str(onion())
    assert text.count("╭") == text.count("╰") == 4
    for line in text.splitlines():
        assert line == line.rstrip()


def test_each_nested_onion_is_drawn_deeper():
    text = str(Runner(Runner(Runner(Recorder("deep")))))
    names = [("runner", 2), ("runner-2", 6), ("deep", 10)]
    for line, (name, place) in zip(text.splitlines()[1:], names, strict=False):
        assert line.index(f"{name}  ") == place


@pytest.mark.parametrize(("hook", "sign"), [("initialize", 0), ("on_pass", 1), ("on_batch", 2)])
def test_a_dot_is_no_hook_an_arrow_a_way_in_a_double_arrow_a_way_in_and_out(hook, sign):
    def plain(self, state):
        pass

    def ring(self, state):
        yield

    for function, arrow, expected in ((plain, "↓", False), (ring, "↕", True)):
        item = type("Item", (RunnerItem,), {hook: function})()
        line = next(line for line in str(Runner(item)).splitlines() if "Item()" in line)
        arrows = re.findall("[↕↓·]", line)
        assert arrows == ["·"] * sign + [arrow] + ["·"] * (2 - sign)
        assert line.startswith("╭") == (arrow == "↕")
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


def test_an_item_that_keeps_its_arguments_elsewhere_shows_none():
    class Private(RunnerItem):
        def __init__(self, secret, *more, **options):
            self._secret = secret

    assert settings(Private(3, 4, a=5)) == "Private()"


# -- items that know runners -------------------------------------------------------------------------------------------


def test_an_item_that_remembers_the_onion_it_stands_in_does_not_run_it():
    class Remembers(RunnerItem):
        def check(self, runner):
            self.onion = runner

    assert str(Runner(Remembers())).splitlines()[1:] == ["  remembers  Remembers()      ·        ·      ·"]
    outer = Runner(Batches(1), Runner(Remembers()))
    assert "runs" not in str(outer)
    assert "remembers" in as_svg(outer)


def test_runners_in_private_attributes_are_nobodys_business():
    class Hides(RunnerItem):
        def __init__(self, runner):
            self._runner = runner

    assert "hidden" not in str(Runner(Hides(Runner(Recorder("hidden")))))


# -- pictures ----------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_is_well_formed_and_names_every_item():
    runner = onion()
    shown = texts(as_svg(runner))
    for item in [*runner.walk(), *runner["testing"].runner.walk()]:
        assert f"{item.name}  {settings(item)}" in shown
    assert "runs runner:" in shown


def test_a_picture_of_nothing_is_a_picture():
    assert texts(as_svg(Runner())) == []


def test_the_boxes_are_the_rings_with_a_way_out():
    boxes = list(ET.fromstring(as_svg(onion())).iter(f"{SVG}rect"))
    assert len(boxes) == 1 + 4, "the background and saving, testing, judge, critic"


def test_everything_stands_on_the_canvas_and_each_text_in_its_own_line():
    root = ET.fromstring(as_svg(onion()))
    width, height = float(root.get("width")), float(root.get("height"))
    lines = [float(text.get("y")) for text in root.iter(f"{SVG}text")]
    assert lines == sorted(set(lines)), "one below the other, in the order of the rings"
    for box in root.iter(f"{SVG}rect"):
        x, y = float(box.get("x", 0)), float(box.get("y", 0))
        assert x + float(box.get("width")) <= width
        assert y + float(box.get("height")) <= height
    for text in root.iter(f"{SVG}text"):
        assert 0 < float(text.get("x")) < width
        assert 0 < float(text.get("y")) < height


def test_a_box_holds_what_is_inside_its_ring():
    root = ET.fromstring(as_svg(Runner(Recorder("a"), Recorder("b"), Recorder("c"))))
    boxes = [
        tuple(float(box.get(key)) for key in ("x", "y", "width", "height")) for box in list(root.iter(f"{SVG}rect"))[1:]
    ]
    for (x, y, width, height), (x2, y2, width2, height2) in pairwise(boxes):
        assert x < x2
        assert y < y2
        assert x2 + width2 <= x + width
        assert y2 + height2 <= y + height


def test_two_boxes_stand_one_in_the_other_or_apart():
    root = ET.fromstring(as_svg(onion()))
    boxes = [[float(box.get(key, 0)) for key in ("x", "y", "width", "height")] for box in root.iter(f"{SVG}rect")]
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(boxes, 2):
        within = x < x2 + width2 <= x + width and y < y2 + height2 <= y + height and x <= x2 and y <= y2
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
