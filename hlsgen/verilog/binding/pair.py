"""Binds the realizations PairAdd and PairScale to hg_pair_add and hg_pair_scale: functions of two operands."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits


def bind(realization: PairAdd | PairScale, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    del source, name
    lanes = table.shape[1]
    if isinstance(realization, PairAdd):
        p = realization.parameters
        return Binding(
            "hg_pair_add",
            {
                "LANES": lanes,
                "ZP0": Bits(16, p.zp0),
                "ZP1": Bits(16, p.zp1),
                "ZPO": Bits(16, p.zpo),
                "S0": Bits(16, p.s0),
                "S1": Bits(16, p.s1),
                "SO": Bits(8, p.so),
                "SH": Bits(8, p.shift),
            },
            "quantized add of two operands",
        )
    width = max(signed_bits(np.array([v])) for v in (realization.first, realization.second))
    za, zb, _ = realization.pair.zeros or (0, 0, 0)
    bits = signed_bits(np.array([realization.offset]))
    return Binding(
        "hg_pair_scale",
        {
            "LANES": lanes,
            "SIGNED": int(realization.pair.dtype == "int8"),
            "PRODUCT": int(realization.product),
            "ZA": Bits(9, za),
            "ZB": Bits(9, zb),
            "M_W": width,
            "MA": Bits(width, realization.first),
            "MB": Bits(width, realization.second),
            "R_W": bits,
            "R": Bits(bits, realization.offset),
            "SHIFT": realization.shift,
            "EVEN": int(realization.even),
            "OUT_W": result.bits,
            "LOW": Bits(result.bits + 1, realization.pair.type.lo),
            "HIGH": Bits(result.bits + 1, realization.pair.type.hi),
        },
        "product of two operands" if realization.product else "sum of two operands",
    )
