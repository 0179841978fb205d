"""Units that run a program of operations on single numbers."""

from __future__ import annotations

from hlsgen.dataflow.units import Node, ProgramUnit
from hlsgen.ir.programs import Bitwise, Choose, Product, Table, Total, Wrap
from hlsgen.verilog.binding.memory_files import Binding
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.program_stages import StagedProgram, staged
from hlsgen.verilog.program_text import program_module_text
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, without_style

#: Inputs of a LUT.
_LUT_INPUTS = 6


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
    parts.lut = {"control": 10.0} | _lut_parts(program)
    return parts


def _lut_parts(program: StagedProgram) -> dict[str, float]:
    """LUTs of the operations by kind."""
    parts = {"sums": 0.0, "tables": 0.0, "choices": 0.0, "products": 0.0}
    types = program.intervals
    for n, operation in enumerate(program.program.operations):
        bits = types[n].bits if types[n].lo < types[n].hi else 0
        match operation:
            case Total(a, b, minus):
                shifted = abs(a.shift - b.shift) if not minus or b.shift else 0
                parts["sums"] += max(0, bits - shifted)
            case Table(source):
                parts["tables"] += bits * 2.0 ** max(0, types[source].bits - _LUT_INPUTS)
            case Choose() | Bitwise():
                parts["choices"] += bits
            case Wrap(source, _, _, bounded) if bounded and types[source].lo < 0:
                parts["choices"] += bits / 2
            case Product(a, b):
                parts["products"] += types[a].bits * types[b].bits
            case _:
                pass
    return parts


PROGRAM = UnitSpec(without_style(_bind), _latency, _parts, ready_hops=1)
