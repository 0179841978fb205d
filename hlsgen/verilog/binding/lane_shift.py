"""Binds the realization LaneShift to hg_lane_shift: the constants of each lane, packed into parameters."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.lane_shift import LaneShift
from hlsgen.verilog.binding.memory_files import Binding, Bits


def bind(realization: LaneShift, table: Array, source: IntType, result: IntType) -> Binding:
    """The module of a realization. `table` int64 (1, lanes): the parameter set of each lane, the same in every beat."""
    assert len(table) == 1, "hg_lane_shift has one function a lane"
    lanes = realization.take(table[0])
    low, high = lanes.clamps
    sum_bits, code_bits = int(lanes.width.max()), result.bits + 1
    flags = lanes.unsigned + 2 * low + 4 * high + 8 * (lanes.low == lanes.high)
    return Binding(
        "hg_lane_shift",
        {
            "LANES": table.shape[1],
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "SUM_W": sum_bits,
            "WIDTHS": _packed(lanes.width, 8),
            "LEFTS": _packed(lanes.left_shift, 8),
            "SHIFTS": _packed(lanes.shift, 8),
            "MODES": _packed(lanes.mode, 8),
            "FLAGS": _packed(flags, 8),
            "OFFSETS": _packed(lanes.offset, sum_bits + 1),
            "LOWS": _packed(lanes.low, code_bits),
            "HIGHS": _packed(lanes.high, code_bits),
            "ADD": int(realization.adds),
        },
        "round((x + offset) / 2^shift), each lane its own",
    )


def _packed(values: Array, bits: int) -> Bits:
    mask = (1 << bits) - 1
    numbers = np.asarray(values).astype(np.int64).tolist()
    return Bits(bits * len(numbers), sum((v & mask) << (bits * n) for n, v in enumerate(numbers)))
