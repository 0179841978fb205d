"""Builds a network of lookup tables from functions of bits, with each function once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.lut_network.decompose import Cut, Direct, FourWay, Plan, Split, decompose
from hlsgen.lut_network.network import LutFunction, LutNetwork
from hlsgen.numerics.fixed import Array


class LutNetworkBuilder:
    """The functions so far. Bits are numbered as in LutNetwork, in the order in which they were added."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.functions: list[LutFunction] = []
        self._numbers: dict[LutFunction, int] = {}

    def add(self, codes: Array, bits: int, places: Sequence[int]) -> list[int]:
        """The bits of a code, the lowest first.

        `codes` int64 (2^n,): the code for each value of the n input bits `places`, `bits` bits each.
        """
        return self._planned(decompose(codes, bits), bits, places)

    def finish(self, outputs: Sequence[int]) -> LutNetwork:
        """The network whose output is these bits. The functions of the output are its last level."""
        level = dict.fromkeys(range(self.inputs), 0)
        for k, function in enumerate(self.functions):
            level[self.inputs + k] = 1 + max((level[bit] for bit in function.inputs), default=0)
        last = [self._function_of(bit) for bit in outputs]
        needed = self._needed(last)
        inner = sorted(needed, key=lambda bit: (level[bit], bit))
        number = {bit: bit for bit in range(self.inputs)} | {bit: self.inputs + k for k, bit in enumerate(inner)}
        functions = [self.functions[bit - self.inputs] for bit in inner] + last
        ends = [k + 1 for k, bit in enumerate(inner) if k + 1 == len(inner) or level[inner[k + 1]] > level[bit]]
        renumbered = (LutFunction(tuple(number[bit] for bit in f.inputs), f.table) for f in functions)
        return LutNetwork(self.inputs, tuple(renumbered), (*ends, len(functions)))

    def _function_of(self, bit: int) -> LutFunction:
        return self.functions[bit - self.inputs] if bit >= self.inputs else LutFunction((bit,), 0b10)

    def _needed(self, functions: Sequence[LutFunction]) -> set[int]:
        """The bits of functions that these functions use, directly or not."""
        needed: set[int] = set()
        waiting = list(functions)
        while waiting:
            for bit in waiting.pop().inputs:
                if bit >= self.inputs and bit not in needed:
                    needed.add(bit)
                    waiting.append(self.functions[bit - self.inputs])
        return needed

    def _planned(self, plan: Plan, bits: int, places: Sequence[int]) -> list[int]:
        places = [places[v] for v in plan.used]
        match plan.form:
            case Direct(codes):
                return [self._table(codes >> b & 1, places) for b in range(bits)]
            case Split(parts):
                return [self._planned(part, 1, places)[0] for part in parts]
            case FourWay(parts):
                chosen = [self._planned(part, bits, places[:-2]) for part in parts]
                entries = np.arange(64)
                # Bits 4 and 5 of an entry choose one of its four low bits.
                table = entries >> (entries >> 4) & 1
                return [self._table(table, [*(part[b] for part in chosen), *places[-2:]]) for b in range(bits)]
            case Cut(bound, free, code, code_bits, inner):
                bound_places = [places[v] for v in bound]
                coded = [self._table(code >> b & 1, bound_places) for b in range(code_bits)]
                return self._planned(inner, bits, [*(places[v] for v in free), *coded])

    def _table(self, table: Array, places: Sequence[int]) -> int:
        """The bit that is this function uint8 (2^n,) of the bits `places`."""
        values, used = np.asarray(table, np.uint8), list(places)
        for v in reversed(range(len(used))):
            halves = values.reshape(-1, 2, 1 << v)
            if (halves[:, 0] == halves[:, 1]).all():
                values = halves[:, 0].ravel()
                del used[v]
        if len(used) == 1 and values[1]:
            return used[0]
        function = LutFunction(tuple(used), int("".join(map(str, values[::-1].tolist())), 2))
        if function not in self._numbers:
            self._numbers[function] = self.inputs + len(self.functions)
            self.functions.append(function)
        return self._numbers[function]
