"""Binds multiplying realizations: integer multipliers, float32 products in integers, and packed operand pairs."""

from __future__ import annotations

from typing import Any

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import bit_range, lane_constants, rounds, signed_type
from hlsgen.hls.binding.shifts import MODES
from hlsgen.hls.process import Process, process
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import FloatScale, PairAdd, PairScale, Scale


def scale(scaling: Scale, table: Array, source: Stream) -> Process:
    """Call of a function of scale.hpp."""
    multiplier = scaling.multiplier[table].astype(object)
    addends = [scaling.addend] if scaling.below is None else [scaling.addend, scaling.below]
    products = [x * m for x in bit_range(source.type) for m in (multiplier.min(), multiplier.max())]
    sums = [p + int(a) for p in products for side in addends for a in (side[table].min(), side[table].max())]
    one_code = 1 << scaling.shift
    # Room for rounding, bounds, negative values, and more bits than the shift drops.
    sum_type = signed_type(
        *(s + d for s in (*sums, *(-s for s in sums)) for d in (-2 * one_code, 2 * one_code)), scaling.low, scaling.high
    )
    roms = {
        "multiplier": lane_constants(scaling.multiplier, table, signed=True),
        "addend": lane_constants(scaling.addend, table, signed=True),
    }
    arguments: dict[str, Any] = {
        "SUM": sum_type,
        "SHIFT": scaling.shift,
        "LOW": scaling.low,
        "HIGH": scaling.high,
        "FOLDS": len(table),
        "ROUNDS": rounds(table, source),
    }
    summary = f"x * multiplier / 2^{scaling.shift}"
    if scaling.odd is not None:
        assert scaling.centre is None, "a scale rounds to nearest, or has two sides"
        roms["odd"] = lane_constants(scaling.odd, table)
        return process("scale_nearest", f"{summary}, to nearest", roms, header="scale", **arguments)
    if scaling.centre is None or scaling.below is None:
        return process("scale", summary, roms, **arguments)
    if scaling.mirrored and ((scaling.addend >= 0) & (scaling.addend < one_code)).all():
        return process("scale_mirrored", f"{summary}, with the sign of x", roms, header="scale", **arguments)
    roms |= {
        "centre": lane_constants(scaling.centre, table, signed=True),
        "below": lane_constants(scaling.below, table, signed=True),
    }
    return process(
        "scale_sides", f"{summary}, with an addend for each side of a centre", roms, header="scale", **arguments
    )


def float_scale(scaling: FloatScale, table: Array, source: Stream) -> Process:
    """Call of a product with float32 rounding."""
    sums = [
        x + int(b) for x in bit_range(source.type) for b in (scaling.offset[table].min(), scaling.offset[table].max())
    ]
    roms = {
        "mantissa": lane_constants(scaling.mantissa, table),
        "left": lane_constants(scaling.left, table),
        "offset": lane_constants(scaling.offset, table, signed=True),
        "zero_point": lane_constants(scaling.zero_point, table, signed=True),
    }
    largest_product = 1 << max(1, scaling.bits + 1 + scaling.mantissa_bits - scaling.shift)
    zero_points = [int(z) for z in (scaling.zero_point.min(), scaling.zero_point.max())]
    return process(
        "scale_f32",
        f"float32 product, {scaling.mantissa_bits}-bit mantissas",
        roms,
        SUM=signed_type(*sums, *(-s for s in sums)),
        CODE=signed_type(
            *(z + d for z in zero_points for d in (-largest_product, largest_product)),
            -largest_product,
            largest_product,
        ),
        U_BITS=scaling.bits,
        M_BITS=scaling.mantissa_bits,
        MOST_LEFT=int(scaling.left.max()),
        SHIFT=scaling.shift,
        LOW=scaling.low,
        HIGH=scaling.high,
        FOLDS=len(table),
        ROUNDS=rounds(table, source),
    )


def pair_add(addition: PairAdd, source: Stream) -> Process:
    """Call of the quantized addition of 8-bit operands."""
    parameters = addition.parameters
    return process(
        "pair_add",
        f"quantized sum, * {parameters.so} / 2^{parameters.shift}",
        header="pair",
        ZP0=parameters.zp0,
        ZP1=parameters.zp1,
        ZPO=parameters.zpo,
        S0=parameters.s0,
        S1=parameters.s1,
        SO=parameters.so,
        SHIFT=parameters.shift,
        BEATS=source.beats,
    )


def pair_scale(scaling: PairScale, source: Stream) -> Process:
    """Call of the scaled sum or product of two 8-bit operands."""
    signed = scaling.pair.dtype == "int8"
    operand = (-128, 127) if signed else (0, 255)
    if scaling.product:
        a, b = ([x - zero for x in operand] for zero in scaling.pair.zeros[:2])
        totals = [x * y * scaling.first for x in a for y in b]
    else:
        totals = [x * scaling.first + y * scaling.second for x in operand for y in operand]
    one_code = 1 << scaling.shift
    sums = [t + scaling.offset + d for t in totals for d in (-one_code, 0, one_code)]
    # The constants have this type, too.
    bounds = (
        *sums,
        -one_code,
        one_code,
        scaling.first,
        scaling.second,
        scaling.offset,
        scaling.pair.type.lo,
        scaling.pair.type.hi,
    )
    operands = {"A": f"ap_{'int' if signed else 'uint'}<8>", "SUM": signed_type(*bounds)}
    other_arguments = {
        "FIRST": scaling.first,
        **({} if scaling.product else {"SECOND": scaling.second}),
        "OFFSET": scaling.offset,
        "MODE": f"hg::{MODES[scaling.mode]}",
        "SHIFT": scaling.shift,
        "LOW": scaling.pair.type.lo,
        "HIGH": scaling.pair.type.hi,
        "BEATS": source.beats,
    }
    if scaling.product:
        zero_points = {"ZA": scaling.pair.zeros[0], "ZB": scaling.pair.zeros[1]}
        return process(
            "pair_scale_product", "scaled product", header="pair", **operands, **zero_points, **other_arguments
        )
    return process("pair_scale", "scaled sum", header="pair", **operands, **other_arguments)
