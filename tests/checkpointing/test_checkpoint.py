"""Checkpoints on disk: what was written is read back to the bit, or refused; what is there is never harmed."""

import errno
import hashlib
import json
import logging
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion import CheckpointError
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import Files, through
from onion.checkpointing.checkpoint import Checkpoint, copied, folder_of, newest, prune, read, steps_in, sweep, write
from onion.checkpointing.lock import locked
from tests.checkpointing.folders import names

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64"]


def small(step=1, value=0.5):
    run = {"counters": {"pass_id": 0, "batch_id": step, "step": step}, "metrics": {"a": value}}
    items = {"machine": {"w": np.full((2, 2), value, "float32")}, "early_stopping": {"best": value, "seen": step}}
    return Checkpoint(step, run, items)


def same(one, other):
    def plain(saved):
        return {
            name: {key: (v.dtype, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else v for key, v in state.items()}
            for name, state in saved.items()
        }

    return (one.step, one.run, plain(one.items)) == (other.step, other.run, plain(other.items))


def restored(item, folder):
    """What is read back of the state of one item, written as a checkpoint."""
    return read(write(folder, Checkpoint(0, {}, {"item": item}))).items["item"]


# -- the way there and back ------------------------------------------------------------------------------------------


def test_the_folder_looks_as_documented(tmp_path):
    path = write(tmp_path, small(400))
    assert same(read(path), small(400))
    assert path == tmp_path / "step-00000400"
    assert names(tmp_path) == ["step-00000400"]
    assert names(path) == ["machine.safetensors", "manifest.json", "state.json"]
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest == {
        "format": 2,
        "step": 400,
        "files": {
            name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name in ("machine.safetensors", "state.json")
            for content in [(path / name).read_bytes()]
        },
    }
    assert not [file for file in path.iterdir() if file.read_bytes().startswith(b"\x80")], "a pickle"
    assert json.loads((path / "state.json").read_text()) == {
        "run": small(400).run,
        "items": {"machine": {}, "early_stopping": {"best": 0.5, "seen": 400}},
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4)])
def test_arrays_of_every_type_and_shape_come_back_to_the_bit(dtype, shape, tmp_path):
    count = math.prod(shape)
    raw = np.random.default_rng(0).bytes(count * np.dtype(dtype).itemsize)
    array = np.frombuffer(raw, dtype if dtype != "bool" else "uint8").reshape(shape)
    array = np.asarray(array % 2 == 1) if dtype == "bool" else array
    there = restored({"a": array}, tmp_path)["a"]
    assert (there.dtype, there.shape, there.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_special_numbers_come_back_to_the_bit(tmp_path):
    array = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, np.finfo("float64").max])
    array = np.concatenate([array, np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf0\x7f", "float64")])
    assert restored({"a": array}, tmp_path)["a"].tobytes() == array.tobytes()


def test_arrays_that_do_not_lie_in_order_come_back_right(tmp_path):
    base = np.arange(24).reshape(4, 6)
    views = {
        "transposed": base.T,
        "strided": base[::2, ::3],
        "backwards": base[::-1],
        "broadcast": np.broadcast_to(np.float32(3), (2, 2)),
        "column order": np.asfortranarray(base),
        "big endian": np.arange(3, dtype=">i4"),
    }
    there = restored(views, tmp_path)
    for name, view in views.items():
        assert np.array_equal(there[name], view), name


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_paddle_tensors_come_back_as_numpys(dtype, tmp_path):
    tensors = {"some": paddle.to_tensor([0, 1, 1]).astype(dtype), "one": paddle.to_tensor(1).astype(dtype)}
    there = restored(tensors, tmp_path)
    for name, tensor in tensors.items():
        assert (there[name].dtype, there[name].shape) == (dtype, tuple(tensor.shape))
        assert there[name].tobytes() == tensor.numpy().tobytes()


def test_bfloat16_tensors_come_back_as_the_same_bits_and_go_into_a_tensor_again(tmp_path):
    tensor = paddle.to_tensor([1.5, -2.5, 3.0e38], dtype="bfloat16")
    there = restored({"t": tensor}, tmp_path)["t"]
    assert there.dtype == "uint16"
    other = paddle.zeros([3], dtype="bfloat16")
    other.set_value(there)
    assert other.dtype == paddle.bfloat16
    assert (other == tensor).all()


def test_a_parameter_on_the_tape_is_saved_too(tmp_path):
    weight = paddle.nn.Linear(2, 2).weight
    assert restored({"w": weight}, tmp_path)["w"].tobytes() == weight.numpy().tobytes()


KEYS = ["", " ", "a/b", "../../x", "ä µ 中", 'quote"\n\t\\', "x" * 2000, "state.json", "\u2028", "0", "__proto__"]


def test_any_text_is_a_key(tmp_path):
    items = {
        "arrays": {key: np.full(2, i) for i, key in enumerate(KEYS)},
        "scalars": dict.fromkeys(KEYS, 1),
        "中 item": {"a": np.ones(1)},
        "state": {"a": np.ones(1)},
        "manifest": {"a": np.ones(1), "b": 2},
        "empty": {},
    }
    written = Checkpoint(3, {}, items)
    assert same(read(write(tmp_path, written)), written)


def test_scalars_come_back_as_they_were(tmp_path):
    values = [None, True, False, 0, -1, 2**80, 0.1, -0.0, 1e-320, math.inf, -math.inf, "", "ä\n", "NaN"]
    back = list(restored({str(i): value for i, value in enumerate(values)}, tmp_path).values())
    assert back == values
    assert list(map(type, back)) == list(map(type, values))
    assert math.copysign(1, back[7]) == -1


def test_numpy_scalars_and_nan_are_saved_as_numbers(tmp_path):
    scalars = {"a": np.float32(0.1), "b": np.int64(3), "c": np.bool_(True), "d": np.float64(0.1), "e": math.nan}
    there = read(write(tmp_path, Checkpoint(0, {"metrics": dict(scalars)}, {"item": dict(scalars)})))
    for saved in (there.items["item"], there.run["metrics"]):
        assert math.isnan(saved.pop("e"))
        assert saved == {"a": float(np.float32(0.1)), "b": 3, "c": True, "d": 0.1}


UNKNOWN = "the state of item holds an array that cannot be saved: Unknown dtype"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {"k": {1, 2}},
            r"a state has a value that JSON cannot hold \(\{1, 2\} is a set\); return arrays and JSON scalars",
        ),
        *(({"k": array}, UNKNOWN) for array in (np.array(["text"]), np.array([None]), np.zeros(1, "complex128"))),
        ({"__metadata__": np.ones(1)}, r"item holds .* __metadata__ is the file format's own"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing_behind(item, said, tmp_path):
    write(tmp_path, small(1))
    with pytest.raises(CheckpointError, match=said):
        write(tmp_path, Checkpoint(2, {}, {"first": {"a": np.ones(3)}, "item": item}))
    assert names(tmp_path) == ["step-00000001"]


def test_the_same_step_written_again_replaces_the_first(tmp_path):
    write(tmp_path, Checkpoint(1, {}, {"gone": {"w": np.ones(2)}}))
    write(tmp_path, small(1, 2.5))
    assert names(tmp_path) == ["step-00000001"]
    assert names(folder_of(tmp_path, 1)) == ["machine.safetensors", "manifest.json", "state.json"]
    assert same(read(folder_of(tmp_path, 1)), small(1, 2.5))


def test_steps_beyond_eight_digits_are_found_in_order(tmp_path):
    for step in (5, 123456789, 40):
        write(tmp_path, small(step))
    (tmp_path / "step-best").mkdir()
    (tmp_path / "step-00000099").write_text("a file")
    (tmp_path / "metrics.jsonl").write_text("")
    assert steps_in(tmp_path) == [5, 40, 123456789]
    assert newest(tmp_path).step == 123456789


# -- damage ----------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_and_every_truncation_of_every_file_is_noticed(tmp_path):
    path = write(tmp_path, small())
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for place in range(len(content)):
            file.write_bytes(content[:place])
            with pytest.raises(CheckpointError, match=file.name):
                read(path)
            damaged = bytearray(content)
            damaged[place] ^= 1 << (place % 8)
            file.write_bytes(damaged)
            try:
                there = read(path)
            except CheckpointError:
                continue
            assert same(there, small()), f"byte {place} of {file.name}: {bytes(damaged)!r}"
        file.write_bytes(content)
    assert same(read(path), small())


@pytest.mark.parametrize(
    "manifest",
    [
        *(b"", b"null", b"[]", b"3", b"{}", b"\xff\xfe"),
        b'{"format": 2, "step": 1}',
        b'{"format": 2, "step": 1, "files": {}}',
        b'{"format": 2, "step": 1, "files": []}',
        b'{"format": 2, "step": 1, "files": null}',
        b'{"format": 2, "step": "1", "files": {}}',
        b'{"format": 2, "step": null, "files": {}}',
        b'{"format": 2, "step": 1, "files": {"state.json": null}}',
        b'{"format": 2, "step": 1, "files": {"state.json": {"size": 1}}}',
    ],
)
def test_a_manifest_of_nonsense_is_an_error(manifest, tmp_path):
    path = write(tmp_path, small())
    (path / "manifest.json").write_bytes(manifest)
    with pytest.raises(CheckpointError):
        read(path)


def test_a_future_format_is_refused_and_a_copy_under_another_name_is_read(tmp_path):
    path = write(tmp_path, small())
    shutil.copytree(path, tmp_path / "release")
    assert same(read(tmp_path / "release"), small())
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 3}))
    with pytest.raises(CheckpointError, match=r"format 3 is unknown to this version of onion, which reads 1 to 2"):
        read(path)


# -- what stands in the place of files and folders --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (lambda path: None, "No such file"),
        (os.mkfifo, "Not a plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "Not a plain file"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["nothing", "pipe", "endless device", "folder", "loop"],
)
@pytest.mark.parametrize("name", ["machine.safetensors", "state.json", "manifest.json"])
def test_what_is_no_file_is_not_waited_for_nor_read_for_ever(name, place, told, tmp_path, caplog):
    write(tmp_path, small(1))
    path = write(tmp_path, small(2))
    (path / name).unlink()
    place(path / name)
    how = " is missing or damaged" if name == "manifest.json" else f": cannot be read: {told}.*"
    with pytest.raises(CheckpointError, match=f"{name}{how}; delete the folder of this checkpoint"):
        read(path)
    assert newest(tmp_path).step == 1
    assert name in caplog.messages[0]


def test_a_users_file_in_the_place_of_a_checkpoint_stays_and_is_named(tmp_path):
    folder_of(tmp_path, 1).symlink_to(tmp_path / "nothing")
    folder_of(tmp_path, 2).write_text("precious")
    for step in (1, 2):
        with pytest.raises(CheckpointError, match=f"step-0000000{step}: a file of that name exists; move it"):
            write(tmp_path, small(step))
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    assert folder_of(tmp_path, 2).read_text() == "precious"


def test_a_users_files_with_names_of_half_written_folders_stay(tmp_path):
    write(tmp_path, small(2))
    there = ["step-00000002.old.partial", "step-00000002.partial", "step-00000003.doomed.partial"]
    for name in there:
        (tmp_path / name).write_text("precious")
    sweep(tmp_path)
    assert names(tmp_path) == ["step-00000002", *there]


def test_an_old_checkpoint_that_is_a_link_goes_and_what_it_leads_to_stays(tmp_path):
    elsewhere = write(tmp_path, small(1)).rename(tmp_path / "elsewhere")
    folder_of(tmp_path, 1).symlink_to(elsewhere)
    write(tmp_path, small(2))
    prune(tmp_path, {2})
    assert names(tmp_path) == ["elsewhere", "step-00000002"]
    assert (elsewhere / "manifest.json").exists()


# -- other formats and names -------------------------------------------------------------------------------------------


def test_a_folder_renamed_to_another_step_is_refused(tmp_path):
    write(tmp_path, small(1)).rename(folder_of(tmp_path, 7))
    with pytest.raises(CheckpointError, match="is of step 1; was the folder renamed"):
        read(folder_of(tmp_path, 7))


def test_the_newest_whole_checkpoint_is_taken_and_what_was_passed_over_is_said(tmp_path, caplog):
    for step in (2, 4, 6, 8):
        write(tmp_path, small(step))
    newest(tmp_path)
    assert not caplog.records
    (folder_of(tmp_path, 8) / "manifest.json").unlink()
    weights = folder_of(tmp_path, 6) / "machine.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, "onion"):
        assert same(newest(tmp_path), small(4))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "skipped a checkpoint" in caplog.messages[0]
    assert "step-00000008: manifest.json is missing or damaged" in caplog.messages[0]
    assert "step-00000006/machine.safetensors: damaged" in caplog.messages[1]


def test_a_checkpoint_that_may_not_be_read_is_passed_over(tmp_path, caplog, monkeypatch):
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # the folders around it are for their owner only
    folder = Path("out")
    umask = os.umask(0o022)
    write(folder, small(1))
    hidden = write(folder, small(2))
    os.umask(umask)
    hidden.chmod(0)
    root = os.geteuid() == 0
    if root:  # who may read everything
        os.seteuid(65534)
    try:
        assert newest(folder).step == 1
    finally:
        if root:
            os.seteuid(0)
        hidden.chmod(0o755)
    assert "step-00000002" in caplog.messages[0]


def test_if_no_checkpoint_is_whole_that_is_an_error(tmp_path):
    for step in (2, 4):
        (write(tmp_path, small(step)) / "state.json").unlink()
    with pytest.raises(CheckpointError, match=r"none of the 2 checkpoints in .* is valid"):
        newest(tmp_path)
    (tmp_path / "empty").mkdir()
    assert newest(tmp_path / "empty") is newest(tmp_path / "missing") is None


# -- what killed runs leave ------------------------------------------------------------------------------------------


def test_half_written_folders_are_no_checkpoints_and_are_swept_or_overwritten(tmp_path):
    write(tmp_path, small(2))
    for step in (1, 4):
        half = tmp_path / f"step-0000000{step}.partial"
        shutil.copytree(folder_of(tmp_path, 2), half)
        (half / "manifest.json").unlink()
    assert steps_in(tmp_path) == [2]
    assert newest(tmp_path).step == 2
    assert same(read(write(tmp_path, small(1))), small(1))
    sweep(tmp_path)
    assert names(tmp_path) == ["step-00000001", "step-00000002"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_kill_while_a_step_is_being_replaced_loses_nothing(replaced, tmp_path):
    """A replacement has two renames: the old one makes way, the new one takes its place. Was the second made?"""
    if not replaced:
        write(tmp_path, small(1, 2.5)).rename(tmp_path / "step-00000001.partial")
    write(tmp_path, small(1)).rename(tmp_path / "step-00000001.old.partial")
    if replaced:
        write(tmp_path, small(1, 2.5))
    sweep(tmp_path)
    assert names(tmp_path) == ["step-00000001"]
    assert same(newest(tmp_path), small(1, 2.5 if replaced else 0.5))


def test_a_kill_while_an_old_checkpoint_was_being_removed_does_not_bring_it_back(tmp_path):
    write(tmp_path, small(1)).rename(tmp_path / "step-00000001.doomed.partial")
    write(tmp_path, small(2))
    sweep(tmp_path)
    assert names(tmp_path) == ["step-00000002"]


def test_prune_removes_all_but_those_to_keep(tmp_path):
    for step in (1, 2, 3, 4):
        write(tmp_path, small(step))
    (tmp_path / "metrics.jsonl").write_text("row")
    prune(tmp_path, {2, 4, 77})
    assert names(tmp_path) == ["metrics.jsonl", "step-00000002", "step-00000004"]


class Stuck(Files):
    """A disk that renames nothing."""

    def rename(self, source, target):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_an_old_checkpoint_that_the_disk_does_not_let_go_of_stays_and_that_is_said(tmp_path, caplog):
    write(tmp_path, small(1))
    write(tmp_path, small(2))
    with through(Stuck()):
        prune(tmp_path, {2})
    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    assert caplog.messages == [f"cannot remove the old checkpoint {tmp_path / 'step-00000001'}: Input/output error"]


def test_what_was_about_to_be_replaced_and_cannot_be_put_back_is_told(tmp_path):
    (tmp_path / "step-00000001.old.partial").mkdir()
    told = r"cannot rename .* back to step-00000001: Input/output error"
    with through(Stuck()), pytest.raises(CheckpointError, match=told):
        sweep(tmp_path)


def test_a_copy_is_not_changed_by_what_comes_after(tmp_path):
    weight, array, listed = paddle.ones([2]), np.ones(2), [1, 2]
    taken = copied(Checkpoint(1, {"a": listed}, {"x": {"weight": weight, "array": array, "n": np.int64(3)}}))
    weight.set_value(paddle.zeros([2]))
    array[:], listed[:] = 0, []
    assert taken.run == {"a": [1, 2]}
    assert taken.items["x"]["weight"].tolist() == taken.items["x"]["array"].tolist() == [1, 1]
    assert taken.items["x"]["n"] == 3
    with pytest.raises(CheckpointError, match="has a value that JSON cannot hold"):
        copied(Checkpoint(1, {}, {"x": {"a": object()}}))


# -- a disk that refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing_call", range(1, 6))
def test_a_full_disk_at_any_moment_leaves_older_checkpoints_whole_and_nothing_half_written(
    failing_call, tmp_path, monkeypatch
):
    write(tmp_path, small(1))
    write(tmp_path, small(2))
    calls, fsync = [], os.fsync

    def refuse(descriptor):
        calls.append(descriptor)
        if len(calls) == failing_call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*step-00000002: No space left on device"):
        write(tmp_path, small(2, 2.5))
    monkeypatch.undo()

    assert names(tmp_path) == ["step-00000001", "step-00000002"]
    assert same(read(folder_of(tmp_path, 1)), small(1))
    # Once the new folder has its name only the sync of the folder around it can fail: then the new one is whole too.
    assert same(read(folder_of(tmp_path, 2)), small(2, 2.5) if failing_call == 5 else small(2))


TOO_LARGE = """
import resource, signal, sys, pathlib, numpy
from onion import CheckpointError
from onion.checkpointing import checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    checkpoint.write(pathlib.Path(sys.argv[1]), checkpoint.Checkpoint(2, {}, {"item": {"a": numpy.ones(5000)}}))
except CheckpointError as error:
    print(error)
"""


def test_a_file_that_may_not_grow_leaves_older_checkpoints_whole(tmp_path):
    write(tmp_path, small(1))
    run = subprocess.run([sys.executable, "-c", TOO_LARGE, tmp_path], capture_output=True, text=True, check=True)
    assert "step-00000002: File too large" in run.stdout
    assert names(tmp_path) == ["step-00000001"]
    assert same(newest(tmp_path), small(1))


def test_an_interrupt_while_writing_leaves_nothing_half_written_but_what_is_of_others(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    others = tmp_path / "step-00000002.partial"
    others.mkdir()
    (others / "state.json").write_text("half")
    (tmp_path / ".run.json.xyz.partial").write_text("half")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, small(1))
    assert names(tmp_path) == [".run.json.xyz.partial", "step-00000002.partial"]
    assert names(others) == ["state.json"]


def test_a_file_that_another_process_is_replacing_is_not_swept(tmp_path):
    half, left = tmp_path / ".run.json.xyz.partial", tmp_path / ".run.json.abc.partial"
    for path in (half, left):
        path.write_text("half")
    with locked(half):
        sweep(tmp_path)
    assert names(tmp_path) == [half.name]


def test_a_file_in_the_place_of_the_folder_is_an_error_that_says_so(tmp_path):
    place = tmp_path / "out"
    place.write_text("precious")
    with pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*out/step-00000001: File exists"):
        write(place, small())
    with pytest.raises(CheckpointError, match=r"cannot create the folder .*out: File exists; choose another"):
        checkpoint.make(place)
    with pytest.raises(CheckpointError, match="Not a directory"):
        write(place / "deeper", small())
    assert place.read_text() == "precious"
