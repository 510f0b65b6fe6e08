"""The job behind ``onion export``: the best model of a run, written for other places and compared with the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion import Runner, RunnerItem, State, __version__
from onion.checkpointing.new_folder import check_new, new_folder
from onion.errors import DataError
from onion.models.formats.safetensors_file import write_safetensors
from onion.models.pretrained_encoder import arrays_of
from onion.tasks.data.features.examples import Examples
from onion.tasks.export.answers_file import write_answers
from onion.tasks.export.comparison import answers, compare
from onion.tasks.export.exported_network import inputs_of
from onion.tasks.export.graph import graph_of_task
from onion.tasks.export.manifest import Manifest, refuse_exported, sums_of
from onion.tasks.export.names import DECODER, HUGGINGFACE, ONNX
from onion.tasks.export.samples import row_lines, sample_lines
from onion.tasks.export.vocabulary import with_vocabulary_of
from onion.tasks.export.writing import AT_ONCE, check_choices, write_onnx
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import in_order
from onion.tasks.finetune.run_folder import find_run, trained_columns
from onion.tasks.publishing.model_folder import write_model, write_record


def export(
    run: str | Path,
    output: str | Path,
    format: str = ONNX,
    *,
    int8: str | None = None,
    calibrate: str | Path | None = None,
    texts: str | Path | None = None,
    vocab: str | Path | None = None,
    task_name: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the best model of a run to a new folder; return its manifest.

    The folder has the model; tokenizer, config and task, as a run has them; ``answers.jsonl``, rows and what the run
    itself answered (with 8 bits the model's own answers too); and ``export.json``, the manifest, with the checksums of
    all files. Before it is written, the model predicts these rows; it is refused if its logits differ from the run's by
    more than 1e-5 (of logits above 1, relative to them). With 8 bits the differences are in the manifest instead.

    Args:
        run: folder of ``onion train``, or ``OWNER/NAME[@REVISION]`` of a model from ``onion push``.
        output: a new or empty folder; it has all files, or does not exist after an error.
        format: ``onnx``, ``paddle`` (a program) or ``huggingface`` (the layout of transformers).
        int8: ``dynamic`` or ``static``: weights of 8 bits in an ONNX model. Default: 32.
        calibrate: for ``static``, a file of rows: a table with the columns of the training, such as a part of its file,
            or lines as ``onion predict`` reads them from standard input.
        texts: a file of such rows, on which the model is compared with the run. Default: rows of random words.
        vocab: a file of texts whose tokens the model keeps (``vocabulary.py``), in lines of any kind; not with
            ``texts``, nor in transformers' layout. Default: it keeps all.
        task_name: which task of a run of several.
        settings: of the task, instead of those that it was trained with; see ``Task.adjusted``.

    Raises:
        DataError: an argument is wrong, or the task cannot be exported.
        CheckpointError: the folder has no run, or no complete checkpoint.
        WeightsError: the model differs from the run, or cannot be written.
        OnionError: a package is not installed.
    """
    check_arguments(format, int8=int8, calibrate=calibrate, texts=texts, vocab=vocab)
    output = Path(output)
    check_new(output)
    folder = find_run(run)
    refuse_exported(folder, "export the run")
    predictor = Predictor.load(folder, settings, task_name)
    columns = trained_columns(folder, task_name)
    made = predictor if vocab is None else with_vocabulary_of(predictor, Path(vocab))
    lines = (
        sample_lines(predictor.task, made.tokenizer) if texts is None else row_lines(made.task, Path(texts), columns)
    )
    calibration = None if calibrate is None else row_lines(made.task, Path(calibrate), columns)
    with new_folder(output) as target:
        if format == HUGGINGFACE:
            write_model(folder, target, output.name, task_name, task=made.task)
        else:
            config = made.network.encoder.config
            write_record(folder, target, made.task, task_name, made.tokenizer, config)
            _write_decoder(target, made)
            graph = graph_of_task(made.task, config)
            if format == ONNX:
                batches = None if calibration is None else _batches(made, calibration)
                write_onnx(target, graph, arrays_of(made.network), int8, batches)
            else:
                from onion.tasks.export.paddle_program import write_program

                write_program(target, graph, made.network, made.network.encoder)
        of_run = answers(predictor, lines)
        write_answers(target, lines, of_run)
        manifest = Manifest(format, predictor.task.name, __version__, int8, {}, sums_of(target))
        manifest.write(target)
        exported = Predictor.load(target)
        compared = compare(predictor, exported, lines)
        compared.check(exact=int8 is None)
        if int8 is not None:
            write_answers(target, lines, of_run, [answers(exported, [line])[0] for line in lines])
            manifest = attrs.evolve(manifest, files=sums_of(target))
        manifest = attrs.evolve(manifest, compared=compared.told(int8))
        manifest.write(target)
    return attrs.asdict(manifest)


def check_arguments(
    format: str = ONNX,
    *,
    int8: str | None = None,
    calibrate: str | Path | None = None,
    texts: str | Path | None = None,
    vocab: str | Path | None = None,
) -> None:
    """Refuse arguments of :func:`export` that do not go together, before anything is made.

    Raises:
        DataError: one is unknown, contradicts another one, or is a file that is not there.
    """
    check_choices(format, int8, calibrate)
    if vocab is not None and format == HUGGINGFACE:
        raise DataError(f"vocab is for the formats onnx and paddle, not for {format}")
    if vocab is not None and texts is not None:
        raise DataError("with vocab the model is compared on words that it has kept; leave out texts")
    for name, path in {"calibrate": calibrate, "texts": texts, "vocab": vocab}.items():
        if path is not None and not Path(path).is_file():
            raise DataError(f"{name}: there is no file {path}")


def _write_decoder(target: Path, predictor: Predictor) -> None:
    """Write the parameters of the network that decoding needs, if there are any."""
    needed = predictor.task.decoding_weights
    arrays = arrays_of(predictor.network)
    if needed:
        write_safetensors(target / DECODER, {path: arrays[path] for path in needed}, {})


class _Inputs(RunnerItem):
    """Keep the inputs of an exported model for each batch, and compute nothing."""

    def __init__(self) -> None:
        self.found: list[dict[str, np.ndarray]] = []

    def on_batch(self, state: State) -> None:
        """Keep those of the batch."""
        given = inputs_of(state.batch)
        if all(array.size for array in given.values()):  # there may be no masked token, and so no range of anything
            self.found.append(given)
        state.outputs = []


def _batches(predictor: Predictor, lines: Sequence[str]) -> list[dict[str, np.ndarray]]:
    """Return the inputs of an exported model for rows; of a masked LM whose rows have no mask, with random masks.

    Raises:
        DataError: nothing in the rows is predicted.
    """
    task, tokenizer = predictor.task, predictor.tokenizer
    examples = Examples.of(task.features(list(task.line_rows(lines)), tokenizer, False, Counter()))
    for items in (task.predict_items(tokenizer), task.eval_items(tokenizer, seed=0)):
        inputs = _Inputs()
        Runner(in_order(task, examples, tokenizer.pad_id, AT_ONCE), *items, inputs).run(passes=1)
        if inputs.found:
            return inputs.found
    raise DataError("calibrate: no row has anything to predict, so there are no ranges to measure; give other rows")
