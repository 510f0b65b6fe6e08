"""The pages under docs/: their Python runs as it stands there, and docs/items.md knows every item."""

import re
from pathlib import Path

import pytest

import onion

DOCS = Path(__file__).parents[1] / "docs"
ITEMS = (DOCS / "items.md").read_text(encoding="utf-8")


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_blocks_of_the_items_page_run_in_their_order(capsys):
    names = {}
    assert len(blocks(ITEMS)) == 2
    for block in blocks(ITEMS):
        exec(compile(block, "docs/items.md", "exec"), names)
    state, outputs = names["runner"], capsys.readouterr().out
    assert not names["running"].is_alive()
    assert names["updater"].readings()["learning_rate"] == pytest.approx(0.01)
    assert state["mailbox"] is names["mailbox"]
    assert "shape=[8, 1]" in outputs


@pytest.mark.parametrize("name", sorted(onion.ITEMS))
def test_every_item_is_told_of(name):
    assert re.search(rf"`[^`]*\b{name}\b", ITEMS), f"docs/items.md does not tell of {name}"


def test_every_schedule_and_strategy_is_told_of():
    from onion import sampling, schedules

    named = [name for name, what in vars(schedules).items() if getattr(what, "__module__", "") == schedules.__name__]
    named = [name for name in named if name.islower() and not name.startswith("_")]
    strategies = [name for name in sampling.__all__ if name not in ("Facts", "Strategy", "Fixed")]
    assert [name for name in [*named, *strategies] if f"`{name}`" not in ITEMS] == []
