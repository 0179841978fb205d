"""Makes names from a model safe in comments of host code: node names may hold any character."""

from __future__ import annotations

import re

from hlsgen.ir import HostOp, Op


def plain(text: str) -> str:
    """The text with letters, digits and a few signs; others become "_". It ends no comment or string of a generated
    file.

    The files are in C, Python, Tcl, YAML or Make.
    """
    return re.sub(r"[^A-Za-z0-9_.,:()+= /-]|/(?=/)|\*/", "_", text)[:200]


def op_name(op: Op) -> str:
    """The name of an operation in comments."""
    return plain(op.op_type) if isinstance(op, HostOp) else type(op).__name__
