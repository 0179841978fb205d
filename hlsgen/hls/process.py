"""A bound unit: a function of the C++ library, its template arguments, and its constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True, eq=False)
class Rom:
    """A constant array.

    `values`: int64, or float32. `type`: the integer type in hardware, None for float32. `meaning`: its axes, for a
    comment.
    """

    values: Array
    type: IntType | None
    meaning: str

    @property
    def native(self) -> str:
        """The C type that holds the values in C simulation."""
        if self.type is None:
            return "float"
        for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long long")):
            if self.type.bits <= bits:
                return f"{'signed' if self.type.signed else 'unsigned'} {name}"
        raise AssertionError(f"constants of {self.type.bits} bits")


def rom(values: Array, meaning: str, *, signed: bool | None = None) -> Rom:
    """Integers in the narrowest type that holds them. By default the type is signed only if some are negative."""
    low, high = int(values.min()), int(values.max())
    if signed or (signed is None and low < 0):
        return Rom(values, IntType(min(-1, low), max(0, high)), meaning)
    return Rom(values, IntType(0, max(1, high)), meaning)


def float_rom(values: Array, meaning: str) -> Rom:
    """float32 constants."""
    return Rom(np.ascontiguousarray(values, np.float32), None, meaning)


@dataclass(frozen=True, eq=False)
class Process:
    """A call of a library function between streams.

    `function`: qualified name such as "hg::mvu". `header`: stem of its header. `arguments`: name and text of each
    template argument, in order. `tables`: constant arguments after the streams, in order, by name suffix. `summary`:
    text for a comment. `network`: True if the function itself consists of processes, inlined into its caller. `later`:
    True if it gets a bit that its caller keeps: 0 in the first frame after reset. `shape`: named integers, in groups,
    that are members of a structure; it is the last template argument.
    """

    function: str
    header: str
    arguments: tuple[tuple[str, str], ...]
    summary: str
    tables: dict[str, Rom] = field(default_factory=dict)
    network: bool = False
    later: bool = False
    shape: tuple[Mapping[str, int], ...] = ()

    def head(self, shape: str) -> str:
        """The function with its template arguments. `shape`: name of the structure."""
        arguments = (*self.arguments, *([("SHAPE", shape)] if self.shape else []))
        texts = ", ".join(f"{value} /* {name} */" for name, value in arguments)
        return f"{self.function}<{texts}>" if texts else self.function

    def shape_text(self, name: str) -> str:
        """Definition of the structure, or "" if there is none."""
        if not self.shape:
            return ""
        lines = [
            f"    static const {'long long' if set(group) == {'PAD'} else 'int'} "
            + ", ".join(f"{key} = {argument_text(value)}" for key, value in group.items())
            + ";\n"
            for group in self.shape
        ]
        return f"struct {name} {{\n{''.join(lines)}}};\n"


def process(
    function: str,
    summary: str,
    tables: dict[str, Rom] | None = None,
    shape: tuple[Mapping[str, int], ...] = (),
    /,
    *,
    header: str = "",
    **arguments: object,
) -> Process:
    """A call of hg::`function`. Its header defaults to the function's name."""
    texts = tuple((name, argument_text(value)) for name, value in arguments.items())
    return Process(f"hg::{function}", header or function, texts, summary, tables or {}, shape=shape)


def argument_text(value: object) -> str:
    """C++ text of a template argument."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 1 << 31:
            return f"{value}LL" if value < 1 << 63 else f"{value}ULL"
        case IntType():
            return type_text(value)
        case _:
            return str(value)


def type_text(type_: IntType) -> str:
    """C++ text of an integer type: ap_int or ap_uint."""
    return f"ap_{'int' if type_.signed else 'uint'}<{type_.bits}>"
