"""Proves functions of two tensors that are computed in float32: the units of each operand, hg_f32_join, what follows.

Each unit is the model's operation and rounds once (`models.float_pipeline`), so the operands and their joint are what the
model computes, for all codes. What follows the joint is a function of one float32 number, proven for all of them.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models import float_pipeline
from hlsgen.certify.models.routing import only
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.proof import prove
from hlsgen.certify.quantizers import QuantizerHardware, Summary, reachable
from hlsgen.certify.stream_contents import Elements, StreamContents, readable
from hlsgen.ir import BinaryMap, Concatenation, Delay, FloatBinary, FloatKey, Layer, Map, Rearrange, sources_of
from hlsgen.ir.binary_function import BinaryFunction, specialize, with_placeholder_quantizer
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.step_function import StepFunction
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array, IntType

#: OP of hg_f32_join.
_OPS = {BinaryKind.ADD: 0, BinaryKind.MUL: 1, BinaryKind.SUB: 5}


def check_takes_floats(layer: Layer, own: list[Cell]) -> None:
    """Only quantizers, moves and joints of float32 take float32. Raises HG055."""
    joins = isinstance(layer, BinaryMap | FloatBinary) and any(cell.module == "hg_f32_join" for cell in own)
    if joins or isinstance(layer, Map | Rearrange | Concatenation | Delay):
        return
    if any(isinstance(source.encoding, FloatKey) for source in sources_of(layer)):
        raise broken(layer.name, "it takes float32, which only a quantizer can.")


def check_operation(cell: Cell, kind: BinaryKind) -> None:
    """hg_f32_join computes what the model does of both tensors. Raises HG055."""
    only(cell, "OP LANES")
    if cell.number("OP") != _OPS.get(kind):
        raise broken(cell.name, f"OP is {cell.number('OP')}, the model takes the {kind.value} of both tensors.")


def check_joint(
    q: QuantizerHardware,
    layer: FloatBinary,
    reach: tuple[ValueRange | None, ValueRange | None],
    elements: Elements,
    memories: Memories,
) -> Summary:
    """Proves float32 of two tensors, joined, behind which no quantizer stands. Raises HG055."""
    f = specialize(with_placeholder_quantizer(layer), q.order, reach)
    places = q.places(f.index, layer.result.shape)
    for side in (0, 1):
        numbers = elements.numbers[layer.inputs[side]][q.order]
        reachable(layer, f.index, f.lo[side], f.hi[side], elements, numbers)
    if q.stream.operands is None or q.units[-1].module != "hg_f32_join":
        raise broken(layer.name, f"{q.units[-1].name} ({q.units[-1].module}) joins no float32 numbers.")
    check_operation(q.units[-1], layer.kind)
    for side, stream in enumerate(q.stream.operands):
        _operand(q, f, side, stream, places, memories)
    return Summary(layer.name, "float joint", "float32 units", f.sets, f.pairs, 0)


def check_float_join(
    q: QuantizerHardware, layer: BinaryMap, f: BinaryFunction, places: list[str], memories: Memories
) -> Summary:
    """Raises HG055."""
    assert q.stream.operands is not None
    at = next(n for n, cell in enumerate(q.units) if cell.module == "hg_f32_join")
    check_operation(q.units[at], layer.kind)
    for side, stream in enumerate(q.stream.operands):
        _operand(q, f, side, stream, places, memories)
    g = _behind(f)
    rest = q.units[at + 1 :]
    if any(cell.module.startswith("hg_f32_") for cell in rest):
        q.form("operations")
        count = float_pipeline.check(g, list(rest), memories, _uses(q, f.index, rest), places)
        return Summary(layer.name, "merge", "float32 units", f.sets, f.pairs, count)
    if not rest or rest[0].module != "hg_float_key" or set(rest[0].parameters) != {"LANES"}:
        raise broken(layer.name, "the float32 number does not go through hg_float_key.")
    module = q.module(rest[1:], memories)
    first = module.units[0]
    if first.signed or first.in_bits != 32:
        raise broken(layer.name, f"{rest[1].name} does not take order keys of 32 bits.")
    proof = prove(g, module, q.uses(f.index, module.folds), rest[-1].name, places)
    q.form("steps" if q.lists else "constants")
    q.steps(proof.runs if q.lists else [], places)
    return Summary(
        layer.name, "merge", f"float32 units + {' + '.join(module.modules)}", f.sets, f.pairs, proof.evaluated
    )


def _operand(
    q: QuantizerHardware, f: BinaryFunction, side: int, stream: StreamContents, places: list[str], memories: Memories
) -> None:
    """The units of one operand are the model's operations in front of the joint."""
    cells = list(stream.units)
    if not cells and isinstance(f.sources[side], FloatKey) and not f.branches[side]:
        return
    if not cells:
        raise broken(f.name, f"operand {'ab'[side]} comes as a code, no float32 number.")
    own = StepFunction(
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
    before = StreamContents(stream.elements, bits, stream.lo, stream.hi)
    readable(cells[0].name, before, own.input_type, bits, None)
    float_pipeline.check_values(own, cells, memories, _uses(q, f.index, stream.units), places)


def _behind(f: BinaryFunction) -> StepFunction:
    """What follows the joint, of every float32 number: it must not tell -0.0 from 0.0, which units of operands may not."""
    keys = np.zeros(f.sets, np.int64)
    type_ = IntType(0, KEY_POS_INF)
    g = StepFunction(f.name, FloatKey(), f.ops, f.quantizer, f.index, keys, keys + KEY_POS_INF, type_, f.output_type)
    plus, minus = (g.evaluate(keys + float_to_key(np.float32(zero))) for zero in (0.0, -0.0))
    if (plus != minus).any():
        raise broken(f.name, "what follows the joint tells -0.0 from 0.0.")
    return g


def _uses(q: QuantizerHardware, index: Array, cells: tuple[Cell, ...]) -> dict[int, dict[tuple[int, int], list[int]]]:
    """Number of folds -> (fold, lane) -> sets."""
    found = {cell.parameters.get("FOLDS") for cell in cells}
    return {n: q.uses(index, n) for n in found if isinstance(n, int) and n > 0 and q.stream.beats % n == 0}
