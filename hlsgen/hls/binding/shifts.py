"""Binds the realization Shift: as an assignment of fixed-point numbers where ap_fixed has its rounding, else in integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import of_lanes, rounds, signed_type, whole_type
from hlsgen.hls.process import Process, process
from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale import Shift

#: Roundings of rounding.hpp.
MODES = {
    Rounding.ROUND: "round_half_even",
    Rounding.CEIL: "round_up",
    Rounding.FLOOR: "round_down",
    Rounding.UP: "round_away",
    Rounding.DOWN: "round_to_zero",
    Rounding.HALF_UP: "round_half_away",
    Rounding.HALF_DOWN: "round_half_to_zero",
}
#: Roundings of ap_fixed. CEIL is FLOOR with another offset, UP is none.
AP_MODES = {
    Rounding.ROUND: "AP_RND_CONV",
    Rounding.FLOOR: "AP_TRN",
    Rounding.DOWN: "AP_TRN_ZERO",
    Rounding.HALF_UP: "AP_RND_INF",
    Rounding.HALF_DOWN: "AP_RND_ZERO",
}


def shift(found: Shift, table: Array, source: Stream, result: Stream, fraction: int) -> Process:
    """The call of quantize, or of shift. `fraction`: bits of the result's codes behind the binary point."""
    if found.mode == Rounding.CEIL:
        # ceil(y / 2^n) = floor((y + 2^n - 1) / 2^n)
        found = replace(found, mode=Rounding.FLOOR, offset=found.offset + (1 << found.shift) - 1)
    offset = found.offset[table]
    sums = [(x << found.left) + int(b) for x in whole_type(source.type) for b in (offset.min(), offset.max())]
    overflow = _overflow(found, offset, source.type, result.type)
    roms = {"offset": of_lanes(found.offset, table, signed=True)}
    folds: dict[str, Any] = {"FOLDS": len(table), "ROUNDS": rounds(table, source)}
    if found.left == 0 and found.mode in AP_MODES and overflow is not None:
        bits = IntType(min(-1, *sums), max(0, *sums)).bits
        mode = _ap_mode(found, result.type)
        types = {
            "SUM": f"ap_fixed<{bits}, {bits - fraction - found.shift}>",
            "RESULT": f"ap_{'' if result.type.signed else 'u'}fixed<{result.type.bits}, {result.type.bits - fraction}, "
            f"{mode}, {overflow}>",
        }
        about = f"{found.mode.name} to {types['RESULT']}"
        if not offset.any():
            return process("quantize", about, **types, BEATS=source.beats)
        return process("quantize", about, roms, **types, **folds)
    # A shift needs more bits than it drops; rounding up and the bounds need room.
    bounds = (*sums, max(sums) + (1 << found.shift), -(1 << found.shift), found.low, found.high + 1)
    return process(
        "shift", f"(x + offset) / 2^{found.shift - found.left}, {found.mode.name}", roms, SUM=signed_type(*bounds),
        MODE=f"hg::{MODES[found.mode]}", LEFT=found.left, SHIFT=found.shift, LOW=found.low, HIGH=found.high, **folds,
    )  # fmt: skip


def _ap_mode(found: Shift, result: IntType) -> str:
    if found.shift == 0 or (found.mode == Rounding.DOWN and not result.signed):
        # Nothing is dropped; or what is below zero saturates to zero, however it is rounded.
        return "AP_TRN"
    return AP_MODES[found.mode]


def _overflow(found: Shift, offset: Array, source: IntType, result: IntType) -> str | None:
    """The overflow of ap_fixed that clamps as `found` does, at all inputs in `source`; None if there is none."""
    low, high = whole_type(result)
    at = np.array([source.lo, source.hi])[:, None, None]
    free = Shift(found.left, found.shift, found.mode, offset, -(1 << 62), 1 << 62).apply(at)
    for name, least in (("AP_SAT", low), ("AP_SAT_SYM", -high)):
        if result.signed or name == "AP_SAT":
            # Both clamp a function that does not fall: what is equal at both ends is equal between them.
            wanted = np.clip(free, found.low, found.high)
            if (np.clip(free, least, high) == wanted).all():
                return name
    return None
