"""The page that is pasted into an issue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from on_gpu.parts import Outcome

LAST = 40
"""Lines that are told of a part that failed."""
FIGURES = 12
"""Lines that are told of one that passed, which has its figures or counts in them."""


def page(machine: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    """Return the report, in Markdown."""
    bad = [outcome.name for outcome in outcomes if outcome.failed]
    head = f"{len(bad)} of {len(outcomes)} parts failed: {', '.join(bad)}" if bad else "no part failed"
    lines = [f"# onion on {machine.get('GPU', 'a GPU').partition(',')[0]}: {head}", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {_cell(value)} |" for name, value in machine.items()]
    lines += ["", "| part | what it shows | outcome | seconds |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {each.name} | {_cell(each.title)} | {_cell(each.verdict)} | {each.seconds:.0f} |" for each in outcomes
    ]
    for each in outcomes:
        lines += ["", f"## {each.name}: {each.verdict}", "", *_fenced(each)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _fenced(outcome: Outcome) -> list[str]:
    """The last lines, in a fence that they cannot close."""
    last = outcome.output.rstrip().splitlines()[-(LAST if outcome.failed else FIGURES) :]
    fence = "```"
    while any(fence in line for line in last):
        fence += "`"
    return [fence, *last, fence]
