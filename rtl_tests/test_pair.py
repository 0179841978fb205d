"""hg_pair_scale and hg_pair_add: functions of two operands, against hlsgen.rescale.pair, on every pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Stream, pack

from hlsgen.ir.ops import Pair, PairOp
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.verilog.binding import pair as binding
from hlsgen.verilog.binding.memory_files import Bits

INT8, UINT8 = IntType(-128, 127), IntType(0, 255)
SIGNED = Pair(PairOp.ADD, INT8, "int8")
UNSIGNED = Pair(PairOp.MUL, UINT8, "uint8", zeros=(255, 0, 9))
CASES = [
    (PairScale(SIGNED, False, -1, 1 << 20, (1 << 27) - 5, 20, False), "icarus"),
    (PairScale(SIGNED, False, 1, 1, 0, 1, True), "icarus"),
    (PairScale(SIGNED, False, 77, -55, -1900, 7, True), "verilator"),
    (PairScale(UNSIGNED, True, -3001, 0, 1 << 19, 18, True), "verilator"),
    (PairScale(Pair(PairOp.MUL, INT8, "int8", zeros=(-128, 127, 0)), True, 5, 0, 77, 9, False), "icarus"),
    (PairAdd(SIGNED, Parameters(-32768, 32767, 5, 65535, 40000, 255, 20)), "verilator"),
    (PairAdd(SIGNED, Parameters(3, -9, 5, 400, 333, 7, 14)), "icarus"),
]
LANES = 32


@pytest.mark.cases(1)
@pytest.mark.parametrize(("realization", "simulator"), CASES)
def test_every_pair(simulate: Callable[..., None], realization: PairScale | PairAdd, simulator: str) -> None:
    codes = np.random.default_rng(1).permutation(1 << 16).reshape(-1, LANES)
    result = realization.pair.type
    bound = binding.bind(realization, np.zeros((1, LANES), np.int64), IntType(0, 65535), result, "pair")
    parameters = {
        name: f"{value.width}'d{value.value & ((1 << value.width) - 1)}" if isinstance(value, Bits) else value
        for name, value in bound.parameters.items()
    }
    job = Stream(
        {"s_data": pack(codes, 16)},
        {"m_data": pack(realization.apply(codes), 8)},
        latency=realization.latency,
        capacity=realization.latency,
    )
    simulate(simulator, bound.module, parameters, job, {})
