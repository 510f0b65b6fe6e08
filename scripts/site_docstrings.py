"""Docstrings for the site's pages: an extension of griffe, which mkdocstrings reads them with."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):(?=`)")
TOGETHER = re.compile(r"^( +)(\w+(?:, \w+)+):( \S.*)$", re.MULTILINE)


class ForMarkdown(griffe.Extension):
    """Leave roles of reStructuredText out, and give each of several parameters in one line a line of its own."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object, if it has one."""
        if obj.docstring:
            obj.docstring.value = TOGETHER.sub(_apart, ROLE.sub("", obj.docstring.value))


def _apart(line: re.Match[str]) -> str:
    indentation, names, text = line.groups()
    return "\n".join(f"{indentation}{name}:{text}" for name in names.split(", "))
