"""The README's items do what it says; that its Python runs is shown by tests/test_docs.py."""

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


def test_the_smallest_item_with_a_state_counts_on_where_the_run_was_cut_and_not_in_a_test(tmp_path):
    from onion import DataProvider, Runner, Saver, Tester
    from onion.testing import assert_resumes_exactly, toy_examples

    names = {}
    for block in BLOCKS[1:3]:
        exec(compile(block, "README.md", "exec"), names)

    def onion(folder):
        return Runner(Saver(folder, every=2), DataProvider(toy_examples(20), 4, prefetch=0), names["Examples"]())

    assert_resumes_exactly(onion, tmp_path / "resumed", passes=2)
    runner = onion(tmp_path / "shared")
    tested = runner.insert_before(DataProvider, Tester(runner.without(Saver), every=1))
    tested.run(passes=2)
    assert tested["examples"].seen == 40
