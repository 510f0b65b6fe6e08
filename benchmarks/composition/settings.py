"""The lines of the page that tell settings: all that a report has besides figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.composition.compared import Example

NOT_SETTINGS = {"example", "variant", "role", "seed", "seconds", "examples_per_second"}

Settings = dict[str, str]


def settings_lines(example: Example, reports: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Tell what all runs have in common, then what is a variant's own.

    Args:
        example: that was run.
        reports: variant -> its reports, one a seed.
    """
    told = {variant: [_settings_of(example, report) for report in side] for variant, side in reports.items()}
    common = _common([settings for side in told.values() for settings in side])
    if common:
        yield f"Settings: {_joined([common])}."
    for variant, side in told.items():
        own = [{name: value for name, value in settings.items() if name not in common} for settings in side]
        if any(own):
            yield f"- {variant}: {_joined(own)}"


def _settings_of(example: Example, report: Mapping[str, Any]) -> Settings:
    left_out = NOT_SETTINGS | {figure.name for figure in example.figures}
    return {name.replace("_", " "): _text(value) for name, value in report.items() if name not in left_out}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _common(runs: Sequence[Settings]) -> Settings:
    """Return what is the same in all runs."""
    first, *others = runs or [{}]
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


def _joined(runs: Sequence[Settings]) -> str:
    """Tell the settings of some runs; where they differ, all that there were."""
    names = dict.fromkeys(name for settings in runs for name in settings)
    values = {name: dict.fromkeys(settings[name] for settings in runs if name in settings) for name in names}
    return "; ".join(f"{name} {' or '.join(values[name])}" for name in names)
