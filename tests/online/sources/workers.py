"""Processes that are killed: one that puts samples in, and one that counts them, as a training would."""

import json
import math
import os
import sys
from pathlib import Path

from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter

LOT, BATCH, EVERY = 5, 7, 3
"""Samples written at once; read at once; reads between two checkpoints."""

CAPACITY = 60


def source_of(kind, place):
    if kind == "spool":
        return Spool(Path(place, "samples.db"), CAPACITY, retention=0)
    if kind == "redis":
        return RedisStream(place, "samples")
    return Folder(place, settle=0)


def write(kind, place, total):
    """Write the numbers from 0; tell each lot."""
    if kind == "spool":
        writer = SpoolWriter(Path(place, "samples.db"), "numbers", block=math.inf)
    else:
        writer = RedisWriter(place, "samples", "numbers", maxlen=CAPACITY, block=math.inf)
    for begin in range(int(writer.cursor or 0), total, LOT):
        writer.write([{"id": number} for number in range(begin, begin + LOT)], cursor=str(begin + LOT))
        print(begin, flush=True)


def write_files(folder, total):
    folder.mkdir(exist_ok=True)
    for begin in range(0, total, LOT):
        name = f"{begin:06}.jsonl"
        # In the order in which a file goes on, so that none is missed in between.
        if (folder / name).exists() or any(list((folder / each).glob(f"*-{name}")) for each in ("taken", "trained")):
            continue
        if begin < describe(folder.with_name("written")):
            continue
        partial = folder / f"{name}.partial"
        partial.write_text("".join(json.dumps({"id": number}) + "\n" for number in range(begin, begin + LOT)))
        partial.rename(folder / name)
        save(folder.with_name("written"), begin + LOT)
        print(begin, flush=True)


def read(kind, place, total, weights):
    """Count the numbers; tell each checkpoint, which has the place and the counts."""
    position, counts = describe(weights) or ("", {})
    before, reads = position, 0
    source = source_of(kind, place)
    source.position = position
    while sum(counts.values()) < total:
        for sample in source.read(BATCH, 0.2):
            key = str(sample.data["id"])
            counts[key] = counts.get(key, 0) + 1
        reads += 1
        if reads % EVERY == 0:
            save(weights, (source.position, counts))
            print(len(counts), flush=True)
            source.commit(before)
            before = source.position
    save(weights, (source.position, counts))
    assert source.read(1, 0) == []
    os.close(1)  # nothing more is told
    sys.stdin.readline()  # and who is to be killed is there, until nobody wants to kill it any more


def describe(path):
    return json.loads(path.read_text()) if path.exists() else 0


def save(path, what):
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(what))
    partial.replace(path)


if __name__ == "__main__":
    work, kind, place, total, *weights = sys.argv[1:]
    if work == "read":
        read(kind, place, int(total), Path(*weights))
    elif kind == "folder":
        write_files(Path(place), int(total))
    else:
        write(kind, place, int(total))
