"""The ports of a core, read from its top level, as templates of project files need them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PORT = re.compile(
    r"^\s*(?:\(\*.*?\*\)\s*)*(input|output)\s+(?:wire|reg)?\s*(?:\[(\d+):0\]\s*)?(\w+)\s*,?\s*$", re.MULTILINE
)
#: Lower case and digits, no two underscores: names that VHDL has as they are, but for its reserved words.
_VHDL_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")
_VHDL_WORDS = frozenset(
    "abs access after alias all and architecture array assert attribute begin block body buffer bus case component "
    "configuration constant disconnect downto else elsif end entity exit file for function generate generic group guarded "
    "if impure in inertial inout is label library linkage literal loop map mod nand new next nor not null of on open or "
    "others out package port postponed procedure process pure range record register reject rem report return rol ror "
    "select severity signal shared sla sll sra srl subtype then to transport type unaffected units until use variable wait "
    "when while with xnor xor".split()
)


@dataclass(frozen=True)
class Port:
    """A port: its name, whether the core reads it, and its bits; `vector` if it is declared with a range."""

    name: str
    is_input: bool
    bits: int
    vector: bool


def ports_of(text: str, top: str) -> tuple[Port, ...]:
    """Of module `top` in a text that hlsgen has emitted."""
    head = re.search(rf"^module {re.escape(top)} \((.*?)\n\);", text, re.DOTALL | re.MULTILINE)
    assert head is not None, top
    found = _PORT.findall(head[1])
    return tuple(Port(name, kind == "input", int(high or 0) + 1, bool(high)) for kind, high, name in found)


def has(ports: tuple[Port, ...], name: str) -> bool:
    """Whether there is a port of that name."""
    return any(port.name == name for port in ports)


def vhdl_name(name: str) -> str:
    """A Verilog name in VHDL: an extended identifier where it is none as it is."""
    return name if _VHDL_NAME.fullmatch(name) and name not in _VHDL_WORDS else f"\\{name}\\"
