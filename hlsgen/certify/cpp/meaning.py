"""A process of a core as the checker sees it: an instance of a module with the same contract, and its beats."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.netlist_reader import Cell, ParameterValue, SizedConstant


@dataclass(frozen=True)
class Meaning:
    """A process as an instance. `beats`: the beats a frame of each input stream."""

    cell: Cell
    beats: tuple[int, ...]


def instance(call: Call, module: str, beats: tuple[int, ...], **parameters: ParameterValue) -> Meaning:
    """The instance that a call means."""
    return Meaning(Cell(module, call.name, parameters, {}), beats)


def sized(bits: int, value: int) -> SizedConstant:
    """A constant in two's complement."""
    return SizedConstant(bits, value & ((1 << bits) - 1))
