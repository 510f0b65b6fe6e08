"""Checkpoints that somebody has changed, with checksums that fit: one error of onion, with the place and what to do."""

import hashlib
import json
import shutil

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file, save_file

from onion import (
    CheckpointError,
    DataProvider,
    EarlyStopping,
    GradientMachine,
    Logger,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
)
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import through
from onion.checkpointing.run_state import best_checkpoint
from onion.testing import toy_examples, toy_network
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


def learning(folder):
    paddle.seed(1)
    network = toy_network()
    optimizer = paddle.optimizer.Adam(paddle.optimizer.lr.StepDecay(0.1, 3), parameters=network.parameters())
    data = DataProvider(toy_examples(12), 2, prefetch=0)
    return Runner(Saver(folder, every=2), data, ParameterUpdater(optimizer), GradientMachine(network))


@pytest.fixture(scope="module", params=[onion, learning])
def saved(request, tmp_path_factory):
    """An onion, and a folder with its checkpoint of step 4."""
    folder = tmp_path_factory.mktemp("saved")
    request.param(folder).run(passes=1, steps=4)
    return request.param, folder


def sign(path):
    """Write the manifest anew, as somebody does who changes a checkpoint on purpose."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name in manifest["files"]:
        content = (path / name).read_bytes()
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))


def places(state):
    """Give what can be taken out of a state.json or exchanged, as (holder, key)."""
    yield from ((state, key) for key in state)
    run = state["run"]
    for holder in (run, run["counters"], run["reported"], run["generators"], run["onion"], state["items"]):
        yield from ((holder, key) for key in holder)
    for scalars in (*state["items"].values(), *run["onion"].values()):
        yield from ((scalars, key) for key in scalars)


def goes_on_or_tells(make, folder):
    """Go on; whatever is wrong is told in an error of onion, with the place. Return it."""
    try:
        make(folder).run(passes=1)
    except CheckpointError as error:
        told = str(error)
        assert str(folder) in told
        return told
    assert checkpoint.steps_in(folder)[-1] >= 6
    return None


@pytest.mark.parametrize("value", [GONE, None, "x", [1, "x"], {"x": {}}, 2.5, -1], ids=str)
def test_whatever_is_exchanged_in_a_state_is_told_or_of_no_consequence(value, saved, tmp_path):
    make, original = saved
    state = json.loads((original / "step-00000004" / "state.json").read_text())
    told = []
    for number in range(len(list(places(state)))):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        changed = json.loads(json.dumps(state))
        holder, key = list(places(changed))[number]
        if value == GONE:
            del holder[key]
        else:
            holder[key] = value
        (folder / "step-00000004" / "state.json").write_text(json.dumps(changed))
        sign(folder / "step-00000004")
        told.append(goes_on_or_tells(make, folder))
    assert sum(each is not None for each in told) > 10


def test_an_item_whose_state_does_not_do_is_named_with_its_files_and_what_to_do(tmp_path):
    onion(tmp_path).run(passes=1, steps=4)
    path = tmp_path / "step-00000004"
    state = json.loads((path / "state.json").read_text())
    del state["items"]["walk"]["steps"]
    (path / "state.json").write_text(json.dumps(state))
    sign(path)
    told = r"step-00000004: walk \(Walk\) cannot restore its state from state.json and walk.safetensors \(KeyError: "
    with pytest.raises(CheckpointError, match=told + r"'steps'\); if they were changed, delete the folder of this"):
        onion(tmp_path).run(passes=1)


def test_arrays_of_other_shapes_and_kinds_are_told(saved, tmp_path):
    make, original = saved
    files = [path.name for path in (original / "step-00000004").glob("*.safetensors")]
    assert files
    for name in files:
        arrays = load_file(original / "step-00000004" / name)
        for key, array in arrays.items():
            for other in (None, np.zeros((2, 5), array.dtype), array.astype("int32")):
                folder = tmp_path / "changed"
                shutil.copytree(original, folder)
                path = folder / "step-00000004"
                save_file({k: v for k, v in {**arrays, key: other}.items() if v is not None}, path / name)
                sign(path)
                told = goes_on_or_tells(make, folder)
                assert told is not None or other is not None
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


@pytest.mark.parametrize("best", ["x", [1], 2.5])
def test_a_best_step_that_is_none_is_told(best, tmp_path):
    onion(tmp_path).run(passes=1, steps=4)
    path = tmp_path / "step-00000004" / "state.json"
    state = json.loads(path.read_text())
    state["run"]["best_step"] = best
    path.write_text(json.dumps(state))
    sign(path.parent)
    with pytest.raises(CheckpointError, match=r"state.json: 'best_step' of the run cannot be restored"):
        best_checkpoint(tmp_path)
