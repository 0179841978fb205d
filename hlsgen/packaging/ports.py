"""Reads the ports of a core from its top level, for templates of project files."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PORT = re.compile(
    r"^\s*(?:\(\*.*?\*\)\s*)*(input|output)\s+(?:wire|reg)?\s*(?:\[(\d+):0\]\s*)?(\w+)\s*,?\s*$", re.MULTILINE
)
#: Lower case, digits and single underscores: legal names in VHDL, except for its reserved words.
_VHDL_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")
_VHDL_WORDS = frozenset(
    "abs access after alias all and architecture array assert attribute begin block body buffer bus case "
    "component configuration constant disconnect downto else elsif end entity exit file for function "
    "generate generic group guarded if impure in inertial inout is label library linkage literal loop map "
    "mod nand new next nor not null of on open or others out package port postponed procedure process "
    "pure range record register reject rem report return rol ror select severity signal shared sla sll "
    "sra srl subtype then to transport type unaffected units until use variable wait when while with xnor "
    "xor".split()
)


@dataclass(frozen=True)
class Port:
    """A port: name, direction, bits; `vector` if it is declared with a range."""

    name: str
    is_input: bool
    bits: int
    vector: bool


def ports_of(text: str, top: str) -> tuple[Port, ...]:
    """Ports of module `top` in Verilog that hlsgen has emitted."""
    head = re.search(rf"^module {re.escape(top)} \((.*?)\n\);", text, re.DOTALL | re.MULTILINE)
    assert head is not None, top
    declarations = _PORT.findall(head[1])
    return tuple(Port(name, kind == "input", int(high or 0) + 1, bool(high)) for kind, high, name in declarations)


def has(ports: tuple[Port, ...], name: str) -> bool:
    """True if there is a port with this name."""
    return any(port.name == name for port in ports)


def vhdl_name(name: str) -> str:
    """A Verilog name in VHDL, as an extended identifier if necessary."""
    return name if _VHDL_NAME.fullmatch(name) and name not in _VHDL_WORDS else f"\\{name}\\"
