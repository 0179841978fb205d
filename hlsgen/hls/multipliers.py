"""DSP blocks of a C++ core: every product of two numbers, and every float32 operation that Vitis builds from them.

Vitis binds a product that is added to a sum to a DSP block, also a narrow one. It leaves other products to synthesis,
which builds narrow ones from LUTs. This count is therefore an upper bound.

Weights and multipliers of quantizers count as factors although they are constants of the source: Vitis takes a DSP
block if such a constant has many bits.
"""

from __future__ import annotations

from hlsgen import rescale
from hlsgen.dataflow.norm_units import NormMoments, NormRoot, NormScale, root_bits
from hlsgen.dataflow.row_sizes import NormSizes
from hlsgen.dataflow.softmax_unit import SoftmaxUnit
from hlsgen.dataflow.units import (
    ConvUnit,
    DynamicMatVec,
    FloatUnit,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    Product,
    RescaleUnit,
    RowsUnit,
)
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share
from hlsgen.rescale.realize.float_ops import Arithmetic, ToFloat
from hlsgen.rescale.realize.multiplier_cost import dsp_blocks

#: DSP blocks of a float32 addition and multiplication of Vitis' default cores.
_FLOAT_ADDITION, _FLOAT_MULTIPLICATION = 2, 3
#: Bits of a float32 significand, and of the numbers of a fixed-point reciprocal.
_SIGNIFICAND, _RECIPROCAL = 24, 32
#: Products of a fixed-point reciprocal: the first guess, and two for each of three steps.
_RECIPROCAL_PRODUCTS = 7


def dsp_of(node: Node) -> int:
    """DSP blocks of the process of a node, at most."""
    lanes = node.result.lanes
    match unit := node.unit:
        case MatVec() | ConvUnit() | GroupedMatVec():
            windows = unit.windows if isinstance(unit, MatVec) else 1
            integer = unit.product is Product.INTEGER
            return windows * unit.lanes * dsp_blocks(node.source.type.bits, weight_bits(unit)) if integer else 0
        case DynamicMatVec():
            return unit.pe * unit.simd * dsp_blocks(*(operand.bits for operand in unit.operands))
        case RescaleUnit():
            return lanes * _of_realization(unit.realization, node.source.type.bits)
        case JoinStreams(packed=False, factors=None):
            a, b = (stream.type.bits + 1 for stream in node.sources)
            return lanes * (_of_float(unit.floats) if unit.floats is not None else dsp_blocks(a, b))
        case FloatUnit(unit=Arithmetic(op)):
            return lanes * {"ADD": _FLOAT_ADDITION, "MUL": _FLOAT_MULTIPLICATION}.get(op, 0)
        case FloatUnit(unit=ToFloat() as conversion):
            return lanes * dsp_blocks(node.source.type.bits + 1, int(conversion.mantissa.max()).bit_length())
        case NormMoments() | NormRoot() | NormScale():
            return _of_norm(node, unit)
        case SoftmaxUnit():
            return _of_softmax(unit)
        case RowsUnit():
            return _of_rows(node, unit)
        case _:
            return 0


def _of_realization(realization: rescale.Single, bits: int) -> int:
    """DSP blocks of one lane of a quantizer of codes with these bits."""
    match realization:
        case rescale.Scale():
            return dsp_blocks(bits, realization.multiplier_bits)
        case rescale.FloatScale():
            return dsp_blocks(realization.bits + 1, realization.mantissa_bits)
        case rescale.Lines():
            return dsp_blocks(bits, realization.multiplier_bits) + dsp_blocks(
                realization.fraction + 1, realization.rise_bits + 1
            )
        case rescale.PairAdd():
            return 3
        case rescale.PairScale():
            return 2
        case _:
            return 0


def _of_float(kind: BinaryKind) -> int:
    return _FLOAT_MULTIPLICATION if kind is BinaryKind.MUL else _FLOAT_ADDITION


def _of_norm(node: Node, unit: NormMoments | NormRoot | NormScale) -> int:
    match unit:
        case NormMoments():
            q, total = node.source.type.bits + 1, unit.rows.sum_bits
            return node.source.lanes * dsp_blocks(q, q) + (dsp_blocks(total, total) if unit.rows.centered else 0)
        case NormRoot():
            return dsp_blocks(unit.moment_bits, root_bits(unit) - unit.moment_bits + 1)
        case NormScale():
            return node.result.lanes * dsp_blocks(unit.element_bits, _SIGNIFICAND)


def _of_softmax(unit: SoftmaxUnit) -> int:
    if unit.in_order:
        return unit.lanes * _FLOAT_ADDITION
    powers = 0 if unit.factors is None else dsp_blocks(unit.factors.bits, unit.factors.bits + 1)
    return unit.lanes * (dsp_blocks(_SIGNIFICAND, _SIGNIFICAND) + powers)


def _of_rows(node: Node, unit: RowsUnit) -> int:
    bits, lanes = node.source.type.bits, node.source.lanes
    match unit.function:
        case BelowLargest() | Share():
            return 0
        case FixedPointShare():
            return (_RECIPROCAL_PRODUCTS + lanes) * dsp_blocks(_RECIPROCAL, _RECIPROCAL)
        case IntegerNorm():
            sizes = NormSizes.of(unit.function, unit.source, unit.count)
            mean = 2 * dsp_blocks(sizes.mean, sizes.sum) if unit.function.centred else 0
            root = sizes.root * dsp_blocks(sizes.root, sizes.root)
            return mean + root + lanes * (dsp_blocks(bits, bits) + dsp_blocks(bits + 1, sizes.weight))
