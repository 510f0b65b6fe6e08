"""Write the lowest version that setup.cfg admits of every dependency, extras included, as pip's requirements.

    python -m scripts.min_deps                      the lowest of all
    python -m scripts.min_deps paddlepaddle==3.0    the same, but this one as it is given

What has no lower bound is refused: there is no lowest version of it to try. Source of the form: PEP 508, PEP 440.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from pathlib import Path

SETTINGS = Path(__file__).parents[1] / "setup.cfg"
LEFT_OUT = ("docs", "release", "gpu")  # no test needs the first two; the last overwrites files of another one
BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def lowest(settings: str, instead: Sequence[str] = ()) -> list[str]:
    """Return ``name==version`` of each dependency in a setup.cfg, sorted; ``instead`` replaces some of them.

    Raises:
        SystemExit: a dependency has no lower bound, or two that differ; or one of ``instead`` is no dependency.
    """
    pins: dict[str, str] = {}
    for line in _dependencies(settings):
        found = BOUND.fullmatch(line)
        if found is None:
            raise SystemExit(f"setup.cfg: {line!r} is not name>=version; tell the lowest version that was tried")
        if pins.setdefault(found["name"], found["version"]) != found["version"]:
            raise SystemExit(f"setup.cfg: {found['name']} has two lower bounds; give it one")
    for pin in instead:
        name, _, version = pin.partition("==")
        if name not in pins:
            raise SystemExit(f"{pin}: setup.cfg does not depend on it")
        pins[name] = version
    return [f"{name}=={version}" for name, version in sorted(pins.items())]


def _dependencies(settings: str) -> Iterator[str]:
    """All that is required, by onion itself and by its extras."""
    parser = ConfigParser()
    parser.read_string(settings)
    yield from parser["options"]["install_requires"].split("\n")[1:]
    for extra, names in parser["options.extras_require"].items():
        if extra not in LEFT_OUT:
            yield from names.split("\n")[1:]


if __name__ == "__main__":
    print("\n".join(lowest(SETTINGS.read_text(encoding="utf-8"), sys.argv[1:])))
