"""``label_map.json``: the labels and their numbers, as PaddlePALM and ERNIE have them."""

from __future__ import annotations

from pathlib import Path

from onion.errors import DataError
from onion.messages import shown
from onion.tasks.data.labels import Labels
from onion.tasks.question_answering.json_value import read_json

LABEL_MAP = "label_map.json"


def read_label_map(path: Path) -> Labels:
    """Read ``{label: number}``; the numbers are 0, 1, 2, ... in any order.

    Raises:
        DataError: the file cannot be read or is something else.
    """
    numbers = read_json(path).value
    if not isinstance(numbers, dict) or not numbers or any(type(number) is not int for number in numbers.values()):
        raise DataError(f'{path}: not of the form {{"O": 0, "B-PER": 1}}; write a number for each label')
    names = sorted(numbers, key=numbers.__getitem__)
    wrong = [(name, place) for place, name in enumerate(names) if numbers[name] != place]
    if wrong:
        name, place = wrong[0]
        raise DataError(
            f"{path}: no label has the number {place}, and {shown(name)} has {numbers[name]}; "
            f"number the {len(names)} labels from 0 to {len(names) - 1}, each number once"
        )
    return Labels(names)
