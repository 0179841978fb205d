"""Proves functions of two tensors that are computed in float32: the units of each operand, hg_f32_join, later units.

Each unit is the model's operation and rounds once (`models.float_pipeline`). The operands and their join therefore
equal the model's for all codes. The units after the join are a function of one float32 number, proven for all numbers.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models import float_pipeline
from hlsgen.certify.models.routing import check_parameters
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.proof import prove
from hlsgen.certify.quantizers import QuantizerHardware, Summary, check_reachable
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes
from hlsgen.ir import BinaryMap, Concatenation, Delay, FloatBinary, FloatKey, Layer, Map, Rearrange, sources_of
from hlsgen.ir.binary_function import BinaryFunction, specialize, with_placeholder_quantizer
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.step_function import StepFunction
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array, IntType

#: OP of hg_f32_join.
_OPS = {BinaryKind.ADD: 0, BinaryKind.MUL: 1, BinaryKind.SUB: 5}


def check_float_inputs(layer: Layer, cells: list[Cell]) -> None:
    """Check that only quantizers, moves and float32 joins read float32. Raises HG055."""
    joins = isinstance(layer, BinaryMap | FloatBinary) and any(cell.module == "hg_f32_join" for cell in cells)
    if joins or isinstance(layer, Map | Rearrange | Concatenation | Delay):
        return
    if any(isinstance(source.encoding, FloatKey) for source in sources_of(layer)):
        raise broken(layer.name, "it reads float32, which only a quantizer can.")


def check_operation(cell: Cell, kind: BinaryKind) -> None:
    """Check that hg_f32_join computes the model's operation. Raises HG055."""
    check_parameters(cell, "OP LANES")
    if cell.number("OP") != _OPS.get(kind):
        raise broken(cell.name, f"OP is {cell.number('OP')}, the model computes the {kind.value} of both tensors.")


def check_joint(
    q: QuantizerHardware,
    layer: FloatBinary,
    reach: tuple[ValueRange | None, ValueRange | None],
    elements: Elements,
    memories: Memories,
) -> Summary:
    """Prove a float32 operation on two tensors that no quantizer follows. Raises HG055."""
    f = specialize(with_placeholder_quantizer(layer), q.order, reach)
    places = q.places(f.index, layer.result.shape)
    for side in (0, 1):
        numbers = elements.numbers[layer.inputs[side]][q.order]
        check_reachable(layer, f.index, f.lo[side], f.hi[side], elements, numbers)
    if q.stream.operands is None or q.units[-1].module != "hg_f32_join":
        raise broken(layer.name, f"{q.units[-1].name} ({q.units[-1].module}) joins no float32 numbers.")
    check_operation(q.units[-1], layer.kind)
    for side, stream in enumerate(q.stream.operands):
        _operand(q, f, side, stream, places, memories)
    return Summary(layer.name, "float joint", "float32 units", f.sets, f.pairs, 0)


def check_float_join(
    q: QuantizerHardware, layer: BinaryMap, f: BinaryFunction, places: list[str], memories: Memories
) -> Summary:
    """Prove a float32 operation on two tensors and the quantizer after it. Raises HG055."""
    assert q.stream.operands is not None
    join_index = next(n for n, cell in enumerate(q.units) if cell.module == "hg_f32_join")
    check_operation(q.units[join_index], layer.kind)
    for side, stream in enumerate(q.stream.operands):
        _operand(q, f, side, stream, places, memories)
    g = _after_join(f)
    later_units = q.units[join_index + 1 :]
    if any(cell.module.startswith("hg_f32_") for cell in later_units):
        q.form("operations")
        count = float_pipeline.check(g, list(later_units), memories, _uses(q, f.index, later_units), places)
        return Summary(layer.name, "merge", "float32 units", f.sets, f.pairs, count)
    if not later_units or later_units[0].module != "hg_float_key" or set(later_units[0].parameters) != {"LANES"}:
        raise broken(layer.name, "the float32 number does not go through hg_float_key.")
    module = q.module(later_units[1:], memories)
    first = module.units[0]
    if first.signed or first.in_bits != 32:
        raise broken(layer.name, f"{later_units[1].name} does not read order keys of 32 bits.")
    proof = prove(g, module, q.uses(f.index, module.folds), later_units[-1].name, places)
    q.form("steps" if q.lists_steps else "constants")
    q.steps(proof.runs if q.lists_steps else [], places)
    return Summary(
        layer.name, "merge", f"float32 units + {' + '.join(module.modules)}", f.sets, f.pairs, proof.evaluated
    )


def _operand(
    q: QuantizerHardware, f: BinaryFunction, side: int, stream: StreamContents, places: list[str], memories: Memories
) -> None:
    """Check that the units of one operand are the model's operations before the join."""
    cells = list(stream.units)
    if not cells and isinstance(f.sources[side], FloatKey) and not f.branches[side]:
        return
    if not cells:
        raise broken(f.name, f"operand {'ab'[side]} is a code, not a float32 number.")
    branch = StepFunction(
        f.name,
        f.sources[side],
        f.branches[side],
        f.quantizer,
        f.index,
        f.lo[side],
        f.hi[side],
        f.input_types[side],
        f.output_type,
    )
    bits = cells[0].number("IN_W", 1) if cells[0].module == "hg_f32_decode" else 32
    unit_input = StreamContents(stream.elements, bits, stream.lo, stream.hi)
    check_codes(cells[0].name, unit_input, branch.input_type, bits, None)
    float_pipeline.check_values(branch, cells, memories, _uses(q, f.index, stream.units), places)


def _after_join(f: BinaryFunction) -> StepFunction:
    """The function after the join, of every float32 number.

    It must be equal for -0.0 and 0.0, which operands may confuse.
    """
    keys = np.zeros(f.sets, np.int64)
    type_ = IntType(0, KEY_POS_INF)
    g = StepFunction(f.name, FloatKey(), f.ops, f.quantizer, f.index, keys, keys + KEY_POS_INF, type_, f.output_type)
    plus, minus = (g.evaluate(keys + float_to_key(np.float32(zero))) for zero in (0.0, -0.0))
    if (plus != minus).any():
        raise broken(f.name, "the function after the join distinguishes -0.0 from 0.0.")
    return g


def _uses(q: QuantizerHardware, index: Array, cells: tuple[Cell, ...]) -> dict[int, dict[tuple[int, int], list[int]]]:
    """Number of folds -> (fold, lane) -> parameter sets."""
    fold_counts = {cell.parameters.get("FOLDS") for cell in cells}
    return {n: q.uses(index, n) for n in fold_counts if isinstance(n, int) and n > 0 and q.stream.beats % n == 0}
