"""Integer model of hg_lut_network: bits that are functions of the bits of a beat, made of lookup tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hlsgen.certify.netlist_reader import Cell, broken, split
from hlsgen.numerics.fixed import Array

MODULE = "hg_lut_network"
_PARAMETERS = frozenset("IN_W OUT_W FUNCTIONS LEVELS ENDS INPUTS TABLES".split())
#: Inputs of a function, and bits of a number that names one.
_PINS, _NUMBER = 6, 16


class LutNetworkModel:
    """The functions of an instance. Bit `in_bits` + k is function k; the last `out_bits` are m_data."""

    def __init__(self, cell: Cell) -> None:
        if set(cell.parameters) != _PARAMETERS:
            unexpected = sorted(set(cell.parameters) ^ _PARAMETERS)
            raise broken(cell.name, f"{cell.module} has other parameters than its model: {', '.join(unexpected)}.")
        self.in_bits, self.out_bits, count, levels = (
            cell.number(name, 1) for name in ("IN_W", "OUT_W", "FUNCTIONS", "LEVELS")
        )
        if max(self.in_bits, self.out_bits, count, levels) >= 1 << _NUMBER:
            raise broken(cell.name, "is larger than its model.")
        ends = split([cell.sized("ENDS", _NUMBER * levels).value], levels, _NUMBER)[0].tolist()
        starts = [0, *ends[:-1]]
        if any(start >= end for start, end in zip(starts, ends, strict=True)) or ends[-1] != count:
            raise broken(cell.name, f"its levels end after {ends} of {count} functions.")
        if starts[-1] > count - self.out_bits:
            raise broken(cell.name, f"its last level has fewer functions than the {self.out_bits} bits of its output.")
        pins = split([cell.sized("INPUTS", _PINS * _NUMBER * count).value], _PINS * count, _NUMBER)[0]
        self.pins = pins.reshape(count, _PINS).tolist()
        for start, end in zip(starts, ends, strict=True):
            if max(bit for inputs in self.pins[start:end] for bit in inputs) >= self.in_bits + start:
                raise broken(cell.name, "a function uses one that is not in a lower level.")
        tables = split([cell.sized("TABLES", count << _PINS).value], count << _PINS, 1)[0]
        self.tables = tables.reshape(count, -1).astype(np.uint8)

    def cone(self, outputs: list[int]) -> tuple[list[int], list[int]]:
        """(bits of s_data, functions in ascending order) that bits of m_data depend on.

        An input of a function on which its table does not depend is not followed.
        """
        waiting = [len(self.pins) - self.out_bits + output for output in outputs]
        functions, used = set(waiting), set[int]()
        while waiting:
            k = waiting.pop()
            for pin, bit in enumerate(self.pins[k]):
                halves = self.tables[k].reshape(-1, 2, 1 << pin)
                if (halves[:, 0] == halves[:, 1]).all():
                    continue
                if bit < self.in_bits:
                    used.add(bit)
                elif bit - self.in_bits not in functions:
                    functions.add(bit - self.in_bits)
                    waiting.append(bit - self.in_bits)
        return sorted(used), sorted(functions)

    def apply(self, outputs: list[int], bits: Mapping[int, Array]) -> Array:
        """The number whose bits are these bits of m_data, the lowest first, int64 (inputs,).

        `bits`: the values of the bits of s_data, int64 (inputs,) each. The bits of the cone suffice.
        """
        values = dict(bits)
        zero = np.zeros(len(next(iter(bits.values()), np.zeros(1))), np.int64)
        for k in self.cone(outputs)[1]:
            index = sum((values.get(bit, zero) << pin for pin, bit in enumerate(self.pins[k])), zero)
            values[self.in_bits + k] = self.tables[k][index].astype(np.int64)
        first = self.in_bits + len(self.pins) - self.out_bits
        return np.asarray(sum((values[first + output] << n for n, output in enumerate(outputs)), zero))
