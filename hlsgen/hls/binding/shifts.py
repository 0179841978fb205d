"""Binds the realization Shift: to a fixed-point assignment where ap_fixed has its rounding, otherwise to integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.dataflow.units import Stream
from hlsgen.hls.binding.per_lane import bit_range, lane_constants, rounds, signed_type
from hlsgen.hls.process import Process, process, rom
from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale import LaneShift, Shift

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
#: Roundings of ap_fixed. CEIL is FLOOR with another offset; UP has no equivalent.
AP_MODES = {
    Rounding.ROUND: "AP_RND_CONV",
    Rounding.FLOOR: "AP_TRN",
    Rounding.DOWN: "AP_TRN_ZERO",
    Rounding.HALF_UP: "AP_RND_INF",
    Rounding.HALF_DOWN: "AP_RND_ZERO",
}


def shift(shift_by: Shift, table: Array, source: Stream, result: Stream, fraction: int) -> Process:
    """Call of quantize, or of shift. `fraction`: fraction bits of the result's codes."""
    model_mode = shift_by.mode
    if model_mode == Rounding.CEIL:
        # ceil(y / 2^n) = floor((y + 2^n - 1) / 2^n)
        shift_by = replace(shift_by, mode=Rounding.FLOOR, offset=shift_by.offset + (1 << shift_by.shift) - 1)
    offset = shift_by.offset[table]
    sums = [(x << shift_by.left) + int(b) for x in bit_range(source.type) for b in (offset.min(), offset.max())]
    overflow = _overflow(shift_by, offset, source.type, result.type)
    roms = {"offset": lane_constants(shift_by.offset, table, signed=True)}
    folds: dict[str, Any] = {"FOLDS": len(table), "ROUNDS": rounds(table, source)}
    if shift_by.left == 0 and shift_by.mode in AP_MODES and overflow is not None:
        bits = IntType(min(-1, *sums), max(0, *sums)).bits
        mode = _ap_mode(shift_by, result.type)
        types = {
            "SUM": f"ap_fixed<{bits}, {bits - fraction - shift_by.shift}>",
            "RESULT": f"ap_{'' if result.type.signed else 'u'}fixed<{result.type.bits}, {result.type.bits - fraction}, "
            f"{mode}, {overflow}>",
        }
        summary = f"{model_mode.name} to {types['RESULT']}{_reason_for_mode(model_mode, shift_by, mode)}"
        if not offset.any():
            return process("quantize", summary, **types, BEATS=source.beats)
        return process("quantize", summary, roms, **types, **folds)
    # A shift needs more bits than it drops. Rounding up and the bounds need room.
    bounds = (*sums, max(sums) + (1 << shift_by.shift), -(1 << shift_by.shift), shift_by.low, shift_by.high + 1)
    return process(
        "shift",
        f"(x + offset) / 2^{shift_by.shift - shift_by.left}, {shift_by.mode.name}",
        roms,
        SUM=signed_type(*bounds),
        MODE=f"hg::{MODES[shift_by.mode]}",
        LEFT=shift_by.left,
        SHIFT=shift_by.shift,
        LOW=shift_by.low,
        HIGH=shift_by.high,
        **folds,
    )


def lane_shift(shifts: LaneShift, table: Array, source: Stream) -> Process:
    """Call of lane_shift. `table` int64 (1, lanes)."""
    assert len(table) == 1, "lane_shift has one function a lane"
    lanes = shifts.take(table[0])
    modes = [MODES[Rounding(mode)] for mode in np.unique(lanes.mode).tolist()]
    sums = [
        (x << left_shift) + offset
        for x in bit_range(source.type)
        for left_shift, offset in zip(lanes.left_shift.tolist(), lanes.offset.tolist(), strict=True)
    ]
    room = 1 << int(lanes.shift.max())
    roms = {
        "form": rom(np.stack([lanes.left_shift, lanes.shift, lanes.mode], axis=1), "[lane][left, right, rounding]"),
        "offset": rom(lanes.offset, "[lane]", signed=True),
        "bound": rom(np.stack([lanes.low, lanes.high], axis=1), "[lane][lowest, highest code]", signed=True),
    }
    return process(
        "lane_shift",
        f"round((x + offset) / 2^shift), each lane its own; {', '.join(modes)}",
        roms,
        SUM=signed_type(*sums, max(sums) + room, -room, int(lanes.low.min()), int(lanes.high.max()) + 1),
        BEATS=source.beats,
    )


def _ap_mode(shift_by: Shift, result: IntType) -> str:
    if shift_by.shift == 0 or (shift_by.mode == Rounding.DOWN and not result.signed):
        # No bits are dropped, or all negative numbers saturate to zero.
        return "AP_TRN"
    return AP_MODES[shift_by.mode]


def _reason_for_mode(model_mode: Rounding, shift_by: Shift, ap_mode: str) -> str:
    """Why the ap_fixed type names another rounding than the model, "" if it names the same one."""
    if ap_mode == AP_MODES.get(model_mode):
        return ""
    if shift_by.shift == 0:
        return f"; {ap_mode}, as no bits are dropped"
    if model_mode == Rounding.CEIL:
        return f"; {ap_mode}, as the offset includes 2^{shift_by.shift} - 1"
    return f"; {ap_mode}, as negative numbers saturate to 0"


def _overflow(shift_by: Shift, offset: Array, source: IntType, result: IntType) -> str | None:
    """The overflow mode of ap_fixed that clamps like `shift_by` for all inputs in `source`, or None."""
    low, high = bit_range(result)
    extremes = np.array([source.lo, source.hi])[:, None, None]
    unclamped = Shift(shift_by.left, shift_by.shift, shift_by.mode, offset, -(1 << 62), 1 << 62).apply(extremes)
    for name, lower_bound in (("AP_SAT", low), ("AP_SAT_SYM", -high)):
        if result.signed or name == "AP_SAT":
            # Both clamp a function that never falls: if they agree at both ends, they agree between them.
            clamped = np.clip(unclamped, shift_by.low, shift_by.high)
            if (np.clip(unclamped, lower_bound, high) == clamped).all():
                return name
    return None
