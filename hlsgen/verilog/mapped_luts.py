"""Counts LUTs of sums bit by bit: carry chains, and the functions of few bits that tools make of LUTs.

Tools make a carry chain of each sum that is longer than a few bits. Bits of shorter sums are functions. They cost
nothing where the LUT that uses them has inputs left. Else they need LUTs, as do functions that a chain or a register
takes as they are. Inverters need LUTs where a cell cannot invert.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Cells:
    """How Yosys maps sums to the cells of a family of devices.

    - `inputs`: of a LUT.
    - `no_chain`: most bits of a sum that is made of LUTs alone.
    - `takes_function`: the LUT of a chain's bit computes its second term, too; else both terms are bits of their own.
    - `subtracts`: a chain inverts its second term for a difference without LUTs.
    - `group`: bits of a cell of a chain. `ends`: LUTs of the two ends of a chain.
    """

    inputs: int
    no_chain: int
    takes_function: bool = False
    subtracts: bool = True
    group: int = 1
    ends: int = 0


_XILINX = Cells(inputs=6, no_chain=2, takes_function=True)
#: By family, as in unit_factors.json. `no_chain` is in the technology maps of Yosys, `ends` in synthesis/netlist.py.
_CELLS = {
    "ecp5": Cells(inputs=4, no_chain=4, group=2, ends=4),
    "ice40": Cells(inputs=4, no_chain=2, subtracts=False),
    "gowin": Cells(inputs=4, no_chain=2),
}
#: Operators between the terms of a sum. "~": the second term is inverted in the text.
PLUS, MINUS, PLUS_NOT, MINUS_NOT = " + ", " - ", " + ~", " - ~"


class Bit(NamedTuple):
    """A bit by its name, or its complement."""

    name: Hashable
    inverted: bool = False


#: A bit or a constant.
Value = Bit | int
_Names = frozenset[Hashable]


def inverse(value: Value) -> Value:
    return 1 - value if isinstance(value, int) else Bit(value.name, not value.inverted)


@dataclass
class MappedLuts:
    """The LUTs so far, of a device family.

    - `depends`: the bits that a function depends on, at most as many as a LUT has inputs.
    - `built`: functions and complements that a LUT has.
    """

    family: str
    chains: float = 0.0
    functions: float = 0.0
    inverters: float = 0.0
    depends: dict[Hashable, _Names] = field(default_factory=dict)
    built: set[Bit] = field(default_factory=set)

    @property
    def cells(self) -> Cells:
        return _CELLS.get(self.family, _XILINX)

    @property
    def parts(self) -> dict[str, float]:
        return {"chains": self.chains, "functions": self.functions, "inverters": self.inverters}

    def function(self, name: Hashable, values: Sequence[Value]) -> Value:
        """The bit `name`, a function of these; one of these if it depends on one only."""
        names = self._joint(values)
        if len(names) > 1:
            self.depends[name] = names
            return Bit(name)
        return Bit(next(iter(names))) if names else 0

    def build(self, value: Value, *, as_is: bool = False) -> None:
        """A LUT for a function. as_is: also for a complement, because its reader cannot invert."""
        if isinstance(value, int):
            return
        bit = value if as_is else Bit(value.name)
        if bit in self.built or not (bit.inverted or self._is_function(bit)):
            return
        if len(self._names(bit)) > 1:
            self.functions += 1
        else:
            self.inverters += 1
        self.built.add(bit)

    def sum(self, name: Hashable, first: Sequence[Value], second: Sequence[Value], operator: str) -> list[Value]:
        """The bits of a sum of two numbers of the same length, the lowest first."""
        copied: list[Value] = []
        for a, b in zip(first, second, strict=True):
            if b == 0 and operator in (PLUS, MINUS):
                copied.append(a)
            elif a == 0 and operator == PLUS:
                copied.append(b)
            else:
                break
        low = len(copied)
        first, second = first[low:], second[low:]
        if operator == PLUS and not any(bit != 0 for bit in first):
            return [*copied, *second]
        if operator in (PLUS, MINUS) and not any(bit != 0 for bit in second):
            return [*copied, *first]
        if len(first) > self.cells.no_chain:
            self._chain(first, second, operator)
            return copied + [Bit((name, k)) for k in range(low, low + len(first))]
        carry: Value = 0
        for k, pair in enumerate(zip(first, second, strict=True), low):
            copied.append(self.function((name, k), [*pair, carry]))
            carry = self.function((name, k, "carry"), [*pair, carry])
        return copied

    def _is_function(self, bit: Bit) -> bool:
        """True if no LUT has the bit yet."""
        return bit.name in self.depends and Bit(bit.name) not in self.built

    def _names(self, bit: Bit) -> _Names:
        """The bits that a LUT which computes this bit reads."""
        return self.depends[bit.name] if self._is_function(bit) else frozenset((bit.name,))

    def _joint(self, values: Iterable[Value]) -> _Names:
        """The bits that a function of these reads. While these are too many, the largest function gets a LUT."""
        bits = [value for value in values if not isinstance(value, int)]
        while True:
            names: _Names = frozenset().union(*map(self._names, bits))
            functions = [bit for bit in bits if len(self._names(bit)) > 1]
            if len(names) <= self.cells.inputs or not functions:
                return names
            self.build(max(functions, key=lambda bit: len(self._names(bit))))

    def _chain(self, first: Sequence[Value], second: Sequence[Value], operator: str) -> None:
        cells = self.cells
        if not cells.takes_function:
            self.chains += cells.group * -(-len(first) // cells.group) + cells.ends
            inverts = operator in ((PLUS_NOT, MINUS_NOT) if cells.subtracts else (MINUS, PLUS_NOT))
            for a, b in zip(first, second, strict=True):
                self.build(a, as_is=True)
                self.build(inverse(b) if inverts else b, as_is=True)
            return
        for a, b in zip(first, second, strict=True):
            if (isinstance(a, int) and isinstance(b, int)) or a == b or a == inverse(b):
                continue  # no LUT is needed
            # The carry chain reads the first term. The LUT of the sum reads both terms, or computes the first one.
            has_lut = isinstance(b, int) and not isinstance(a, int) and self._is_function(a)
            self.build(a)
            self._joint((a, b))
            self.chains += not has_lut
