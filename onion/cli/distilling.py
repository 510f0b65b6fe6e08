"""``onion distill``."""

from __future__ import annotations

import argparse
import sys

from onion.cli.commands import start_paddle
from onion.tasks.finetune.declared import declared_in
from onion.tasks.students.settings import DistillSettings
from onion.text_formats import json_text


def distill(options: argparse.Namespace) -> int:
    """Train a student of a trained model; print the onion, and at the end one line of JSON."""
    settings = DistillSettings.of(
        {name: value for name, value in vars(options).items() if name in declared_in(DistillSettings)}
    )
    start_paddle(options.threads)
    from onion.tasks.students.distill import train

    trained = train(settings, options.output, options.force_resume, options.quiet)
    print(json_text(trained.report))
    if trained.signal is None:
        return 0
    print(f"onion: stopped at step {trained.report['step']}; the same command resumes it", file=sys.stderr)
    return 128 + int(trained.signal)
