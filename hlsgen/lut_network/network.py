"""A network of lookup tables: each bit is a function of bits before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class LutFunction:
    """A lookup table over the bits `inputs`; `table` has entry i in bit i, the first input is the lowest bit of i."""

    inputs: tuple[int, ...]
    table: int


@dataclass(frozen=True)
class LutNetwork:
    """Functions of bits. Bits 0 to `inputs` - 1 are the input; bit `inputs` + k is the value of functions[k].

    Level l contains the functions before `ends[l]` that are in no level before it; they use bits of earlier levels
    only. The last level is the output, the lowest bit first.
    """

    inputs: int
    functions: tuple[LutFunction, ...]
    ends: tuple[int, ...]

    @property
    def outputs(self) -> int:
        """Bits of the output."""
        return len(self.functions) - (self.ends[-2] if len(self.ends) > 1 else 0)

    def cone(self, outputs: Iterable[int]) -> tuple[set[int], set[int]]:
        """(functions, bits of the input) that bits of the output depend on."""
        first = len(self.functions) - self.outputs
        waiting = [first + output for output in outputs]
        functions, bits = set(waiting), set[int]()
        while waiting:
            for bit in self.functions[waiting.pop()].inputs:
                number = bit - self.inputs
                if number < 0:
                    bits.add(bit)
                elif number not in functions:
                    functions.add(number)
                    waiting.append(number)
        return functions, bits

    def apply(self, bits: Array) -> Array:
        """The output for an input, both uint8 (..., bits)."""
        values = [bits[..., i].astype(np.uint8) for i in range(self.inputs)]
        for function in self.functions:
            entries = np.array([function.table >> i & 1 for i in range(1 << len(function.inputs))], np.uint8)
            index = np.zeros(bits.shape[:-1], np.int64)
            for k, bit in enumerate(function.inputs):
                index |= values[bit].astype(np.int64) << k
            values.append(entries[index])
        return np.stack(values[len(values) - self.outputs :], axis=-1)
