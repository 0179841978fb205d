"""Units that run a program of operations on single numbers."""

from __future__ import annotations

from hlsgen.dataflow.program_luts import program_luts
from hlsgen.dataflow.units import Node, ProgramUnit
from hlsgen.verilog.binding.memory_files import Binding
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.program_stages import staged
from hlsgen.verilog.program_text import program_module_text
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, without_style


def _bind(node: Node, unit: ProgramUnit) -> Binding:
    program = staged(unit.program, unit.adders_per_stage)
    sizes = node.source.lanes, node.source.type.bits, node.result.type.bits
    summary = f"{len(unit.program.operations)} operations, {node.source.lanes} to {node.result.lanes} numbers"
    return Binding("program", {}, summary, text=lambda name: program_module_text(name, program, *sizes))


def _latency(unit: ProgramUnit) -> int:
    return staged(unit.program, unit.adders_per_stage).latency


def _parts(node: Node, unit: ProgramUnit, _options: CostOptions) -> Parts:
    program = staged(unit.program, unit.adders_per_stage)
    parts = Parts("ProgramUnit", ff={"results": float(program.registers), "control": 8.0})
    parts.lut = {"control": 10.0} | program_luts(unit.program)
    return parts


PROGRAM = UnitSpec(without_style(_bind), _latency, _parts, ready_hops=1)
