"""hg_dynmvu: every sum, and the cycle of every beat, against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bench import Trace, Unit, simulate
from streams import integers, pack

from hlsgen.dataflow.units import DynamicMatVec
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.unit_table import latency

SUMS = 120
#: pe, simd, folds, (bits, signed, shift, offset) of a and b, rows first, bits that the sums have less, DSP.
CASES = [
    (2, 3, 4, (4, 1, 0, 0), (4, 1, 0, 0), 1, 0, 0),
    (3, 2, 4, (4, 1, 0, 0), (4, 1, 0, 0), 0, 0, 0),
    (1, 1, 1, (1, 0, 0, 0), (1, 0, 0, 0), 1, 0, 0),
    (4, 1, 5, (8, 0, 0, -128), (8, 0, 0, -3), 0, 0, 0),
    (1, 5, 2, (8, 1, 0, 7), (8, 0, 0, 0), 1, 0, 1),
    (2, 9, 1, (1, 0, 1, -1), (1, 0, 1, -1), 0, 0, 0),
    (5, 4, 3, (2, 0, 0, 0), (8, 1, 2, 3), 1, 0, 0),
    (2, 2, 7, (12, 1, 3, -5), (3, 0, 0, 9), 0, 5, 1),
]


def case(
    pe: int, simd: int, folds: int, a: tuple[int, ...], b: tuple[int, ...], first: int, less: int, dsp: int
) -> tuple[Unit, list[int], int]:
    rng = np.random.default_rng(pe * 100 + simd)
    x = integers(rng, a[0], bool(a[1]), (SUMS, folds, simd))
    w = integers(rng, b[0], bool(b[1]), (SUMS, folds, pe, simd))
    types = []
    for codes, (bits, signed, shift, offset) in ((x, a), (w, b)):
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        codes.reshape(-1)[:2] = low, high
        types.append(IntType((low << shift) + offset, (high << shift) + offset))
    unit = DynamicMatVec(pe, simd, folds, (1 << a[2], 1 << b[2]), (a[3], b[3]), (types[0], types[1]), bool(first))
    left, right = (x << a[2]) + a[3], (w << b[2]) + b[3]
    sums = (left[:, :, None, :] * right).sum(axis=(1, 3))
    bits = int(max(-sums.min(), sums.max())).bit_length() + 1 - less
    parameters: dict[str, object] = {
        "SIMD": simd,
        "PE": pe,
        "FOLDS": folds,
        "ROWS_FIRST": first,
        "A_W": a[0],
        "A_SIGNED": a[1],
        "A_SHIFT": a[2],
        "A_OFFSET": a[3],
        "X_W": types[0].bits,
        "X_SIGNED": int(types[0].signed),
        "B_W": b[0],
        "B_SIGNED": b[1],
        "B_SHIFT": b[2],
        "B_OFFSET": b[3],
        "W_W": unit.word.bits,
        "ACC_W": bits,
        "DSP": dsp,
    }
    lanes = w if first else w.swapaxes(2, 3)
    inputs = {"a": pack(x.reshape(-1, simd), a[0]), "b": pack(lanes.reshape(-1, pe * simd), b[0])}
    widths = {"a": simd * a[0], "b": pe * simd * b[0], "m": pe * bits}
    return Unit("hg_dynmvu", parameters, inputs, widths), pack(sums, bits), latency(unit)


def rules(trace: Trace, folds: int, cycles: int) -> None:
    a, b, m = trace["a"], trace["b"], trace["m"]
    accepting = m.enabled & a.valid & b.valid
    assert np.array_equal(a.valid & a.ready, accepting)
    assert np.array_equal(b.valid & b.ready, accepting)
    # A sum is offered `cycles` enabled edges after its last beat, counting the edge that accepts this beat.
    enabled = np.flatnonzero(m.enabled)
    place = np.searchsorted(enabled, a.accepted[folds - 1 :: folds]) + cycles - 1
    offered = enabled[place[place < len(enabled)]] + 1
    assert np.array_equal(offered[offered < len(m.valid)], m.offered)


def test_products(tmp_path: Path) -> None:
    cases = [case(*shape) for shape in CASES]
    results = simulate([unit for unit, _, _ in cases], tmp_path)
    for (unit, words, cycles), phases, shape in zip(cases, results, CASES, strict=True):
        for n, trace in enumerate(phases):
            assert all(port.holds_still() for port in trace.values()), (shape, n)
            assert trace["m"].words == words[: len(trace["m"].words)], (shape, n)
            rules(trace, shape[2], cycles)
        assert sum(len(trace["m"].words) for trace in phases) > 40, unit.parameters
