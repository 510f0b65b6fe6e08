"""Encoders: small random ones, a reference's folders run by us and ours by a reference; and MiniLM's real weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from onion.models import hub
from onion.models.encoder import Encoder
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from onion.tasks.embedding.embedder import Embedder
from scripts.parity.common import Row, lines_of_data, own_lines, run_reference, worst

SEED = "20260"
EXPECTED = "expected.npz"
REFERENCES = {"transformers": "huggingface", "paddlenlp": "paddlenlp"}  # and the layout that each reads
ENCODER_ONLY = "-encoder"


def compare(folder: Path) -> Iterator[Row]:
    """All architectures against all references, in ``folder``."""
    for reference, layout in REFERENCES.items():
        theirs, ours = folder / reference, folder / f"{reference}-reads"
        run_reference(reference, "encoders", reference, theirs, SEED)
        for model in sorted(theirs.iterdir()):
            yield _read(model)
            _save(model / _some_layout(model), ours / model.name, layout)
        run_reference(reference, "read-back", reference, ours, SEED)
        for model in sorted(ours.iterdir()):
            yield _read_back(model, theirs / model.name, layout)


def _read(model: Path) -> Row:
    """Our outputs of a reference's folders, against the reference's."""
    common, found, against = dict(np.load(model / EXPECTED)), [], ""
    layouts = sorted(path.name for path in model.iterdir() if path.is_dir())
    for layout in layouts:
        own = model / layout / EXPECTED
        expected = dict(np.load(own)) if own.is_file() else common
        found.append(differences(_loaded(model / layout), expected))
        against = str(expected["maker"])
    outputs, gradients = (worst(column) for column in zip(*found, strict=True))
    return Row(model.name, against, ", ".join(layouts), outputs, gradients)


def _save(source: Path, target: Path, layout: str) -> None:
    """Save a model with its heads, and its encoder alone, as we write them for a reference."""
    _loaded(source).save_pretrained(target / layout, layout=layout)
    Encoder.from_pretrained(source).save_pretrained(target / f"{layout}{ENCODER_ONLY}", layout=layout)


def _read_back(saved: Path, source: Path, layout: str) -> Row:
    """A reference's outputs of what we saved, against ours of the original."""
    network = _loaded(source / _some_layout(source))
    expected = dict(np.load(saved / layout / EXPECTED))
    outputs, gradients = differences(network, expected)
    # The gradients go through heads that the reference has made new, at random; the outputs do not.
    alone, _ = differences(network.encoder, dict(np.load(saved / f"{layout}{ENCODER_ONLY}" / EXPECTED)))
    layouts = f"{layout}, with heads and without"
    return Row(f"{saved.name}, saved by us", str(expected["maker"]), layouts, worst([outputs, alone]), gradients)


def _loaded(folder: Path) -> EncoderForPretraining:
    network = EncoderForPretraining.from_pretrained(folder)
    network.eval()
    return network


def _some_layout(model: Path) -> str:
    """The first layout of a model whose outputs are those of ``expected.npz`` above it."""
    return min(path.name for path in model.iterdir() if path.is_dir() and not (path / EXPECTED).is_file())


OF_ENCODER = ("sequence_output", "pooled_output")
OF_HEADS = ("words", "next_sentence")


def differences(network: Any, expected: Mapping[str, np.ndarray]) -> tuple[float, float]:
    """The largest differences to what a reference computed: of the outputs, and of the gradients.

    What only one of the two has makes the difference infinite; of an encoder without heads only its own two outputs are
    asked for.

    Args:
        network: ours, an encoder with heads or without; its gradients are overwritten.
        expected: batch, outputs, ``factor:OUTPUT`` and ``gradient:PARAMETER``, under our names.
    """
    network.clear_gradients()
    outputs = outputs_of(network, expected)
    asked = OF_ENCODER if isinstance(network, PretrainedEncoder) else OF_ENCODER + OF_HEADS
    wanted = {name: expected[name] for name in asked if name in expected}
    if "sequence_output" in wanted:  # ours is zero where there is padding
        wanted["sequence_output"] = wanted["sequence_output"] * expected["attention_mask"][:, :, None]
    arrays = {name: out.numpy() for name, out in outputs.items()}
    of_outputs = worst(difference(arrays.get(name), wanted.get(name)) for name in arrays | wanted)

    common = outputs.keys() & wanted.keys()
    sum((outputs[name] * paddle.to_tensor(expected[f"factor:{name}"])).sum() for name in sorted(common)).backward()
    found = gradients(network)
    theirs = {key.removeprefix("gradient:"): array for key, array in expected.items() if key.startswith("gradient:")}
    return of_outputs, worst(relative(found.get(name), theirs.get(name)) for name in found | theirs)


def difference(found: np.ndarray | None, expected: np.ndarray | None) -> float:
    """The largest difference of two arrays; infinite where one is missing or they differ in shape."""
    if found is None or expected is None or found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max())


def relative(found: np.ndarray | None, expected: np.ndarray | None) -> float:
    """The same, relative to the largest expected element where that exceeds 1."""
    scale = 1.0 if expected is None else max(float(np.abs(expected).max()), 1.0)
    return difference(found, expected) / scale


def gradients(network: Any) -> dict[str, np.ndarray]:
    """By name, without the model's name before the encoder's; what took no part in the loss is missing."""
    config = (network if isinstance(network, PretrainedEncoder) else network.encoder).config
    return {
        name.removeprefix(f"{config.model_type}."): parameter.grad.numpy()
        for name, parameter in network.named_parameters()
        if parameter.grad is not None
    }


def outputs_of(network: Any, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The outputs of an encoder with heads or without, by name."""
    ids = [batch["input_ids"], batch["token_type_ids"], None, batch["attention_mask"], batch.get("task_type_ids")]
    if isinstance(network, PretrainedEncoder):
        return dict(zip(OF_ENCODER, network(*ids), strict=True))
    scores = network(*ids, masked_positions=batch["masked_positions"])
    found = dict(zip((*OF_ENCODER, *OF_HEADS), (*scores.encoded, scores.words, scores.next_sentence), strict=True))
    return {name: out for name, out in found.items() if out is not None}


LONGEST = 300  # characters: fewer than the 512 tokens that the weights reach
MAX_LENGTH = 512


def compare_minilm(folder: Path) -> Iterator[Row]:
    """MiniLM against transformers and sentence-transformers; fetched if it is not here."""
    model = hub.fetch("minilm")
    texts = [text[:LONGEST] for text in own_lines()[::3] + lines_of_data("en", 24)]
    asked = folder / "texts.json"
    asked.write_text(json.dumps(texts), encoding="utf-8")
    run_reference("transformers", "minilm", model, asked, folder / "minilm.npz")
    yield _tokens(model, texts, dict(np.load(folder / "minilm.npz")))
    run_reference("transformers", "sentences", model, asked, folder / "sentences.npz")
    yield _sentences(model, texts, dict(np.load(folder / "sentences.npz")))


def _tokens(model: Path, texts: list[str], expected: dict[str, np.ndarray]) -> Row:
    """Every token's vector, the pooled ones, and the gradient of every weight."""
    network = Encoder.from_pretrained(model)
    network.eval()
    ours = [encoding.ids.tolist() for encoding in Tokenizer.from_pretrained(model)(texts, max_length=MAX_LENGTH)]
    masks = expected["attention_mask"].astype(bool)
    theirs = [row[mask].tolist() for row, mask in zip(expected["input_ids"], masks, strict=True)]
    outputs, gradients = differences(network, expected)
    outputs = outputs if ours == theirs else float("inf")
    return Row(f"minilm, {masks.sum()} tokens", str(expected["maker"]), "huggingface", outputs, gradients)


def _sentences(model: Path, texts: list[str], expected: dict[str, np.ndarray]) -> Row:
    """Mean-pooled vectors, as they are and divided by their length."""
    found = []
    for name, normalize in (("means", False), ("normalized", True)):
        embedder = Embedder.from_pretrained(model, "mean", normalize=normalize, max_length=MAX_LENGTH)
        found.append(difference(embedder(texts), expected[name]))
    what = f"minilm, mean of {len(texts)} texts"
    return Row(what, str(expected["maker"]), "huggingface", worst(found))
