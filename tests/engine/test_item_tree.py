"""Names, looking items up, and onions made from onions."""

from dataclasses import dataclass

import attrs
import pytest

from onion import CompositionError, Every, OnionError, Runner, RunnerItem
from onion.testing import Batches, Recorder
from tests.counting import python_calls


class Ring(RunnerItem):
    """A ring with a default name."""

    def on_batch(self, state):
        yield


class SpecialRing(Ring):
    """A subclass, found by its parent's class too."""


def named(name):
    item = Ring()
    item.name = name
    return item


def names(runner):
    """Return the names of an onion as nested lists."""
    return [names(item) if isinstance(item, Runner) else item.name for item in runner.items]


def deep():
    """Return an onion of three levels."""
    return Runner(named("a"), Runner(named("b"), Runner(named("c"), named("d")), named("e")), named("f"))


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Runner(Ring(), Ring(), Ring(), Ring()), ["ring", "ring-2", "ring-3", "ring-4"]),
        # An item that an inner runner has numbered keeps its number; the others take the free ones in order.
        (lambda: Runner(Ring(), Runner(Ring(), Runner(Ring())), Ring()), ["ring", ["ring-3", ["ring-2"]], "ring-4"]),
        # Each inner runner numbers its own items before it knows of the other.
        (lambda: Runner(Runner(Ring(), Ring()), Runner(Ring(), Ring())), [["ring", "ring-2"], ["ring-3", "ring-4"]]),
        (
            lambda: Runner(*(make() for make in (Ring, SpecialRing) * 2)),
            ["ring", "special_ring", "ring-2", "special_ring-2"],
        ),
        (lambda: Runner(Ring(), named("ring")), ["ring-2", "ring"]),
        (lambda: Runner(Ring(), Runner(named("ring-2")), Ring()), ["ring", ["ring-2"], "ring-3"]),
        (lambda: Runner(Ring(), Recorder("ring")), ["ring-2", "ring"]),
    ],
    ids=["flat", "nested", "two runners", "subclasses", "a given name", "a given name, nested", "of another class"],
)
def test_of_items_with_the_same_default_name_the_later_ones_are_numbered(make, expected):
    assert names(make()) == expected


def test_numbers_that_other_onions_gave_are_given_anew_where_they_meet():
    first, second = Ring(), Ring()
    Runner(Ring(), first)
    Runner(Ring(), second)
    assert first.name == second.name == "ring-2"
    Runner(first, second)
    assert (first.name, second.name) == ("ring-2", "ring-3")


def test_a_number_stays_when_the_other_items_go():
    """So that the metrics and checkpoints of a derived onion mean the same items."""
    runner = Runner(Ring(), Ring(), Ring())
    first, second, third = runner.items
    assert [item.name for item in runner.without(first).items] == ["ring-2", "ring-3"]
    assert [item.name for item in runner.without(second).items] == ["ring", "ring-3"]
    assert runner.without("ring-2")["ring-3"] is third


@pytest.mark.parametrize("name", ["ring", "ring-left", "other-2", "other"])
@pytest.mark.parametrize(
    "compose", [lambda a, b: Runner(a, b), lambda a, b: Runner(a, Runner(b)), lambda a, b: Runner(Runner(a), Runner(b))]
)
def test_two_given_names_are_refused_at_any_depth_even_if_they_look_like_default_ones(compose, name):
    with pytest.raises(CompositionError) as caught:
        compose(named(name), named(name))
    message, _, drawing = str(caught.value).partition("\n\n")
    assert message == f"two items are named '{name}'; give one of them another name."
    assert drawing.count(f"╭ {name}  Ring()") == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a\0b", r"named 'a\\x00b'; a name is a text of 1 to 200 bytes"),
        ("a\nb", r"named 'a\\nb'; a name"),
        ("n" * 300, r"named 'n{59}\.\.\. \(302 characters\); a name"),
        ("名" * 67, "; a name is a text of 1 to 200 bytes"),
        ("\ud800", "; a name is a text"),
        ("", "named ''; a name"),
        (7, "named 7; a name"),
        (None, "named None; a name"),
    ],
)
def test_a_name_that_no_drawing_or_file_can_have_is_refused(name, says):
    item = Ring()
    item.name = name
    for compose in (lambda: Runner(item), lambda: Runner(Runner(Every(2, item)))):
        with pytest.raises(CompositionError, match=rf"^a Ring is {says}" if "named" in says else says):
            compose()
    if name is not None:
        with pytest.raises(CompositionError, match="a Runner is named"):
            Runner(Ring(), name=name)
    item.name = "任务 a-1.b"
    Runner(item)


@pytest.mark.parametrize("beside", [[], [Ring]])
def test_an_onion_nested_deep_is_built_in_few_calls(beside):
    """500 nested runners took 14 s, now half a second: every level walked through all below, level by level."""

    def calls(depth):
        def build():
            runner = Ring()
            for _ in range(depth):
                runner = Runner(*(make() for make in beside), runner)

        return python_calls(build)

    assert calls(80) < 5 * calls(40)  # each runner looks at all that it holds; that is all


def test_only_an_item_that_needs_a_number_is_written_to():
    alone = Ring()
    Runner(alone, SpecialRing())
    assert vars(alone) == {}


# -- items that define equality ----------------------------------------------------------------------------------------


@dataclass
class Drop(RunnerItem):
    """Items like these are equal, and have no hash."""

    rate: float = 0.1

    def on_batch(self, state):
        yield


@dataclass(unsafe_hash=True)
class Hashed(RunnerItem):
    """Items like these are equal, and so are their hashes."""

    rate: float = 0.1


@attrs.define
class Slotted(RunnerItem):
    """As Drop, by attrs."""

    rate: float = 0.1


@pytest.mark.parametrize("make", [Drop, Hashed, Slotted])
def test_items_are_told_apart_by_identity_and_not_by_equality(make):
    first, second, third = make(), make(), make()
    runner = Runner(first, Runner(Runner(second), Batches(1)))
    assert first == second == third
    assert third not in runner
    assert runner.inside(second) == ()
    assert len(runner.inside(first)) == 4

    replaced = runner.replace(second, third)
    assert replaced.items[1].items[0].items[0] is third
    assert second not in replaced
    assert second in runner
    assert runner.run(passes=1).step == 1


# -- looking -----------------------------------------------------------------------------------------------------------


def test_an_item_is_found_by_its_class_and_by_those_above_it():
    special = SpecialRing()
    runner = Runner(Batches(1), Runner(special))
    assert runner[SpecialRing] is runner[Ring] is special
    assert Ring in runner
    assert not any(each in runner for each in (Recorder, "nothing", Ring()))


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ("x", "no items match 'x', not one, in"),
        (Recorder, "no items match Recorder, not one, in"),
        (Ring, "6 items match Ring, not one, in"),
    ],
    ids=str,
)
def test_a_look_up_that_is_not_unique_says_how_many_match_and_shows_the_onion(which, says):
    runner = deep()
    with pytest.raises(OnionError) as caught:
        runner[which]
    assert str(caught.value) == f"{says}\n\n{runner}"


def test_walk_gives_all_items_the_outermost_first_and_runners_before_their_items():
    runner = deep()
    assert [item.name for item in runner.walk()] == ["a", "runner", "b", "runner-2", "c", "d", "e", "f"]
    for item in runner.walk():
        assert runner[item.name] is item
        assert item.name in runner
        assert item in runner


def test_an_item_with_items_of_its_own_is_no_runner():
    class Shop(RunnerItem):
        items = ("a", "b")

    runner = Runner(Shop(), Batches(1))
    assert [item.name for item in runner.walk()] == ["shop", "batches"]
    assert "shop  Shop()" in str(runner)


def test_all_gives_every_item_of_a_class_at_every_depth():
    runner = Runner(Ring(), Runner(SpecialRing(), Recorder("r")), SpecialRing())
    assert [item.name for item in runner.all(Ring)] == ["ring", "special_ring", "special_ring-2"]
    assert [item.name for item in runner.all(SpecialRing)] == ["special_ring", "special_ring-2"]
    assert runner.all(Batches) == []


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("a", ["runner", "b", "runner-2", "c", "d", "e", "f"]),
        ("b", ["runner-2", "c", "d", "e"]),
        ("c", ["d"]),
        ("d", []),
        ("e", []),
        ("f", []),
        ("runner-2", ["e"]),
    ],
)
def test_inside_an_item_is_what_follows_it_in_its_own_runner(name, inside):
    """The rings of a nested runner are wound up before the outer onion goes on, so nothing out there is inside them."""
    runner = deep()
    assert [item.name for item in runner.inside(runner[name])] == inside
    assert runner.inside(Ring()) == ()


# -- without -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ([], ["a", ["b", ["c", "d"], "e"], "f"]),
        (["a"], [["b", ["c", "d"], "e"], "f"]),
        (["b"], ["a", [["c", "d"], "e"], "f"]),
        (["d"], ["a", ["b", ["c"], "e"], "f"]),
        (["a", "c", "f"], [["b", ["d"], "e"]]),
        (["runner"], ["a", "f"]),
        (["runner-2"], ["a", ["b", "e"], "f"]),
        (["c", "d"], ["a", ["b", "e"], "f"]),
        (["b", "c", "d", "e"], ["a", "f"]),
        ([Runner], ["a", "f"]),
        ([Ring], []),
    ],
    ids=str,
)
def test_without_leaves_items_out_at_every_depth_and_runners_that_are_left_empty(which, left):
    assert names(deep().without(*which)) == left


def test_without_takes_an_item_itself():
    first, second = Ring(), Ring()
    assert list(Runner(first, Runner(second)).without(second)) == [first]


def test_without_what_is_not_there_is_an_error():
    for which in ("x", Recorder, Ring()):
        with pytest.raises(OnionError, match=r"^no items match"):
            deep().without("a", which)


# -- replace and insert ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "item", "result"),
    [
        ("a", named("x"), ["x", ["b", ["c", "d"], "e"], "f"]),
        ("b", named("x"), ["a", ["x", ["c", "d"], "e"], "f"]),
        ("d", named("x"), ["a", ["b", ["c", "x"], "e"], "f"]),
        ("f", named("x"), ["a", ["b", ["c", "d"], "e"], "x"]),
        ("runner-2", named("x"), ["a", ["b", "x", "e"], "f"]),
        ("runner", named("x"), ["a", "x", "f"]),
        ("runner", Runner(named("x"), named("y")), ["a", ["x", "y"], "f"]),
        ("a", Runner(named("z")), [["z"], ["b", ["c", "d"], "e"], "f"]),
        ("a", Ring(), ["ring", ["b", ["c", "d"], "e"], "f"]),
    ],
)
def test_replace_puts_an_item_in_the_place_of_another_at_every_depth(which, item, result):
    assert names(deep().replace(which, item)) == result


@pytest.mark.parametrize(
    ("which", "before", "after"),
    [
        ("a", ["x", "y", "a", ["b", ["c", "d"], "e"], "f"], ["a", "x", "y", ["b", ["c", "d"], "e"], "f"]),
        ("c", ["a", ["b", ["x", "y", "c", "d"], "e"], "f"], ["a", ["b", ["c", "x", "y", "d"], "e"], "f"]),
        ("e", ["a", ["b", ["c", "d"], "x", "y", "e"], "f"], ["a", ["b", ["c", "d"], "e", "x", "y"], "f"]),
        ("runner", ["a", "x", "y", ["b", ["c", "d"], "e"], "f"], ["a", ["b", ["c", "d"], "e"], "x", "y", "f"]),
    ],
)
def test_insert_puts_items_just_outside_or_just_inside_another(which, before, after):
    assert names(deep().insert_before(which, named("x"), named("y"))) == before
    assert names(deep().insert_after(which, named("x"), named("y"))) == after


DERIVE = {
    "replace": lambda runner, which: runner.replace(which, named("x")),
    "insert_before": lambda runner, which: runner.insert_before(which, named("x")),
    "insert_after": lambda runner, which: runner.insert_after(which, named("x")),
}


@pytest.mark.parametrize("derive", DERIVE.values(), ids=DERIVE)
@pytest.mark.parametrize(("which", "count"), [("x", "no"), (Ring, 6), (Runner, 2)])
def test_replace_and_insert_want_exactly_one_place(derive, which, count):
    with pytest.raises(OnionError, match=f"^{count} items match ('x'|Ring|Runner), not one, in"):
        derive(deep(), which)


def test_an_item_is_not_inserted_twice():
    runner = deep()
    with pytest.raises(CompositionError, match="the item 'a' occurs twice"):
        runner.insert_after("c", runner["a"])


def test_a_replacement_may_have_the_default_name_of_what_it_replaces():
    assert names(Runner(Ring(), Batches(1)).replace(Ring, Ring())) == ["ring", "batches"]


# -- what is shared ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("without", "shared"),
    [([], "abcdef"), (["f"], ["a", "b", "c", "d", "e", "runner", "runner-2"]), (["d"], "abcef")],
    ids=str,
)
def test_a_derived_onion_shares_all_items_and_every_unchanged_nested_runner(without, shared):
    runner = deep()
    derived = runner.without(*without)
    assert derived is not runner
    assert all(derived[name] is runner[name] for name in shared)
    assert (derived["runner"] is runner["runner"]) == ("d" not in without)
    assert derived["runner-2"].name == "runner-2"


def test_the_original_is_unchanged():
    runner = deep()
    drawing = str(runner)
    items = list(runner.walk())
    runner.without("c", "a")
    runner.replace("d", named("x"))
    runner.insert_before("runner-2", named("x"))
    runner.timed()
    assert str(runner) == drawing
    assert list(map(id, runner.walk())) == list(map(id, items))


def test_derived_runners_can_stand_together_in_one_onion():
    """Their default names are no given ones."""
    first = Runner(Recorder("a"), Recorder("b")).without("a")
    second = Runner(Recorder("c"), Recorder("d")).without("c")
    both = Runner(first, second)
    assert [item.name for item in both.all(Runner)] == ["runner", "runner-2"]
