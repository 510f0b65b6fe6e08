"""The tools that a Tracker writes to, and what each has of a run, read back from the disk."""

import atexit
import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import attrs

from onion import MLflowWriter, Runner, TensorBoardWriter, Tracker, VisualDLWriter, WandbWriter
from onion.testing import Batches

HISTOGRAM, PICTURE = "histogram", "picture"


@attrs.frozen
class Found:
    """What a tool has.

    Attributes:
        points: [(step, name, value)], in order; the value of a histogram is how many numbers are in it, that of a
            picture its height and width.
        settings: the text of the settings.
    """

    points: list
    settings: str


# -- TensorBoard -------------------------------------------------------------------------------------------------------


def framed(content):
    """The records of a file of TensorFlow's: length, its checksum, content, its checksum."""
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        yield content[12 : 12 + length]
        content = content[16 + length :]


def in_tensorboard(folder):
    """What TensorBoard shows of a folder: a start of a session hides earlier points of its step and later ones."""
    from tensorboardX.proto.event_pb2 import Event

    points, settings = [], ""
    for path in sorted((folder / "tensorboard").iterdir()):
        for record in framed(path.read_bytes()):
            event = Event.FromString(record)
            if event.session_log.status == event.session_log.START:
                points = [point for point in points if point[0] < event.step]
            for value in event.summary.value:
                if value.HasField("tensor"):
                    settings = value.tensor.string_val[0].decode()
                else:
                    points.append((event.step, value.tag, tensorboard_value(value)))
    return Found(points, settings)


def tensorboard_value(value):
    if value.HasField("histo"):
        assert sum(value.histo.bucket) == value.histo.num
        return HISTOGRAM, value.histo.num
    return (PICTURE, value.image.height, value.image.width) if value.HasField("image") else value.simple_value


# -- VisualDL ----------------------------------------------------------------------------------------------------------


def in_visualdl(folder):
    from PIL.Image import open as opened
    from visualdl import LogReader

    (path,) = (folder / "visualdl").iterdir()
    reader = LogReader(file_path=str(path))
    tags = reader.get_tags()
    points = [(one.id, tag, one.value) for tag in tags.get("scalar", ()) for one in reader.get_data("scalar", tag)]
    for tag in tags.get("histogram", ()):
        points += [(one.id, tag, (HISTOGRAM, sum(one.histogram.hist))) for one in reader.get_data("histogram", tag)]
    for tag in tags.get("image", ()):
        for one in reader.get_data("image", tag):
            (folder / "picture.png").write_bytes(one.image.encoded_image_string)
            with opened(folder / "picture.png") as picture:
                points.append((one.id, tag, (PICTURE, picture.height, picture.width)))
    settings = [one.text.encoded_text_string for tag in tags.get("text", ()) for one in reader.get_data("text", tag)]
    return Found(points, "".join(settings))


# -- W&B ---------------------------------------------------------------------------------------------------------------

BLOCK, HEADER = 32768, struct.Struct("<IHB")
"""Of LevelDB's log format, which W&B's files have behind 7 bytes of its own."""


def journaled(content):
    at, record = 7, b""
    while at < len(content):
        if BLOCK - at % BLOCK < HEADER.size:
            at += BLOCK - at % BLOCK
        _, length, kind = HEADER.unpack_from(content, at)
        record += content[at + HEADER.size : at + HEADER.size + length]
        at += HEADER.size + length
        if kind in (1, 4):  # all of a record, or the last of its parts
            yield record
            record = b""


def wandb_writer(folder):
    """Write where no other process does; W&B tells the folders of a run apart by the second."""
    place = folder / f"process-{len(list(folder.glob('process-*')))}"
    place.mkdir()
    return WandbWriter(dir=str(place))


def in_wandb(folder):
    """What the folders of a run have, one after the other."""
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    wandb.teardown()  # its process may still write
    points, settings, runs = [], {}, set()
    for path in sorted(folder.glob("process-*/wandb/offline-run-*/*.wandb")):
        records = [Record.FromString(each) for each in journaled(path.read_bytes())]
        runs |= {record.run.run_id for record in records if record.HasField("run")}
        for record in records:
            settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            points += wandb_points(record.history.item)
    assert len(runs) == 1
    settings.pop("_wandb", None)
    return Found(points, json.dumps(settings))


def wandb_points(items):
    row = {}
    for item in items:
        *outer, name = item.nested_key or [item.key]
        (row.setdefault(outer[0], {}) if outer else row)[name] = json.loads(item.value_json)
    return [(row["_step"], name, wandb_value(value)) for name, value in row.items() if not name.startswith("_")]


def wandb_value(value):
    if not isinstance(value, dict):
        return value
    if value["_type"] == "histogram":
        return HISTOGRAM, sum(value["values"])
    return PICTURE, value["height"], value["width"]


# -- MLflow ------------------------------------------------------------------------------------------------------------


def in_mlflow(folder):
    import mlflow
    from PIL.Image import open as opened

    client = mlflow.MlflowClient(f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}")
    (experiment,) = [each for each in client.search_experiments() if each.name == "onion"]
    (run,) = client.search_runs([experiment.experiment_id])
    points = [
        (one.step, name, one.value)
        for name in run.data.metrics
        for one in client.get_metric_history(run.info.run_id, name)
    ]
    for path in sorted((folder / "mlflow" / "artifacts").glob("*/artifacts/images/**/*.png")):
        with opened(path) as picture:
            points.append((int(path.stem), path.parent.name, (PICTURE, picture.height, picture.width)))
    return Found(points, json.dumps(run.data.params))


@cache
def mlflow_tables():
    """Return a database of MLflow that has its tables, which take seconds to make, and no run."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    runner = Runner(Tracker(MLflowWriter(folder, experiment="another")), Batches(0))
    runner.run(passes=1)
    return folder / "mlflow.db"


def mlflow_writer(folder):
    target = folder / "mlflow" / "mlflow.db"
    if not target.exists():
        target.parent.mkdir(parents=True)
        shutil.copy(mlflow_tables(), target)
    return MLflowWriter(folder / "mlflow")


@attrs.frozen
class Tool:
    """A tool.

    Attributes:
        writer: makes a writer for a folder.
        found: reads back what was written there.
        histograms: whether it has them.
        repeats: whether points after a checkpoint stand there twice after a kill.
    """

    writer: Callable
    found: Callable
    histograms: bool = True
    repeats: bool = False


TOOLS = {
    "tensorboard": Tool(lambda folder: TensorBoardWriter(folder / "tensorboard"), in_tensorboard),
    "visualdl": Tool(lambda folder: VisualDLWriter(folder / "visualdl"), in_visualdl),
    "wandb": Tool(wandb_writer, in_wandb, repeats=True),
    "mlflow": Tool(mlflow_writer, in_mlflow, histograms=False),
}
