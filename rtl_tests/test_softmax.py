"""hg_softmax: every float32 value of rows of codes, and the cycle of every read and write."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from bench import Port, Unit, simulate
from streams import memory, pack

from hlsgen.numerics.exponential import powers
from hlsgen.numerics.exponential_factors import factors

Array = npt.NDArray[np.int64]

Case = tuple[int, int, int, int, float, bool]
# lanes, beats of a row, bits, signed, step, whether the sum is in order
CASES = [
    (1, 8, 8, 1, 0.05, False),
    (2, 4, 8, 1, 0.0142, False),
    (4, 1, 8, 0, 0.3, False),
    (1, 1, 3, 1, 0.5, False),
    (3, 3, 4, 0, 1.7, False),
    (5, 2, 8, 1, 1.0, False),  # powers and products below the smallest normal number
    (1, 2, 8, 1, 30.0, False),
    (1, 6, 8, 1, 0.05, True),
    (1, 1, 8, 0, 0.3, True),
    (1, 3, 8, 1, 2.5, True),
    (1, 5, 17, 1, 0.0003, False),  # products of two words; here some are 0
    (3, 2, 19, 1, 7.4e-5, False),
]


def tables(step: float, bits: int, row: int, in_order: bool) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Powers and numerators, with a final 0 if a distance can exceed the last one."""
    exact = Fraction(float(np.float32(step)))
    if in_order:
        high = np.float32(np.finfo(np.float32).max / np.float32(200 * row))
        power = (np.exp(-float(exact) * np.arange(1 << bits)) * high).astype(np.float32)
        return power, power * np.float32(100)
    power = powers(exact, 1 << bits)
    power = np.append(power, np.float32(0)) if len(power) < 1 << bits else power
    return power, power


def parameters(case: Case, stem: Path) -> dict[str, object]:
    lanes, beats, bits, signed, step, in_order = case
    power, numerator = tables(step, bits, lanes * beats, in_order)
    if bits > 8:
        return products(case, power, stem)
    exact = [Fraction(float(p)) for p in power]
    fraction = max(p.denominator.bit_length() - 1 for p in exact)
    words = power.view(np.uint32).tolist() if in_order else [int(p * (1 << fraction)) for p in exact]
    Path(f"{stem}_power.mem").write_text(memory(words))
    Path(f"{stem}_numerator.mem").write_text(memory(numerator.view(np.uint32).tolist()))
    return {
        "LANES": lanes,
        "BEATS": beats,
        "IN_W": bits,
        "IN_SIGNED": signed,
        "LAST": len(power) - 1,
        "W": 32 if in_order else fraction + 1,
        "FRACTION": 0 if in_order else fraction,
        "IN_ORDER": int(in_order),
        "TINY": int(tiny(case)),
        "DSP": 25 * (beats % 2),
        "FILE": f'"{stem}"',
    }


def products(case: Case, power: npt.NDArray[np.float32], stem: Path) -> dict[str, object]:
    lanes, beats, bits, signed, step, _ = case
    nonzero = power[power > 0]
    power_factors = factors(Fraction(float(np.float32(step))), nonzero, (1 << bits) - 1, 1 << 12)
    assert power_factors is not None
    high = [
        int(s) << power_factors.bits | int(m)
        for s, m in zip(power_factors.shifts, power_factors.mantissas, strict=True)
    ]
    Path(f"{stem}_high.mem").write_text(memory(high))
    Path(f"{stem}_low.mem").write_text(memory(power_factors.lows.tolist()))
    fraction = min(149, 24 - int(np.frexp(nonzero[-1])[1]))
    return {
        "LANES": lanes,
        "BEATS": beats,
        "IN_W": bits,
        "IN_SIGNED": signed,
        "LAST": len(power) - 1,
        "W": fraction + 1,
        "FRACTION": fraction,
        "LOW": power_factors.low_bits,
        "M_W": power_factors.bits,
        "TINY": int(tiny(case)),
        "FILE": f'"{stem}"',
    }


def tiny(case: Case) -> bool:
    lanes, beats, bits, _, step, in_order = case
    power = tables(step, bits, lanes * beats, in_order)[0]
    return not in_order and float(power[power > 0].min()) / (lanes * beats) < 2.0**-126


def cycles(case: Case) -> int:
    """Enabled cycles from a read to its offer."""
    lanes, beats, bits, *_, in_order = case
    return 24 + beats if in_order else 25 + beats + (lanes - 1).bit_length() + 2 * tiny(case) + 10 * (bits > 8)


def expected(rows: Array, case: Case) -> npt.NDArray[np.float32]:
    """By numpy's float32, and by fractions where a sum is exact."""
    lanes, beats, bits, _, step, in_order = case
    power, numerator = tables(step, bits, lanes * beats, in_order)
    at = np.minimum(rows.max(axis=1, keepdims=True) - rows, len(power) - 1)
    if in_order:
        total = np.zeros(len(rows), np.float32)
        for column in power[at].T:
            total = total + column
        quotient = numerator[at] / total[:, None]
        return np.where(quotient < np.float32(2.0**-24), np.float32(0), quotient)
    sums = [nearest(sum(map(Fraction, row), Fraction(0))) for row in power[at].astype(float).tolist()]
    return numerator[at] * (np.float32(1) / np.array(sums, np.float32))[:, None]


def nearest(number: Fraction) -> float:
    """The nearest number of 24 bits, the even one of two."""
    scale = Fraction(1)
    while number * scale < 1 << 23:
        scale *= 2
    while number * scale >= 1 << 24:
        scale /= 2
    return float(round(number * scale) / scale)


def check_cycles(s: Port, m: Port, beats: int, latency: int) -> None:
    """Every read and with it every offer, every write."""
    enabled = np.flatnonzero(m.enabled)
    first, issued = -beats, []
    for last_word in s.accepted[beats - 1 :: beats]:
        first = max(int(np.searchsorted(enabled, last_word + 1)), first + beats)
        issued += range(first, first + beats)
    offers = enabled[[place + latency - 1 for place in issued if place + latency - 1 < len(enabled)]] + 1
    assert np.array_equal(m.offered, offers[offers < len(m.valid)])
    reads = enabled[[place for place in issued if place < len(enabled)]]
    freed = reads[beats - 1 :: beats]
    accepted = np.cumsum(s.valid & s.ready) - (s.valid & s.ready)
    expected = [
        count // beats < 2 or (count // beats - 2 < len(freed) and cycle > freed[count // beats - 2])
        for cycle, count in enumerate(accepted)
    ]
    assert np.array_equal(s.ready, expected)


def rows_of(case: Case, count: int) -> Array:
    """Rows of codes of all kinds: near each other, far apart, equal."""
    lanes, beats, bits, signed, *_ = case
    rng = np.random.default_rng(lanes + 10 * beats)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    center, spread = rng.uniform(low, high, (count, 1)), rng.choice([0, 0.02, 0.1, 1], (count, 1)) * (high - low)
    return np.clip(np.rint(rng.normal(center, spread, (count, lanes * beats))), low, high).astype(np.int64)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "chosen, simulators",
    [
        (CASES[:10], ("icarus", "verilator")),
        (CASES[10:], ("verilator",)),
        pytest.param(CASES[10:], ("icarus",), marks=pytest.mark.slow),
    ],
)
def test_softmax(chosen: list[Case], simulators: tuple[str, ...], tmp_path: Path) -> None:
    units, expected_words = [], []
    for n, case in enumerate(chosen):
        lanes, _, bits, *_ = case
        rows = rows_of(case, 300)
        values = expected(rows, case)
        port_widths = {"s": bits * lanes, "m": 32 * lanes}
        units.append(
            Unit(
                "hg_softmax",
                parameters(case, tmp_path / f"t{n}"),
                {"s": pack(rows.reshape(-1, lanes), bits)},
                port_widths,
            )
        )
        expected_words.append(pack(values.view(np.uint32).astype(np.int64).reshape(-1, lanes), 32))
    for case, words, phases in zip(
        chosen, expected_words, simulate(units, tmp_path, simulators=simulators), strict=True
    ):
        for trace in phases:
            s, m = trace["s"], trace["m"]
            assert m.holds_still()
            assert m.words == words[: len(m.words)], case
            assert len(m.words) >= 30
            check_cycles(s, m, case[1], cycles(case))


def test_mask(tmp_path: Path) -> None:
    """Three rows whose elements count, are gone, or are even, again and again."""
    case = CASES[1]
    lanes, beats, bits, _, step, _ = case
    power = np.append(powers(Fraction(float(np.float32(step))), 1 << bits), np.float32(0))
    mask = np.array([[0, 2, 0, 0, 2, 2, 0, 0], [1, 1, 2, 1, 1, 2, 1, 1], [2, 2, 2, 2, 2, 2, 2, 0]])
    port_widths = parameters(case, tmp_path / "t") | {"LAST": len(power) - 1, "MASKS": mask.size // lanes}
    fixed = [int(Fraction(float(p)) * (1 << int(str(port_widths["FRACTION"])))) for p in power]
    (tmp_path / "t_power.mem").write_text(memory(fixed))
    (tmp_path / "t_numerator.mem").write_text(memory(power.view(np.uint32).tolist()))
    (tmp_path / "t_mask.mem").write_text(memory(pack(mask.reshape(-1, lanes), 2)))
    rows = rows_of(case, 300)
    masks = np.resize(mask, rows.shape)
    codes = np.where(masks > 0, -(1 << bits - 1), rows)
    at = np.where(masks == 2, len(power) - 1, codes.max(axis=1, keepdims=True) - codes)
    sums = [nearest(sum(map(Fraction, row), Fraction(0))) for row in power[at].astype(float).tolist()]
    values = power[at] * (np.float32(1) / np.array(sums, np.float32))[:, None]
    unit = Unit(
        "hg_softmax", port_widths, {"s": pack(rows.reshape(-1, lanes), bits)}, {"s": bits * lanes, "m": 32 * lanes}
    )
    for trace in simulate([unit], tmp_path, simulators=("icarus",))[0]:
        words = trace["m"].words
        assert words == pack(values.view(np.uint32).astype(np.int64).reshape(-1, lanes), 32)[: len(words)]
        assert len(words) >= 30
        check_cycles(trace["s"], trace["m"], beats, cycles(case))


@pytest.mark.parametrize("case", [CASES[1], CASES[3], CASES[7], pytest.param(CASES[11], marks=pytest.mark.slow)])
def test_full_rate(tmp_path: Path, case: Case) -> None:
    """Rows follow each other without a gap on either side."""
    lanes, beats, bits, *_ = case
    rows = rows_of(case, 300)
    port_widths = {"s": bits * lanes, "m": 32 * lanes}
    unit = Unit("hg_softmax", parameters(case, tmp_path / "t"), {"s": pack(rows.reshape(-1, lanes), bits)}, port_widths)
    ((full,),) = simulate([unit], tmp_path, simulators=("icarus",), phases=1)
    assert np.array_equal(full["s"].accepted, np.arange(len(full["s"].accepted)))
    assert all(later == earlier + 1 for earlier, later in pairwise(full["m"].accepted))
    assert full["m"].offered[0] == beats + cycles(case)
