"""hg_fork, hg_join_*, hg_f32_join, hg_concat, hg_beside, hg_pick, hg_take, hg_pad: every beat, and every cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import Trace, Unit, simulate
from streams import integers, pack

BEATS = 600
rng = np.random.default_rng(11)


@dataclass(frozen=True)
class Case:
    """A unit, the words of its outputs, and a check of each phase."""

    unit: Unit
    words: list[int]
    rules: Callable[[Trace], None]


def count_before(accepted: np.ndarray) -> np.ndarray:
    """Number of accepted beats before each cycle."""
    return np.cumsum(accepted) - accepted


def fork(width: int, count: int) -> Case:
    words = [int(word) for word in rng.integers(0, 1 << width, BEATS)]
    outputs = [f"m[{k}]" for k in range(count)]

    def rules(trace: Trace) -> None:
        s, m = trace["s"], [trace[port] for port in outputs]
        assert len({len(port.offered) for port in m} | {len(s.offered)}) == 1
        assert all(np.array_equal(port.offered, s.offered) for port in m)
        latest = np.max([port.accepted[: len(s.accepted)] for port in m], axis=0)
        assert np.array_equal(s.accepted, latest)
        assert min(len(port.accepted) for port in m) == len(s.accepted)

    widths = {"s": width, **dict.fromkeys(outputs, width)}
    return Case(Unit("hg_fork", {"WIDTH": width, "COUNT": count}, {"s": words}, widths), words, rules)


def moves_jointly(trace: Trace, latency: int) -> None:
    """Check that both inputs and the whole pipeline advance in the same cycles."""
    a, b, m = trace["a"], trace["b"], trace["m"]
    accepting = m.enabled & a.valid & b.valid
    assert np.array_equal(a.valid & a.ready, accepting)
    assert np.array_equal(b.valid & b.ready, accepting)
    enabled = np.flatnonzero(m.enabled)
    # A beat is offered after its last enabled edge, counting the edge that accepts its operands.
    last = np.searchsorted(enabled, a.accepted) + latency - 1
    offered = enabled[last[last < len(enabled)]] + 1
    assert np.array_equal(offered[offered < len(m.valid)], m.offered)


def float_join(op: int, lanes: int) -> Case:
    """Numbers of all magnitudes, with zeros, infinities and NaN among them."""
    rng_of_operation = np.random.default_rng(op)
    x = rng_of_operation.integers(0, 1 << 32, (2, BEATS, lanes), dtype=np.uint32)
    x[1] = np.where(
        rng_of_operation.random(x[1].shape) < 0.5, x[0] ^ (x[1] & 0x803FFFFF), x[1]
    )  # near each other: they cancel
    special = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x3F800000], np.uint32)
    x = np.where(rng_of_operation.random(x.shape) < 0.1, rng_of_operation.choice(special, x.shape), x)
    a, b = x.view(np.float32)
    with np.errstate(all="ignore"):
        y = a + b if op == 0 else a * b if op == 1 else a - b
    y = np.where(np.isnan(y), np.float32(np.nan), y).astype(np.float32)

    def rules(trace: Trace) -> None:
        moves_jointly(trace, 6 if op == 1 else 7)

    inputs = {"a": pack(x[0].astype(np.int64), 32), "b": pack(x[1].astype(np.int64), 32)}
    words = pack(np.ascontiguousarray(y).view(np.uint32).astype(np.int64), 32)
    unit = Unit("hg_f32_join", {"OP": op, "LANES": lanes}, inputs, dict.fromkeys("abm", 32 * lanes))
    return Case(unit, words, rules)


def join(
    way: str,
    lanes: int,
    a_type: tuple[int, int],
    b_type: tuple[int, int],
    k: tuple[int, int],
    **further_parameters: int,
) -> Case:
    """Types are (bits, signed); k are the factors or the zero points."""
    a = integers(rng, a_type[0], bool(a_type[1]), (BEATS, lanes))
    b = integers(rng, b_type[0], bool(b_type[1]), (BEATS, lanes))
    if way == "sum":
        result = k[0] * a + k[1] * b
    elif way == "product":
        result = (a - k[0]) * (b - k[1])
    else:
        result = (a & ((1 << a_type[0]) - 1)) | (b << a_type[0])
    parameters: dict[str, object] = {"LANES": lanes, "A_W": a_type[0], "B_W": b_type[0]}
    if way == "pair":
        bits = a_type[0] + b_type[0]
    else:
        bits = further_parameters.pop("OUT_W", int(max(-result.min(), result.max())).bit_length() + 1)
        names = ("FA", "FB") if way == "sum" else ("ZA", "ZB")
        parameters |= {"A_SIGNED": a_type[1], "B_SIGNED": b_type[1], "OUT_W": bits, **dict(zip(names, k, strict=True))}
    parameters |= further_parameters

    def rules(trace: Trace) -> None:
        moves_jointly(trace, 2)

    widths = {"a": lanes * a_type[0], "b": lanes * b_type[0], "m": lanes * bits}
    inputs = {"a": pack(a, a_type[0]), "b": pack(b, b_type[0])}
    return Case(Unit(f"hg_join_{way}", parameters, inputs, widths), pack(result, bits), rules)


def concat(lanes: int, a_type: tuple[int, int], b_type: tuple[int, int], bits: int, beats: tuple[int, int]) -> Case:
    rounds = BEATS // min(beats)
    a = integers(rng, a_type[0], bool(a_type[1]), (rounds, beats[0], lanes))
    b = integers(rng, b_type[0], bool(b_type[1]), (rounds, beats[1], lanes))
    parameters: dict[str, object] = {
        "UNIT_A": a_type[0],
        "A_SIGNED": a_type[1],
        "UNIT_B": b_type[0],
        "B_SIGNED": b_type[1],
        "UNIT_OUT": bits,
        "LANES": lanes,
        "BEATS_A": beats[0],
        "BEATS_B": beats[1],
    }

    def rules(trace: Trace) -> None:
        a, b, m = trace["a"], trace["b"], trace["m"]
        turn = count_before(m.valid & m.ready) % sum(beats) >= beats[0]
        assert np.array_equal(m.valid, np.where(turn, b.valid, a.valid))
        assert np.array_equal(a.ready, m.ready & ~turn)
        assert np.array_equal(b.ready, m.ready & turn)

    widths = {"a": lanes * a_type[0], "b": lanes * b_type[0], "m": lanes * bits}
    inputs = {"a": pack(a.reshape(-1, lanes), a_type[0]), "b": pack(b.reshape(-1, lanes), b_type[0])}
    words = pack(np.concatenate([a, b], axis=1).reshape(-1, lanes), bits)
    return Case(Unit("hg_concat", parameters, inputs, widths), words, rules)


def concat_channels(
    pixels: int, lanes: tuple[int, int], a_type: tuple[int, int], b_type: tuple[int, int], bits: int
) -> Case:
    a = integers(rng, a_type[0], bool(a_type[1]), (BEATS, pixels, lanes[0]))
    b = integers(rng, b_type[0], bool(b_type[1]), (BEATS, pixels, lanes[1]))
    parameters: dict[str, object] = {
        "UNIT_A": a_type[0],
        "A_SIGNED": a_type[1],
        "UNIT_B": b_type[0],
        "B_SIGNED": b_type[1],
        "UNIT_OUT": bits,
        "LANES_A": lanes[0],
        "LANES_B": lanes[1],
        "PIXELS": pixels,
    }

    def rules(trace: Trace) -> None:
        a, b, m = trace["a"], trace["b"], trace["m"]
        accepting = m.enabled & a.valid & b.valid
        assert np.array_equal(a.valid & a.ready, accepting)
        assert np.array_equal(b.valid & b.ready, accepting)
        offered = a.accepted[a.accepted + 1 < len(m.valid)] + 1
        assert np.array_equal(offered, m.offered)

    sizes = [
        pixels * rng_of_operation * type_[0] for rng_of_operation, type_ in zip(lanes, (a_type, b_type), strict=True)
    ]
    widths = {"a": sizes[0], "b": sizes[1], "m": pixels * sum(lanes) * bits}
    inputs = {"a": pack(a.reshape(BEATS, -1), a_type[0]), "b": pack(b.reshape(BEATS, -1), b_type[0])}
    words = pack(np.concatenate([a, b], axis=2).reshape(BEATS, -1), bits)
    return Case(Unit("hg_beside", parameters, inputs, widths), words, rules)


def pick(unit: int, lanes: int, places: tuple[int, ...]) -> Case:
    x = integers(rng, unit, False, (BEATS, lanes))
    packed = sum(place << (32 * n) for n, place in enumerate(places))
    parameters: dict[str, object] = {
        "UNIT": unit,
        "IN": lanes,
        "OUT": len(places),
        "MAP": f"{32 * len(places)}'h{packed:x}",
    }

    def rules(trace: Trace) -> None:
        s, m = trace["s"], trace["m"]
        assert np.array_equal(m.valid, s.valid)
        assert np.array_equal(s.ready, m.ready)

    widths = {"s": lanes * unit, "m": len(places) * unit}
    return Case(Unit("hg_pick", parameters, {"s": pack(x, unit)}, widths), pack(x[:, list(places)], unit), rules)


def take(width: int, shape: tuple[int, int, int], *ranges: tuple[int, int, int]) -> Case:
    frames = -(-BEATS // int(np.prod(shape)))
    x = rng.integers(0, 1 << width, (frames, *shape))
    slices = tuple(slice(*bounds) for bounds in ranges)
    kept_elements = np.zeros(shape, bool)
    kept_elements[slices] = True
    parameters = dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True))
    for axis, bounds in zip("YXC", ranges, strict=True):
        parameters |= dict(zip((f"{axis}0", f"{axis}1", f"{axis}S"), bounds, strict=True))

    def rules(trace: Trace) -> None:
        s, m = trace["s"], trace["m"]
        keeps = kept_elements.reshape(-1)[count_before(s.valid & s.ready) % kept_elements.size]
        assert np.array_equal(m.valid, s.valid & keeps)
        assert np.array_equal(s.ready, m.ready | ~keeps)

    words = [int(word) for word in x[(slice(None), *slices)].reshape(-1)]
    inputs = {"s": [int(word) for word in x.reshape(-1)]}
    return Case(Unit("hg_take", {"WIDTH": width, **parameters}, inputs, {"s": width, "m": width}), words, rules)


def pad(unit: int, lanes: int, shape: tuple[int, int, int], pads: tuple[int, int, int, int], value: int) -> Case:
    frames = -(-BEATS // int(np.prod(shape)))
    top, left, bottom, right = pads
    border = ((0, 0), (top, bottom), (left, right), (0, 0), (0, 0))
    x = integers(rng, unit, False, (frames, *shape, lanes))
    image = np.pad(np.ones((*shape, 1), bool), border[1:]).reshape(-1)
    parameters: dict[str, object] = {
        "UNIT": unit,
        "LANES": lanes,
        **dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True)),
        "TOP": top,
        "LEFT": left,
        "BOTTOM": bottom,
        "RIGHT": right,
        "VALUE": value,
    }

    def rules(trace: Trace) -> None:
        s, m = trace["s"], trace["m"]
        place = count_before(m.valid & m.ready) % image.size
        assert np.array_equal(m.valid, s.valid | (~image[place] & (place > 0)))
        assert np.array_equal(s.ready, m.ready & image[place])

    words = pack(np.pad(x, border, constant_values=value).reshape(-1, lanes), unit)
    widths = {"s": unit * lanes, "m": unit * lanes}
    return Case(Unit("hg_pad", parameters, {"s": pack(x.reshape(-1, lanes), unit)}, widths), words, rules)


def some_take() -> Case:
    shape = tuple(int(size) for size in rng.integers(1, 6, 3))
    ranges = []
    for size in shape:
        start = int(rng.integers(0, size))
        ranges.append((start, int(rng.integers(start, size)) + 1, int(rng.integers(1, 5))))
    return take(4, (shape[0], shape[1], shape[2]), *ranges)


def some_pad() -> Case:
    height, columns, folds = (int(size) for size in rng.integers(1, 5, 3))
    top, left, bottom, right = (int(size) for size in rng.integers(0, 4, 4) * rng.integers(0, 2, 4))
    return pad(3, 2, (height, columns, folds), (top, left, bottom, right), int(rng.integers(0, 8)))


def test_plumbing(tmp_path: Path) -> None:
    cases = [
        *(fork(4, count) for count in (1, 2, 3, 5)),
        join("sum", 2, (4, 1), (5, 0), (3, -5)),
        join("sum", 1, (1, 0), (1, 0), (1, 1)),
        join("sum", 1, (8, 1), (8, 1), (-1, 1)),
        join("sum", 1, (8, 0), (3, 1), (-7, -64)),
        join("sum", 1, (8, 0), (8, 0), (0x7FFFFFFF, -0x80000000)),
        join("sum", 1, (6, 1), (6, 1), (27, 11), OUT_W=5),
        join("product", 2, (4, 1), (5, 0), (1, 7)),
        join("product", 1, (8, 0), (8, 0), (128, 0)),
        join("product", 1, (8, 0), (8, 0), (255, 3), STYLE=1),
        join("product", 1, (8, 1), (1, 0), (-128, 2)),
        join("product", 1, (4, 1), (4, 1), (-300, 1000)),
        join("product", 1, (8, 1), (8, 1), (0, 0), OUT_W=9),
        join("product", 1, (3, 1), (3, 0), (1, 2), OUT_W=24),
        join("product", 1, (4, 1), (4, 0), (-1, -1)),  # wide differences at the upper end
        join("pair", 3, (4, 1), (3, 1), (0, 0)),
        join("pair", 1, (1, 0), (8, 0), (0, 0)),
        float_join(0, 2),
        float_join(1, 1),
        float_join(5, 3),
        concat(2, (3, 1), (4, 0), 5, (2, 3)),
        concat(1, (1, 0), (1, 0), 1, (1, 1)),
        concat(1, (2, 1), (5, 1), 5, (7, 1)),
        concat(3, (3, 0), (2, 1), 3, (1, 4)),
        concat(2, (2, 0), (3, 1), 6, (3, 2)),
        concat_channels(2, (2, 3), (3, 1), (4, 0), 5),
        concat_channels(1, (1, 1), (1, 0), (1, 0), 1),
        concat_channels(3, (1, 4), (2, 0), (5, 1), 6),
        pick(3, 4, (2, 0, 3, 3, 1)),
        pick(1, 1, (0,)),
        pick(5, 3, (1,)),
        take(4, (3, 5, 3), (0, 3, 2), (0, 5, 4), (0, 3, 1)),
        take(4, (3, 4, 2), (0, 3, 1), (0, 4, 1), (0, 2, 1)),
        take(4, (5, 1, 1), (4, 5, 1), (0, 1, 1), (0, 1, 1)),
        take(4, (4, 4, 4), (0, 4, 2), (1, 4, 2), (3, 4, 9)),
        take(4, (5, 4, 1), (1, 4, 1), (1, 3, 1), (0, 1, 1)),  # as much before as behind what is kept
        take(4, (4, 3, 1), (0, 3, 1), (1, 3, 1), (0, 1, 1)),  # all but one
        *(some_take() for _ in range(8)),
        pad(2, 1, (3, 3, 1), (1, 1, 1, 1), 2),
        pad(2, 1, (1, 1, 1), (0, 0, 0, 0), 1),
        pad(1, 3, (2, 2, 2), (0, 0, 2, 3), 1),
        *(some_pad() for _ in range(8)),
    ]
    results = simulate([case.unit for case in cases], tmp_path)
    for case, phases in zip(cases, results, strict=True):
        for n, trace in enumerate(phases):
            assert all(port.holds_still() for port in trace.values()), (case.unit.parameters, n)
            for name in case.unit.outputs:
                words = trace[name].words
                assert words == case.words[: len(words)], (case.unit.parameters, n)
                assert words
            case.rules(trace)
        assert sum(len(trace[name].words) for trace in phases for name in case.unit.outputs) > 40, case.unit.parameters
