"""Mutants of a Verilog module: each is one small change of its text, like a human mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Replacements of operators with spaces around them.
_SWAPS = {
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "*": "+",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    ">": ">=",
    ">=": ">",
    "<": "<=",
}


@dataclass(frozen=True)
class Mutant:
    """`line`: number of the changed line, from 1. `text`, `changed`: its stripped text before and after."""

    module: str
    kind: str
    line: int
    text: str
    changed: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.kind}: {self.text!r} -> {self.changed!r}"


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant, in the order of the text.

    Comments, ports, defaults of parameters, and unread wires named unused... do not change.
    """
    all_mutants, sources = [], {source}
    head = source.index(");", source.index("input ")) if "input " in source else 0
    blank = re.sub(r"//[^\n]*|\bwire unused\w* = [^;]*;", lambda m: re.sub(r"[^\n]", " ", m[0]), source)
    for kind, start, end, new in _changes(blank):
        mutated = source[:start] + new + source[end:]
        if start < head or mutated in sources:
            continue
        sources.add(mutated)
        line = source.count("\n", 0, start)
        old_line, new_line = source.split("\n")[line], mutated.split("\n")[line]
        all_mutants.append(Mutant(module, kind, line + 1, old_line.strip(), new_line.strip(), mutated))
    return sorted(all_mutants, key=lambda m: (m.line, m.kind, m.changed))


def _changes(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Changes as (kind, start, end, replacement)."""
    for match in re.finditer(r"(?<= )(==|!=|&&|\|\||<<|>>|>=|[-+*&|<>])(?= )", text):
        yield "operator", *match.span(), _SWAPS[match[0]]
    for match in re.finditer(r"[!~](?=[\w({&|])", text):
        yield "negation", *match.span(), ""
    for match in re.finditer(r"1'b([01])\b", text):
        yield "constant", *match.span(), f"1'b{1 - int(match[1])}"
    for match in re.finditer(r"(?<![\w'.\[:$])\d+(?![\w'\]:])", text):
        yield "constant", *match.span(), str(int(match[0]) + 1)
    for match in re.finditer(r"\bif (?=\()", text):
        end = _closing(text, match.end())
        yield "condition", match.end(), end, f"(!{text[match.end() : end]})"
    for match in re.finditer(r" \? ", text):
        yield "condition", match.start(), match.start(), " == 0"
    for match in re.finditer(r"(?<=\s)\w+(?:\[[^\]\n]*\])?\s*<= [^;]*;", text):
        yield "assignment", *match.span(), ";"
    for match in re.finditer(r"^ *(?:wire|reg)\s+(?:signed )?\[(\w+)-1:0\](?= )", text, re.MULTILINE):
        yield "width", match.end(1), match.end(1) + 2, "-2"


def _closing(text: str, start: int) -> int:
    """Index after the parenthesis that closes the one at `start`."""
    depth = 0
    for k in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[k], 0)
        if depth == 0:
            return k + 1
    raise ValueError("a parenthesis is not closed")
