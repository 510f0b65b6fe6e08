"""Docstrings for the site's pages: an extension of griffe, which mkdocstrings reads them with."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):(?=`)")


class PlainRoles(griffe.Extension):
    """Leave roles of reStructuredText out, as in a class written by its name: Markdown has none."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object, if it has one."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub("", obj.docstring.value)
