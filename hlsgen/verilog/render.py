"""Renders the package's Jinja templates, and formats constants for Verilog."""

from __future__ import annotations

from functools import lru_cache

import jinja2

from hlsgen.library import environment
from hlsgen.verilog.binding.memory_files import Bits, Parameter

#: Most bits of a number: Icarus Verilog reads no token of 16,384 characters.
LONGEST = 1 << 14


def constant(value: Parameter) -> str:
    """A Verilog constant: integers plainly, strings quoted, `Bits` as sized hexadecimal, in pieces if they are long."""
    match value:
        case Bits(width, number) if width > LONGEST:
            pieces = [
                constant(Bits(min(LONGEST, width - start), number >> start)) for start in range(0, width, LONGEST)
            ]
            return f"{{{', '.join(reversed(pieces))}}}"
        case Bits(width, number):
            return f"{width}'h{number & ((1 << width) - 1):x}"
        case str():
            return f'"{value}"'
        case _:
            return str(value)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    env = environment().overlay()
    env.filters["constant"] = constant
    return env


def render(template: str, **values: object) -> str:
    """Renders a template of the package, e.g. "verilog/top.v.j2"."""
    return _environment().get_template(template).render(**values)
