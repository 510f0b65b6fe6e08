"""``onion compress``."""

from __future__ import annotations

import argparse

from onion.cli.commands import ended, start_paddle
from onion.tasks.compression.settings import CompressSettings
from onion.tasks.finetune.declared import declared_in


def compress(options: argparse.Namespace) -> int:
    """Train a smaller model of a trained one; print the onion, and at the end one line of JSON."""
    settings = CompressSettings.of(
        {name: value for name, value in vars(options).items() if name in declared_in(CompressSettings)}
    )
    start_paddle(options.threads)
    from onion.tasks.compression.compress import train

    exporting = {name: getattr(options, name) for name in ("int8", "calibrate", "vocab")}
    wanted = exporting if any(exporting.values()) else None
    return ended(train(settings, options.output, options.force_resume, options.quiet, wanted))
