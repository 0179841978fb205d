"""Binds a network of lookup tables to hg_lut_network: its functions, packed into parameters."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.lut_network import LUT_INPUTS, LutFunction, LutNetwork
from hlsgen.verilog.binding.memory_files import Binding, Bits


def bind(network: LutNetwork, summary: str) -> Binding:
    """The module of a network."""
    count = len(network.functions)
    inputs = [bit for function in network.functions for bit in _padded(function)]
    return Binding(
        "hg_lut_network",
        {
            "IN_W": network.inputs,
            "OUT_W": network.outputs,
            "FUNCTIONS": count,
            "LEVELS": len(network.ends),
            "ENDS": _packed(network.ends, 16),
            "INPUTS": _packed(inputs, 16),
            "TABLES": _packed([_table(function) for function in network.functions], 64),
        },
        summary,
    )


def _padded(function: LutFunction) -> tuple[int, ...]:
    return function.inputs + (0,) * (LUT_INPUTS - len(function.inputs))


def _table(function: LutFunction) -> int:
    """The table of all six inputs; those that are padded do not matter."""
    table = function.table
    for inputs in range(len(function.inputs), LUT_INPUTS):
        table |= table << (1 << inputs)
    return table


def _packed(numbers: Sequence[int], bits: int) -> Bits:
    return Bits(bits * len(numbers), sum(number << (bits * n) for n, number in enumerate(numbers)))
