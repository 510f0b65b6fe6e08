"""Checkpoints that somebody has changed, with checksums that fit: one error of onion, with the place and what to do."""

import hashlib
import json
import shutil

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file, save_file

from onion import CheckpointError, DataProvider, EarlyStopping, Logger, Observer, Runner, RunnerItem, Saver, SkipIf
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import through
from onion.checkpointing.run_state import best_checkpoint
from onion.testing import toy_network
from tests.items.learning import examples, learning
from tests.toys import Unsynced

GONE = "gone"


@pytest.fixture(autouse=True)
def _unsynced():
    with through(Unsynced()):
        yield


class Walk(RunnerItem):
    """A state of both kinds: an array and a number."""

    def __init__(self):
        self.place, self.steps = np.zeros(3), 0

    def on_batch(self, state):
        self.place, self.steps = self.place + 1, self.steps + 1

    def state_dict(self):
        return {"place": self.place, "steps": self.steps}

    def load_state_dict(self, saved):
        self.place, self.steps = np.asarray(saved["place"]).reshape(3), int(saved["steps"])


def onion(folder):
    return Runner(
        Saver(folder, every=2, monitor="value", keep_last=1),
        Logger(folder / "log.jsonl", 1),
        EarlyStopping("value", patience=9),
        Observer(on_batch_end=lambda state: state.report({"value": float(state.step)})),
        DataProvider(list(range(6)), 1, prefetch=0),
        SkipIf(lambda state: False),
        Walk(),
    )


def trained(folder):
    paddle.seed(1)
    learns = learning(toy_network(), optimizer="Adam", rate=paddle.optimizer.lr.StepDecay(0.1, 3))
    return Runner(Saver(folder, every=2), examples(12, 2), *learns)


@pytest.fixture(scope="module", params=[onion, trained])
def saved(request, tmp_path_factory):
    """An onion, and a folder with its checkpoint of step 4."""
    folder = tmp_path_factory.mktemp("saved")
    request.param(folder).run(passes=1, steps=4)
    return request.param, folder


def sign(path):
    """Write the manifest of a checkpoint that was changed on purpose."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        content = (path / name).read_bytes()
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))


def change(path, act):
    """Change the state.json of a checkpoint, and sign it."""
    state = json.loads((path / "state.json").read_text())
    act(state)
    (path / "state.json").write_text(json.dumps(state))
    sign(path)


def places(state):
    """Give what can be taken out of a state.json or exchanged, as (holder, key)."""
    run = state["run"]
    holders = state, run, run["counters"], run["reported"], run["generators"], run["onion"], state["items"]
    for holder in (*holders, *state["items"].values(), *run["onion"].values()):
        yield from ((holder, key) for key in holder)


def goes_on_or_tells(make, folder):
    """Go on; whatever is wrong is told in an error of onion, with the place. Return whether it was."""
    try:
        make(folder).run(passes=1)
    except CheckpointError as error:
        told = str(error)
        assert str(folder) in told
        return True
    assert checkpoint.steps_in(folder)[-1] >= 6
    return False


@pytest.mark.parametrize("value", [GONE, None, "x", [1, "x"], {"x": {}}, 2.5, -1], ids=str)
def test_whatever_is_exchanged_in_a_state_is_told_or_of_no_consequence(value, saved, tmp_path):
    def exchange(state, number):
        holder, key = list(places(state))[number]
        if value == GONE:
            del holder[key]
        else:
            holder[key] = value

    make, original = saved
    state, told = json.loads((original / "step-00000004" / "state.json").read_text()), 0
    for number in range(len(list(places(state)))):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        change(folder / "step-00000004", lambda state, number=number: exchange(state, number))
        told += goes_on_or_tells(make, folder)
    assert told > 10


def test_an_item_whose_state_does_not_do_is_named_with_its_files_and_what_to_do(tmp_path):
    onion(tmp_path).run(passes=1, steps=4)
    change(tmp_path / "step-00000004", lambda state: state["items"]["walk"].pop("steps"))
    told = r"step-00000004: walk \(Walk\) cannot restore its state from state.json and walk.safetensors \(KeyError: "
    with pytest.raises(CheckpointError, match=told + r"'steps'\); if they were changed, delete the folder of this"):
        onion(tmp_path).run(passes=1)


@pytest.mark.parametrize("best", ["x", [1], 2.5])
def test_a_best_step_that_is_none_is_told(best, tmp_path):
    onion(tmp_path).run(passes=1, steps=4)
    change(tmp_path / "step-00000004", lambda state: state["run"].update(best_step=best))
    with pytest.raises(CheckpointError, match=r"state.json: 'best_step' of the run cannot be restored"):
        best_checkpoint(tmp_path)


def test_arrays_of_other_shapes_and_kinds_are_told(saved, tmp_path):
    make, original = saved
    files = list((original / "step-00000004").glob("*.safetensors"))
    assert files
    for file in files:
        for key, array in (arrays := load_file(file)).items():
            for other in (None, np.zeros((2, 5), array.dtype), array.astype("int32")):
                folder = tmp_path / "changed"
                shutil.copytree(original, folder)
                path = folder / "step-00000004"
                save_file({k: v for k, v in {**arrays, key: other}.items() if v is not None}, path / file.name)
                sign(path)
                assert goes_on_or_tells(make, folder) or other is not None
                shutil.rmtree(folder)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b'{"run": 3, "items": {}}', b'{"run": {}}', b"\xff", b"[" * 9999]
)
@pytest.mark.parametrize("name", ["state.json", "walk.safetensors"])
def test_a_file_that_is_something_else_is_passed_over_by_its_name(name, content, tmp_path, caplog):
    onion(tmp_path).run(passes=1, steps=5)
    (tmp_path / "step-00000005" / name).write_bytes(content)
    sign(tmp_path / "step-00000005")
    with pytest.raises(CheckpointError, match=f"{name}: not written by onion .*; delete the folder of this"):
        checkpoint.read(tmp_path / "step-00000005")
