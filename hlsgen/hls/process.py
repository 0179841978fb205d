"""What a bound unit consists of: a function of the C++ library, its template arguments, and its constants."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True, eq=False)
class Rom:
    """A constant array. `values`: int64, or float32 for numbers; `type`: what hardware holds, None for float32.

    `meaning`: what its axes are, for a comment.
    """

    values: Array
    type: IntType | None
    meaning: str

    @property
    def native(self) -> str:
        """The type of C that holds the values, in which C simulation has them."""
        if self.type is None:
            return "float"
        for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long long")):
            if self.type.bits <= bits:
                return f"{'signed' if self.type.signed else 'unsigned'} {name}"
        raise AssertionError(f"constants of {self.type.bits} bits")


def rom(values: Array, meaning: str, *, signed: bool | None = None) -> Rom:
    """Integers in the narrowest type that holds them, signed only if some are negative, or as asked."""
    low, high = int(values.min()), int(values.max())
    if signed or (signed is None and low < 0):
        return Rom(values, IntType(min(-1, low), max(0, high)), meaning)
    return Rom(values, IntType(0, max(1, high)), meaning)


def numbers(values: Array, meaning: str) -> Rom:
    """float32 constants."""
    return Rom(np.ascontiguousarray(values, np.float32), None, meaning)


@dataclass(frozen=True, eq=False)
class Process:
    """A call of a library function between streams.

    `function`: as in "hg::mvu", from the header of `header`. `arguments`: name and text of each template argument, in
    order. `tables`: constants that it takes behind its streams, in order, by the ends of their names. `about`: what a
    comment says of it. `network`: whether it is made of processes itself, inside of the one that calls it.
    """

    function: str
    header: str
    arguments: tuple[tuple[str, str], ...]
    about: str
    tables: dict[str, Rom] = field(default_factory=dict)
    network: bool = False


def process(
    function: str, about: str, tables: dict[str, Rom] | None = None, /, *, header: str = "", **arguments: object
) -> Process:
    """A call of hg::`function`, from the header of that name if no other is given."""
    texts = tuple((name, spelled(value)) for name, value in arguments.items())
    return Process(f"hg::{function}", header or function, texts, about, tables or {})


def spelled(value: object) -> str:
    """An argument as C++ has it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 1 << 31:
            return f"{value}LL" if value < 1 << 63 else f"{value}ULL"
        case IntType():
            return spell(value)
        case _:
            return str(value)


def spell(type_: IntType) -> str:
    """The type of integers: ap_int or ap_uint."""
    return f"ap_{'int' if type_.signed else 'uint'}<{type_.bits}>"
