"""Words of a model in the comments of host code: names of nodes may hold anything."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """Letters, digits and a few signs, which end no comment and no string in C, Python, Tcl, YAML or Make."""
    return re.sub(r"[^A-Za-z0-9_.,:()+= /-]|/(?=/)|\*/", "_", text)[:200]
