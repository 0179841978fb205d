"""Binds realizations that multiply: integers with a multiplier, as float32 does, and operands that come in pairs."""

from __future__ import annotations

from typing import Any

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import of_lanes, rounds, signed_type, whole_type
from hlsgen.hls.binding.shifts import MODES
from hlsgen.hls.process import Process, process
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import FloatScale, PairAdd, PairScale, Scale


def scale(found: Scale, table: Array, source: Stream) -> Process:
    """One of the functions of scale.hpp."""
    multiplier = found.multiplier[table].astype(object)
    addends = [found.addend] if found.below is None else [found.addend, found.below]
    products = [x * m for x in whole_type(source.type) for m in (multiplier.min(), multiplier.max())]
    sums = [p + int(a) for p in products for side in addends for a in (side[table].min(), side[table].max())]
    unit = 1 << found.shift
    # Room for the rounding, for the bounds, for the negative, and for more bits than the shift drops.
    sum_ = signed_type(
        *(s + d for s in (*sums, *(-s for s in sums)) for d in (-2 * unit, 2 * unit)), found.low, found.high
    )
    roms = {
        "multiplier": of_lanes(found.multiplier, table, signed=True),
        "addend": of_lanes(found.addend, table, signed=True),
    }
    arguments: dict[str, Any] = {
        "SUM": sum_, "SHIFT": found.shift, "LOW": found.low, "HIGH": found.high, "FOLDS": len(table),
        "ROUNDS": rounds(table, source),
    }  # fmt: skip
    about = f"x * multiplier / 2^{found.shift}"
    if found.odd is not None:
        assert found.centre is None, "a scale rounds to nearest, or has two sides"
        roms["odd"] = of_lanes(found.odd, table)
        return process("scale_nearest", f"{about}, to nearest", roms, header="scale", **arguments)
    if found.centre is None or found.below is None:
        return process("scale", about, roms, **arguments)
    if found.mirrored and ((found.addend >= 0) & (found.addend < unit)).all():
        return process("scale_mirrored", f"{about}, with the sign of x", roms, header="scale", **arguments)
    roms |= {"centre": of_lanes(found.centre, table, signed=True), "below": of_lanes(found.below, table, signed=True)}
    return process("scale_sides", f"{about}, on either side of a centre", roms, header="scale", **arguments)


def float_scale(found: FloatScale, table: Array, source: Stream) -> Process:
    """The product as float32 has it."""
    sums = [x + int(b) for x in whole_type(source.type) for b in (found.offset[table].min(), found.offset[table].max())]
    roms = {
        "mantissa": of_lanes(found.mantissa, table), "left": of_lanes(found.left, table),
        "offset": of_lanes(found.offset, table, signed=True), "zero_point": of_lanes(found.zero_point, table, signed=True),
    }  # fmt: skip
    whole = 1 << max(1, found.bits + 1 + found.mantissa_bits - found.shift)
    zeros = [int(z) for z in (found.zero_point.min(), found.zero_point.max())]
    return process(
        "scale_f32", f"float32 product, {found.mantissa_bits}-bit mantissas", roms,
        SUM=signed_type(*sums, *(-s for s in sums)),
        CODE=signed_type(*(z + d for z in zeros for d in (-whole, whole)), -whole, whole), U_BITS=found.bits,
        M_BITS=found.mantissa_bits, MOST_LEFT=int(found.left.max()), SHIFT=found.shift, LOW=found.low, HIGH=found.high,
        FOLDS=len(table), ROUNDS=rounds(table, source),
    )  # fmt: skip


def pair_add(found: PairAdd, source: Stream) -> Process:
    """The quantized addition of operands of 8 bits."""
    p = found.parameters
    return process(
        "pair_add", f"quantized sum, * {p.so} / 2^{p.shift}", header="pair", ZP0=p.zp0, ZP1=p.zp1, ZPO=p.zpo, S0=p.s0,
        S1=p.s1, SO=p.so, SHIFT=p.shift, BEATS=source.beats,
    )  # fmt: skip


def pair_scale(found: PairScale, source: Stream) -> Process:
    """The sum or product of two operands of 8 bits, scaled."""
    signed = found.pair.dtype == "int8"
    operand = (-128, 127) if signed else (0, 255)
    if found.product:
        a, b = ([x - zero for x in operand] for zero in found.pair.zeros[:2])
        totals = [x * y * found.first for x in a for y in b]
    else:
        totals = [x * found.first + y * found.second for x in operand for y in operand]
    unit = 1 << found.shift
    sums = [t + found.offset + d for t in totals for d in (-unit, 0, unit)]
    # The constants are of this type as well.
    bounds = (*sums, -unit, unit, found.first, found.second, found.offset, found.pair.type.lo, found.pair.type.hi)
    operands = {"A": f"ap_{'int' if signed else 'uint'}<8>", "SUM": signed_type(*bounds)}
    rest = {
        "FIRST": found.first, **({} if found.product else {"SECOND": found.second}), "OFFSET": found.offset,
        "MODE": f"hg::{MODES[found.mode]}", "SHIFT": found.shift, "LOW": found.pair.type.lo, "HIGH": found.pair.type.hi,
        "BEATS": source.beats,
    }  # fmt: skip
    if found.product:
        zeros = {"ZA": found.pair.zeros[0], "ZB": found.pair.zeros[1]}
        return process("pair_scale_product", "scaled product", header="pair", **operands, **zeros, **rest)
    return process("pair_scale", "scaled sum", header="pair", **operands, **rest)
