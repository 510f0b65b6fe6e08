"""Make the model that comes with onion, from an encoder that ``onion pretrain`` has left.

    python -m scripts.embedded_model RUN/encoder --figures figures.json --held-out CORPUS

Writes ``models/embedded/wiki-zh``: weights of 16 bits, config, tokenizer, and the card with the figures. CORPUS is a
folder of ``onion corpus build`` with text that the encoder has not seen. Nothing is written if the folder would be
20 MB or more, or if 16 bits change the outputs by more than 0.02 or the loss of masked words by 0.01 nats or more. The
same encoder and figures give the same bytes.

Prints the table of figures, which docs/encoders.md has too. The keys of figures.json: scripts/embedded_model/card.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from onion.errors import OnionError, WeightsError
from onion.models.families import read_config
from onion.models.hub import EMBEDDED
from scripts.console import parser_of
from scripts.embedded_model.card import Figures, card
from scripts.embedded_model.comparison import Difference, compare
from scripts.embedded_model.halved import write_halved

NAME = "wiki-zh"
MAX_BYTES = 20_000_000
MAX_OUTPUTS, MAX_LOSS = 0.02, 0.01
"""By how much 16 bits may change values of the outputs, which are about 1, and the loss of masked words in nats."""


def make(encoder: Path, figures: Path, held_out: Path, target: Path) -> str:
    """Write the folder of the model, replaced as a whole; return its figures as Markdown.

    Raises:
        OnionError: something is not what it should be, or the model is too large or too different; the folder stays as
            it was.
    """
    told = Figures.read(figures)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
        folder = Path(work) / target.name
        folder.mkdir()
        write_halved(encoder, folder)
        difference = compare(encoder, folder, held_out)
        (folder / "README.md").write_text(card(target.name, read_config(folder), told, difference), encoding="utf-8")
        check(folder, difference)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    return told.table(target.name)


def check(folder: Path, difference: Difference) -> None:
    """Raise a WeightsError if a folder is too large, or too different from the encoder in 32 bits."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size >= MAX_BYTES:
        raise WeightsError(f"the model has {size:,} bytes, and should have less than {MAX_BYTES:,}")
    if difference.outputs > MAX_OUTPUTS or difference.loss >= MAX_LOSS:
        raise WeightsError(
            f"16 bits change outputs by {difference.outputs:.3g} and the loss of masked words by {difference.loss:.3g} "
            f"nats; {MAX_OUTPUTS} and {MAX_LOSS} are the limits"
        )


def main(arguments: list[str] | None = None) -> int:
    """Write the folder; return the exit status."""
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=EMBEDDED / NAME)
    given = parser.parse_args(arguments)
    try:
        print(make(given.encoder, given.figures, given.held_out, given.output))
    except OnionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
