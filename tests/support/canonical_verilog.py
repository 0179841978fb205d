"""A digest of the Verilog of a build that does not depend on names, comments and white space.

Equal digests mean equal designs: all identifiers are numbered in the order of their first use, starting from the top
module, and names of memory files are replaced by their contents.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from hlsgen.dataflow.keywords import is_keyword

_TOKEN = re.compile(
    r"""
    "[^"\n]*"                              # a string
    | `?\$?[A-Za-z_][\w$]*                 # an identifier, a directive, a system task
    | \d*'[sS]?[bBoOdDhH][0-9a-fA-FxXzZ?_]+ # a sized number
    | \d+
    | \S
    """,
    re.VERBOSE,
)
#: Ends of the names of memory files that the library adds to a stem.
_MEMORY_END = r"(_\d+)*(_(power|numerator|high|low|mask))?(\.mem)?"


def digest(files: Mapping[str, bytes]) -> str:
    """Sixteen hexadecimal digits for the Verilog (.v) and memory files of a build, by file name."""
    modules = {
        name: tokens for file, data in sorted(files.items()) if file.endswith(".v") for name, tokens in _modules(data)
    }
    memories = {file: data.split() for file, data in sorted(files.items()) if not file.endswith(".v")}
    numbers: dict[str, int] = {}
    top = min(modules, key=len)  # all other names have its name as a prefix
    sha256, waiting = hashlib.sha256(), [top]
    for module in waiting:
        for token in modules[module]:
            if token in modules and token not in waiting:
                waiting.append(token)
            sha256.update(_canonical(token, numbers, memories) + b" ")
    return sha256.hexdigest()[:16]


def _modules(data: bytes) -> list[tuple[str, list[str]]]:
    """Names and tokens of the modules in a file; directives between them belong to the next one."""
    tokens = _TOKEN.findall(re.sub(r"//[^\n]*", "", data.decode()))
    modules, start = [], 0
    for number, token in enumerate(tokens):
        if token == "endmodule":
            piece = tokens[start : number + 1]
            modules.append((piece[piece.index("module") + 1], piece))
            start = number + 1
    return modules


def _canonical(token: str, numbers: dict[str, int], memories: dict[str, list[bytes]]) -> bytes:
    if token.startswith('"'):
        pattern = re.compile(re.escape(token[1:-1]) + _MEMORY_END)
        contents = [
            (name.removeprefix(token[1:-1]), words) for name, words in memories.items() if pattern.fullmatch(name)
        ]
        return repr(contents).encode() if contents and token != '""' else token.encode()
    if re.fullmatch(r"[A-Za-z_][\w$]*", token) and not is_keyword(token):
        return b"n%d" % numbers.setdefault(token, len(numbers))
    return token.encode()
