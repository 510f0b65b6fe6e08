"""The README's custom item does what it says; that its Python runs is shown by tests/test_docs.py."""

import re

from tests.paths import ROOT

README = ROOT / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_custom_item_retries_and_counts_the_batch_once():
    from onion import Runner, RunnerItem
    from onion.testing import Batches

    names = {}
    exec(compile(BLOCKS[1], "README.md", "exec"), names)
    calls = []

    class Tight(RunnerItem):
        def on_batch(self, state):
            calls.append(state.batch)
            if len(calls) % 3:
                raise MemoryError

    assert Runner(Batches(2), names["Patience"](), Tight()).run(passes=1).step == 2
    assert calls == [0, 0, 0, 1, 1, 1]
