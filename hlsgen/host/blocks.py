"""Functions of host code, taken from a file of the package as they are needed."""

from __future__ import annotations

import re
from functools import lru_cache

from hlsgen.library import render


@lru_cache(maxsize=4)
def _blocks(template: str, pattern: str) -> dict[str, str]:
    """Name of the function that a block defines -> the block. Blocks stand between empty lines, in the order of use."""
    found = {}
    for block in re.split(r"\n{2,}", render(template).strip("\n")):
        name = re.search(pattern, block, re.MULTILINE)
        if name:
            found[name[1]] = block.strip("\n")
    return found


def c_functions(text: str) -> list[str]:
    """The functions of host/helpers.c that a text in C calls, and those that they call, in the order of the file."""
    return _needed(_blocks("host/helpers.c.j2", r"^static [^\n;]*?\b(hg_\w+)\("), text)


def python_functions(text: str) -> list[str]:
    """The functions of host/helpers.py that a text in Python calls, and those that they call, in the order of the file."""
    return _needed(_blocks("host/helpers.py", r"^def (_\w+)\("), text)


def _needed(blocks: dict[str, str], text: str) -> list[str]:
    open_, found = [text], set[str]()
    while open_:
        for name in sorted(set(re.findall(r"\b(?:hg)?_\w+\b", open_.pop())) & set(blocks) - found):
            found.add(name)
            open_.append(blocks[name])
    return [block for name, block in blocks.items() if name in found]
