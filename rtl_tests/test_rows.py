"""Units on rows of integers as bound: values of every row, and cycles of every read and write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench import Port, Trace, Unit, simulate
from streams import pack

from hlsgen.dataflow.units import Node, RowsUnit, stream_of
from hlsgen.ir.row_functions import (
    BelowLargest,
    FixedPointShare,
    IntegerNorm,
    RowFunction,
    Share,
    result_type,
    row_values,
)
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.tflite.softmax import exponentials_in_integers
from hlsgen.verilog.binding.memory_files import Bits
from hlsgen.verilog.binding.rows import bind
from hlsgen.verilog.unit_table import latency

rng = np.random.default_rng(15)
INT8, UINT8 = IntType(-128, 127), IntType(0, 255)


def share(levels: int, a: int, b: int, c: int, log2: int) -> Share:
    """The tables of an iSoftmax."""
    below = np.arange(256)
    power = np.minimum(below // log2, 31)
    table = (a * (power * log2 - below + b) ** 2 + c) >> power
    return Share(table, table * (levels - 1))


def fixed(scale: float, bits: int = 8) -> FixedPointShare:
    """A SOFTMAX of codes of this scale."""
    return FixedPointShare(exponentials_in_integers(scale, 1.0), bits)


def norm(centred: bool, count: int, max_weight: int, shift: int, biased: int = 0) -> IntegerNorm:
    weight = rng.integers(-max_weight, max_weight + 1, count)
    bias = rng.integers(-biased, biased + 1, count) if biased else np.zeros(count, np.int64)
    return IntegerNorm(centred, weight, bias, shift, INT8, centred)


def case(
    number: int, function: RowFunction, source: IntType, lanes: int, beats: int, folder: Path
) -> tuple[Unit, list[int], int, int, int]:
    """A unit between streams, the words that it must send, beats of a row, its lag and its latency."""
    count, rows = lanes * beats, max(40, 400 // beats)
    x = rng.integers(source.lo, source.hi + 1, (rows, count))
    x[::3] = rng.integers(source.lo // 8, source.hi // 8 + 1, x[::3].shape)
    x[1], x[2] = source.hi, source.lo
    if isinstance(function, Share | FixedPointShare):
        x[:, rng.integers(count)] = 0
    unit = RowsUnit(function, beats, source, count)
    flow, type_ = stream_of(source, lanes, x.size, count), result_type(function, source)
    result = stream_of(type_, lanes, x.size, count)
    node = Node(f"unit{number}", unit, ("s",), (flow,), ("m",), result)
    bound = bind(node, unit)
    for name, text in bound.memories.items():
        (folder / name).write_text(text)
    parameters = {
        key: f"{v.width}'h{v.value:x}" if isinstance(v, Bits) else f'"{v}"' if isinstance(v, str) else v
        for key, v in bound.parameters.items()
    }
    words = pack(x.reshape(-1, lanes), source.bits)
    expected = pack(row_values(function, x).reshape(-1, lanes), type_.bits)
    unit_ = Unit(bound.module, parameters, {"s": words}, {"s": flow.bits, "m": result.bits})
    return unit_, expected, beats, unit.lag, latency(unit)


def check_cycles(s: Port, m: Port, beats: int, lag: int, cycles: int) -> None:
    """Every read and with it every offer, every write: as hg_gather, and `lag` cycles later."""
    enabled = np.flatnonzero(m.enabled)
    first, issued = -beats, []
    for last in s.accepted[beats - 1 :: beats]:
        first = max(int(np.searchsorted(enabled, last + 1 + lag)), first + beats)
        issued += range(first, first + beats)
    reads = enabled[[place for place in issued if place < len(enabled)]]
    offers = enabled[[place + cycles - 1 for place in issued if place + cycles - 1 < len(enabled)]] + 1
    assert np.array_equal(m.offered, offers[offers < len(m.valid)])
    freed = reads[beats - 1 :: beats]
    accepted = np.cumsum(s.valid & s.ready) - (s.valid & s.ready)
    expected = [
        count // beats < 2 or (count // beats - 2 < len(freed) and cycle > freed[count // beats - 2])
        for cycle, count in enumerate(accepted)
    ]
    assert np.array_equal(s.ready, expected)


def check(trace: Trace, words: list[int], beats: int, lag: int, cycles: int) -> None:
    s, m = trace["s"], trace["m"]
    assert m.holds_still()
    assert m.words == words[: len(m.words)]
    assert len(m.words) >= 10
    check_cycles(s, m, beats, lag, cycles)


@pytest.mark.parametrize("simulator", ["verilator", pytest.param("icarus", marks=pytest.mark.slow)])
def test_rows(simulator: str, tmp_path: Path) -> None:
    functions: list[tuple[RowFunction, IntType, int, int]] = [
        (BelowLargest(), INT8, 1, 4),
        (BelowLargest(), UINT8, 3, 2),
        (BelowLargest(), IntType(-4, 3), 2, 1),
        (BelowLargest(), IntType(-300, 90), 1, 1),
        (share(256, 1, 345, 62395, 255), UINT8, 2, 4),
        (share(256, 1, 173, 15599, 127), UINT8, 1, 3),
        (share(16, 2, 20, 30, 9), IntType(0, 130), 4, 1),
        (share(256, 0, 0, 1, 2), UINT8, 1, 1),
        (Share(256 >> ((np.arange(256) + 16) >> 5), (255 * 256) >> ((np.arange(256) + 16) >> 5)), UINT8, 2, 3),
        (fixed(0.05), UINT8, 1, 1),  # seven multipliers
        (fixed(0.1), UINT8, 2, 3),
        (fixed(0.02), UINT8, 1, 9),  # four
        (fixed(0.06), IntType(0, 100), 1, 17),  # two
        (fixed(0.03), UINT8, 1, 28),  # one
        (fixed(0.01), UINT8, 3, 30),
        (fixed(0.04, 16), UINT8, 1, 5),
        (fixed(8.0), UINT8, 5, 1),
        (norm(False, 8, 1 << 20, 16), INT8, 2, 4),
        (norm(False, 6, 300, 3), IntType(0, 15), 3, 2),
        (norm(True, 8, 1 << 14, 8, 30000), INT8, 2, 4),
        (norm(True, 6, 5000, 9, 900), UINT8, 1, 6),
        (norm(True, 1, 100, 2, 100), INT8, 1, 1),
        (norm(True, 5, 90, 0, 9), IntType(-300, 7), 5, 1),
        (norm(False, 1, 7, 0), IntType(-1, 0), 1, 1),
        (norm(False, 4, 300, 0), INT8, 2, 2),  # saturates
        (norm(True, 4, 30, 0, 9), IntType(-32768, 32767), 1, 4),  # sums of more bits than an integer has
    ]
    cases = [case(n, f, source, lanes, beats, tmp_path) for n, (f, source, lanes, beats) in enumerate(functions)]
    results = simulate([unit_ for unit_, *_ in cases], tmp_path, cycles=400, simulators=(simulator,))
    for (_, words, beats, lag, cycles), phases in zip(cases, results, strict=True):
        for trace in phases:
            check(trace, words, beats, lag, cycles)
