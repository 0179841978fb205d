"""Selects the helper functions that generated host code calls."""

from __future__ import annotations

import re
from functools import lru_cache

from hlsgen.library import render


@lru_cache(maxsize=4)
def _blocks(template: str, pattern: str) -> dict[str, str]:
    """The blocks of a template by the name of the function that each defines.

    Empty lines separate blocks. A function comes after the functions that it calls.
    """
    block_by_name = {}
    for block in re.split(r"\n{2,}", render(template).strip("\n")):
        name = re.search(pattern, block, re.MULTILINE)
        if name:
            block_by_name[name[1]] = block.strip("\n")
    return block_by_name


def c_functions(text: str) -> list[str]:
    """The functions of host/helpers.c.j2 that this C code calls, directly or indirectly, in the order of the file."""
    return _needed(_blocks("host/helpers.c.j2", r"^static [^\n;]*?\b(hg_\w+)\("), text)


def python_functions(text: str) -> list[str]:
    """The functions of host/helpers.py that this Python code calls, directly or indirectly, in the order of the
    file."""
    return _needed(_blocks("host/helpers.py", r"^def (_\w+)\("), text)


def _needed(blocks: dict[str, str], text: str) -> list[str]:
    """The blocks whose functions `text` calls, directly or indirectly."""
    unread_texts, called = [text], set[str]()
    while unread_texts:
        for name in sorted(set(re.findall(r"\b(?:hg)?_\w+\b", unread_texts.pop())) & set(blocks) - called):
            called.add(name)
            unread_texts.append(blocks[name])
    return [block for name, block in blocks.items() if name in called]
