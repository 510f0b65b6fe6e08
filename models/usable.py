"""Whether a folder holds an encoder that can be used: config, weights that fit it, tokenizer. Without Paddle."""

from __future__ import annotations

from pathlib import Path

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.tokenization.loading import SETTINGS_FILE, find, read_settings, special_parts
from onion.models.weights import read_weights


def check_usable(folder: Path) -> None:
    """Read all that is needed to load an encoder and its tokenizer; every array is in memory for that.

    Raises:
        WeightsError: something is missing, damaged, or does not fit; the message names the file.
    """
    read_weights(folder).check(EncoderConfig.read(folder))
    settings = read_settings(folder / SETTINGS_FILE)
    path, load = find(folder, settings, None)
    backend, preparation = load()
    try:
        special_parts(backend, {**settings, **(preparation.settings if preparation else {})})
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error
