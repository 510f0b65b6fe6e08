"""The encoders that both sides begin with, as folders that both read."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

ERNIE = "ernie-4x256"
"""ERNIE 1.0's vocabulary and shape, but four layers, 256 wide; random weights, the same every time."""

VOCABULARY = Path("vocab", "ernie-1.0-zh")
SEED = 1


def folder_of(name: str, data: Path, made: Path) -> Path:
    """Return the folder of an encoder, which is fetched or made if need be.

    Args:
        name: ``"ernie-4x256"``, or one of ``onion.models.hub``.
        data: has the vocabulary.
        made: where a made one goes.

    Raises:
        WeightsError: it can be neither fetched nor made; the message says why.
    """
    if name == ERNIE:
        return _ernie(data / VOCABULARY, made / name)
    from onion.models import hub

    return hub.resolve(name)


def _ernie(vocabulary: Path, folder: Path) -> Path:
    if folder.is_dir():
        return folder
    from onion.device import paddle
    from onion.models.config import EncoderConfig
    from onion.models.encoder import Encoder
    from onion.models.tokenizer import Tokenizer

    config = EncoderConfig(
        vocab_size=18000,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=513,
        hidden_act="relu",
    )
    tokenizer = Tokenizer.from_pretrained(vocabulary)
    paddle().seed(SEED)
    encoder = Encoder(config)
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        tokenizer.save_pretrained(building)
        encoder.save_pretrained(building, layout="huggingface")
        building.rename(folder)  # whole, or not there
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder
