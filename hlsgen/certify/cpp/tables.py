"""The arrays of weights.hpp in the form in which the models of the modules read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hlsgen.certify.cpp.constants import Constants
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.netlist_reader import Memories, broken
from hlsgen.numerics.fixed import Array


class Tables(Memories):
    """Arrays in the place of memory files: unchanged, or several combined into the memory of a module."""

    def __init__(self, folder: Path, constants: dict[str, Constants]) -> None:
        super().__init__(folder)
        self.constants = constants
        self.memories: dict[str, tuple[list[int], int]] = {}

    def array(self, call: Call, suffix: str, *shape: int) -> Array:
        """The array `PROCESS_end` with this shape, int64 or float32; -1 means any extent. Raises HG055."""
        name = f"{call.name}_{suffix}"
        if name not in call.tables or name not in self.constants:
            raise broken(call.name, f"has the tables {call.tables}, not {name} of weights.hpp.")
        self.used.add(name)
        values = self.constants[name].values
        if len(values.shape) != len(shape) or any(n not in (-1, m) for n, m in zip(shape, values.shape, strict=True)):
            raise broken(name, f"has the shape {values.shape}, {call.function} needs {shape}.")
        return values

    def put(self, name: str, fields: list[tuple[Array, int]]) -> str:
        """Build a memory with a word for each row of arrays (words, lanes), and return its name.

        Each lane holds all fields (values, bits), the first in the low bits.
        """
        words: Array = np.zeros(len(fields[0][0]), object)
        place, width = 0, sum(bits for _, bits in fields)
        for values, bits in fields:
            for lane in range(values.shape[1]):
                words = words | ((values[:, lane].astype(object) & ((1 << bits) - 1)) << (lane * width + place))
            place += bits
        self.memories[name] = [int(word) for word in words], width * fields[0][0].shape[1]
        return name

    def words(self, name: str, count: int, width: int, *, even: bool = True) -> list[int]:
        del even
        words, bits = self.memories.get(name, ([], 0))
        if len(words) != count or bits > width:
            raise broken(name, f"has {len(words)} words of {bits} bits; the process reads {count} of {width}.")
        return words

    def fields(self, name: str, count: int, lanes: int, width: int) -> Array:
        constants = self.constants.get(name)
        if constants is None:
            return super().fields(name, count, lanes, width)
        if constants.values.size != count * lanes or constants.bits > width:
            raise broken(name, f"is no table of {count} x {lanes} numbers of {width} bits.")
        self.used.add(name)
        return constants.values.reshape(count, lanes) & ((1 << width) - 1)
