"""The form of a unit's description: one `UnitSpec` per kind of unit, which all models of the target interpret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hlsgen.dataflow.units import Node
from hlsgen.verilog.binding.memory_files import Binding
from hlsgen.verilog.parts import Parts

U = TypeVar("U")


@dataclass(frozen=True)
class CostOptions:
    """The device and options that a cost depends on.

    dsp: bits of the wider factor of a DSP block, 0 without DSP blocks. style: the kind of weight memories, see
    hg_weights. family: the key of unit_factors.json.
    """

    dsp: int
    style: int
    family: str = "xc7"


@dataclass(frozen=True)
class UnitSpec(Generic[U]):
    """The Verilog target's description of one kind of unit.

    bind: the library module and its parameters, for a kind of weight memories (see hg_weights). Emission and the
    certificate's statement read it.
    latency: cycles from the beat that completes an output beat to that output beat. Units with a window
    and hg_gather and hg_softmax count from the read of its last word.

    parts: expected LUTs, registers, DSP blocks and block RAM by part, on LUTs of six inputs.
    ready_hops: units that a ready signal passes here. It is 1 if s_ready depends on m_ready, None if only on registers.
    """

    bind: Callable[[Node, U, int], Binding]
    latency: Callable[[U], int]
    parts: Callable[[Node, U, CostOptions], Parts]
    ready_hops: int | None


def without_style(bind: Callable[[Node, U], Binding]) -> Callable[[Node, U, int], Binding]:
    """The same function for a unit without weights: it ignores the kind of weight memories."""
    return lambda node, unit, _style: bind(node, unit)


def cycles(count: int) -> Callable[[object], int]:
    """A latency function that returns `count` for every unit."""
    return lambda _unit: count


def beat_registers(node: Node) -> dict[str, float]:
    """Registers of a unit that holds one input beat and one output beat, by part."""
    return {"control": 8.0, "in": float(node.source.bits), "out": float(node.result.bits)}
