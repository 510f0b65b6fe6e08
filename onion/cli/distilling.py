"""``onion distill``."""

from __future__ import annotations

import argparse

from onion.cli.commands import ended, start_paddle
from onion.tasks.finetune.declared import declared_in
from onion.tasks.students.settings import DistillSettings


def distill(options: argparse.Namespace) -> int:
    """Train a student of a trained model; print the onion, and at the end one line of JSON."""
    settings = DistillSettings.of(
        {name: value for name, value in vars(options).items() if name in declared_in(DistillSettings)}
    )
    start_paddle(options.threads)
    from onion.tasks.students.distill import train

    return ended(train(settings, options.output, options.force_resume, options.quiet))
