"""The arrays of weights.hpp, as the models of both libraries read them."""

from __future__ import annotations

from pathlib import Path

from hlsgen.certify.cpp.constants import Constants
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.numerics.fixed import Array


class Tables(Memories):
    """Arrays in the place of memory files."""

    def __init__(self, folder: Path, found: dict[str, Constants]) -> None:
        super().__init__(folder)
        self.found = found

    def array(self, cell: Cell, end: str) -> Array:
        """The array whose name is that of the instance and `end`, which it takes. Raises HG055."""
        name = f"{cell.name}_{end}"
        taken = str(cell.parameters["TABLES"]).split()
        if name not in taken or name not in self.found:
            raise broken(cell.name, f"takes the tables {taken}, not {name} of weights.hpp.")
        self.used.add(name)
        return self.found[name].values

    def fields(self, name: str, count: int, lanes: int, width: int) -> Array:
        """(words, lanes) of an array, as numbers of so many bits without a sign."""
        found = self.found.get(name)
        if found is None or found.values.size != count * lanes or found.bits > width:
            raise broken(name, f"is no table of {count} x {lanes} numbers of {width} bits.")
        self.used.add(name)
        return found.values.reshape(count, lanes) & ((1 << width) - 1)

    def words(self, name: str, count: int, width: int, *, even: bool = True) -> list[int]:
        del even
        return [int(word) for word in self.fields(name, count, 1, width)[:, 0]]
