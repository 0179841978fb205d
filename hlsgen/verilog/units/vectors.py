"""Units that compute along a vector: softmax, normalization, arg max, integer functions."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow.norm_units import NormUnit, root_bits
from hlsgen.dataflow.row_sizes import NormSizes, ShareSizes, fixed_point_sum, newton_units
from hlsgen.dataflow.units import (
    ArgMaxUnit,
    Node,
    NormMoments,
    NormRoot,
    NormScale,
    RowsUnit,
    SoftmaxUnit,
    Stream,
)
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share, result_type
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.binding import rows
from hlsgen.verilog.binding.memory_files import Binding, Parameter
from hlsgen.verilog.binding.norm import bind_moments, bind_root, bind_scale
from hlsgen.verilog.binding.softmax import bind_softmax
from hlsgen.verilog.memory_sizes import buffer, memory
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, beat_registers, cycles, without_style


def _bind_argmax(node: Node, unit: ArgMaxUnit) -> Binding:
    source, result = node.source, node.result
    parameters: dict[str, Parameter] = {
        "LANES": source.lanes,
        "BEATS": unit.beats,
        "IN_W": source.type.bits,
        "IN_SIGNED": int(source.type.signed),
        "INDEX_W": result.type.bits,
    }
    return Binding("hg_argmax", parameters, "index of the maximum")


def _argmax_parts(node: Node, _unit: ArgMaxUnit, _options: CostOptions) -> Parts:
    return Parts("ArgMaxUnit", {"data": float(node.source.bits + node.result.bits)}, beat_registers(node))


def _rows_latency(unit: RowsUnit) -> int:
    """Cycles from the cycle in which hg_rows_buffer reads a beat to the output of that beat."""
    match unit.function:
        case BelowLargest():
            return 2
        case Share():
            return 2 + result_type(unit.function, unit.source).bits
        case FixedPointShare():
            return 6
        case IntegerNorm():
            return 6 + NormSizes.of(unit.function, unit.source, unit.count).quotient
        case _:
            assert_never(unit.function)


def _moments_latency(unit: NormMoments) -> int:
    return 5 + (unit.rows.length // unit.beats - 1).bit_length() // unit.adders_per_stage


def _softmax_latency(unit: SoftmaxUnit) -> int:
    return (6 if unit.factors is None else 15) + unit.delay + unit.scaling


def _normalizing_parts(node: Node, unit: NormUnit, options: CostOptions) -> Parts:
    return _normalizing(unit, node.source, options.dsp)


def _softmax_parts(node: Node, unit: SoftmaxUnit, options: CostOptions) -> Parts:
    """A buffer of vectors, lookup tables and a product for each lane, one sum and one division for each vector."""
    dsp, family = options.dsp, options.family
    lanes, bits, distance = unit.lanes, node.source.type.bits, max(1, unit.last.bit_length())
    power = 32 if unit.in_order else unit.fraction + 1
    parts = Parts(
        "SoftmaxUnit", {"control": 60.0, "codes": 3.0 * lanes * bits}, {"control": 60.0, "in": 3.0 * node.source.bits}
    )
    if unit.in_order:
        parts.lut |= {"sum": 450.0, "division": 1850.0}
        parts.ff |= {"sum": 32.0, "division": 900.0}
    else:
        stages = -(-12 // min(12, unit.beats))
        parts.lut |= {"sum": 140.0 + lanes * power, "division": 25 + (50.0 if unit.beats == 1 else 100.0) * stages}
        parts.ff |= {"sum": 100.0 + 1.7 * lanes * power, "division": 60.0 + 75.0 * stages}
        blocks = bool(dsp and not unit.tiny)
        parts.lut["products"] = lanes * (52.0 if blocks else 1580.0 if unit.tiny else 1170.0)
        parts.ff["products"] = lanes * (60.0 if blocks else 320.0 if unit.tiny else 170.0)
        parts.dsp = 2 * lanes * blocks * -(-24 // dsp) if blocks else 0
    tables, waiting = [(unit.last + 1, power), (unit.last + 1, 32)], distance
    if unit.factors is not None:
        bits, waiting = unit.factors.bits, 31
        tables = [(len(unit.factors.mantissas), bits + 8), (len(unit.factors.lows), bits + 1)]
        parts.lut["factors"], parts.ff["factors"] = lanes * (0.6 * bits * bits + 330), lanes * (18.0 * bits + 330)
        parts.lut["places"], parts.ff["places"] = lanes * power * 3.0, lanes * float(power)
    style = 2 if dsp and unit.last >= 64 and unit.factors is None and not unit.in_order else 0
    for words, width in tables:
        for _ in range(lanes):
            parts.hold("tables", memory(words, width, style, family))
        parts.ff["tables"] = parts.ff.get("tables", 0.0) + lanes * width * (1 if style else 2)
    if unit.mask is not None:
        parts.hold("tables", memory(unit.mask.size // lanes, 2 * lanes, style, family))
    parts.hold("buffer", buffer(2 * unit.beats, node.source.bits + lanes * (unit.mask is not None), family))
    parts.hold("waiting", buffer(unit.delay, lanes * waiting, family))
    return parts


def _rows_parts(node: Node, unit: RowsUnit, options: CostOptions) -> Parts:
    """The memory of vectors, the sum or comparison on the way in, and a divider per lane on the way out."""
    family = options.family
    lanes, source, result = node.source.lanes, node.source, node.result
    parts = Parts("RowsUnit", {"control": 40.0}, {"control": 40.0, "in": 2.0 * source.bits, "out": float(result.bits)})
    parts.hold("buffer", buffer(2 * unit.beats, source.bits, family))
    match unit.function:
        case BelowLargest():
            parts.lut["largest"] = 2.0 * source.bits + result.bits
        case Share():
            sizes = ShareSizes.of(unit.function, unit.source, unit.count)
            bits = result.type.bits
            parts.lut["divide"] = 2.0 * lanes * bits * (sizes.sum + 1)
            parts.ff["divide"] = 1.0 * lanes * bits * (sizes.sum + bits) + bits * sizes.sum
            parts.lut["sums"] = 1.2 * lanes * sizes.sum
            for _ in range(lanes):
                parts.hold("weights", memory(1 << unit.source.bits, sizes.weight, family=family))
                parts.hold("numbers", memory(1 << unit.source.bits, sizes.number, family=family))
        case FixedPointShare():
            _add_fixed_share_parts(parts, lanes, unit, options)
        case IntegerNorm():
            norm_sizes = NormSizes.of(unit.function, unit.source, unit.count)
            products = unit.source.bits**2 / 2 + (unit.source.bits + 2) * norm_sizes.weight / 2
            products += norm_sizes.bias * norm_sizes.root / 2 if unit.function.bias.any() else 0.0
            parts.lut["products"] = lanes * products
            parts.lut["divide"] = 2.0 * lanes * norm_sizes.quotient * (norm_sizes.root + 1)
            parts.ff["divide"] = 1.0 * lanes * norm_sizes.quotient * (norm_sizes.root + norm_sizes.quotient)
            parts.lut["root"] = 3.0 * norm_sizes.root * norm_sizes.squares
            parts.ff["root"] = 2.0 * norm_sizes.root * norm_sizes.squares
            parts.hold("places", memory(unit.beats, lanes * (norm_sizes.weight + norm_sizes.bias), family=family))
        case _:
            assert_never(unit.function)
    return parts


def _add_fixed_share_parts(parts: Parts, lanes: int, unit: RowsUnit, options: CostOptions) -> None:
    """A multiplier for steps of the reciprocal, and one per lane: each of 31 by 32 bits, in two halves."""
    units = newton_units(unit.beats)
    for name, count in (("reciprocal", units), ("products", lanes)):
        parts.lut[name] = count * (180.0 if options.dsp else 1250.0)
        parts.ff[name] = count * 330.0
    parts.lut["reciprocal"] += 3.0 * fixed_point_sum(unit.count)
    parts.lut["sums"] = 1.2 * lanes * fixed_point_sum(unit.count)
    for _ in range(lanes):
        parts.hold("exponentials", memory(1 << unit.source.bits, 31, family=options.family))
    if options.dsp:
        parts.dsp = 4 * (units + lanes)


def _normalizing(unit: NormUnit, source: Stream, dsp: int) -> Parts:
    """Parts of the normalizing units, counted from the structure of the modules."""
    match unit:
        case NormMoments(rows, _, moment):
            bits, sum_ = IntType(min(-1, rows.ends[0]), max(0, rows.ends[1])).bits, rows.sum_bits
            lut, ff = source.lanes * 1.15 * bits**2 + moment, float(source.lanes * bits**2 + 2 * moment + sum_)
            if not dsp and rows.centered:
                lut, ff = lut + 1.85 * sum_**2, ff + 2 * moment + sum_
            blocks = (-(-sum_ // 17)) ** 2 * rows.centered if dsp else 0
            return Parts("NormMoments", {"data": lut, "control": 10.0}, {"data": ff, "control": 7.0}, dsp=blocks)
        case NormRoot(constants, moment, sum_, ways):
            root_width, roots, blocks = root_bits(unit), unit.roots, 0
            lut, ff = (
                roots * (5.2 * (root_width + 28) + 45) + 2.0 * root_width,
                roots * (4.0 * root_width + 86) + 2.0 * root_width,
            )
            if unit.serial:
                lut, ff = lut + root_width, ff + 2.0 * root_width + moment
                if unit.digit > 1:
                    blocks = -(-constants.factor.bit_length() // 17) if dsp else 0
                    lut += 0.0 if dsp else unit.digit * 0.6 * root_width
            waiting = buffer(ways, constants.step_bits + 24 + sum_).lut if ways > 1 else 0.0
            lut_parts = {"data": lut, "waiting": waiting, "control": 40.0}
            return Parts("NormRoot", lut_parts, {"data": ff, "control": 60.0}, dsp=blocks)
        case NormScale(_, _, element, _):
            lut = source.lanes * (element * 6.0 + 60 + (0.0 if dsp else 50.0 * element))
            ff = source.lanes * (element * (3.2 if dsp else 6.2) + 56)
            blocks = source.lanes * -(-element // 17) * -(-24 // dsp) if dsp else 0
            return Parts("NormScale", {"data": lut, "control": 12.0}, {"data": ff, "control": 73.0}, dsp=blocks)
        case _:
            assert_never(unit)


ROWS = UnitSpec(without_style(rows.bind), _rows_latency, _rows_parts, ready_hops=None)
SOFTMAX = UnitSpec(without_style(bind_softmax), _softmax_latency, _softmax_parts, ready_hops=None)
ARG_MAX = UnitSpec(without_style(_bind_argmax), cycles(2), _argmax_parts, ready_hops=1)
NORM_MOMENTS = UnitSpec[NormMoments](
    lambda node, unit, _: bind_moments(unit, node.source), _moments_latency, _normalizing_parts, ready_hops=1
)
NORM_ROOT = UnitSpec[NormRoot](
    lambda _, unit, __: bind_root(unit), lambda unit: unit.cycles, _normalizing_parts, ready_hops=None
)
NORM_SCALE = UnitSpec[NormScale](
    lambda node, unit, _: bind_scale(unit, node.source), cycles(8), _normalizing_parts, ready_hops=1
)
