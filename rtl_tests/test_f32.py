"""The float32 Verilog modules, hg_f32_*.v, against numpy and exact integer arithmetic."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lanes import Words, compile_function
from verilated import tool_environment

RTL = Path(__file__).resolve().parent.parent / "templates" / "rtl"
FUNCTIONS = ["add", "mul", "div", "minmax", "scale", "round", "to_code"]
UNITS = ["unit", "decode", "encode", "round_unit"]
SOURCES = [RTL / "hg_next.v", RTL / "hg_index.v", *(RTL / f"hg_f32_{name}.v" for name in ["pack", *FUNCTIONS])]
LATENCY = {"add": 6, "mul": 5, "div": 18, "minmax": 1, "scale": 6, "round": 2, "to_code": 5}
#: Parts of the sweep over all float32 bit patterns.
FLOAT_PARTS = 128
QUIET_NAN = np.uint32(0x7FC00000)

Bits = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]

PORTS: dict[str, dict[str, int]] = {
    "add": {"a": 32, "b": 32},
    "mul": {"a": 32, "b": 32},
    "div": {"a": 32, "b": 32},
    "minmax": {"a": 32, "b": 32},
    "round": {"x": 32},
    "to_code": {"x": 32, "lo": 32, "hi": 32},
}


def function(name: str, pipelined: int = 0, /, **params: int) -> Callable[..., Words]:
    """Module hg_f32_<name> as a callable on arrays of bit patterns."""
    inputs = {"v": params["W"], "m": params["M_W"], "e": 12} if name == "scale" else PORTS[name]
    output = ("code", params["OUT_W"]) if name == "to_code" else ("y", 32)
    params = {"PIPE": pipelined, **params}
    latency = LATENCY[name] if pipelined else 0
    return compile_function(SOURCES, f"hg_f32_{name}", params, inputs, output, latency)


# ---------------------------------------------------------------- stimuli


def uniform(rng: np.random.Generator, count: int) -> Bits:
    """Uniform over bit patterns, hence over all exponents."""
    return rng.integers(0, 2**32, count, dtype=np.uint32)


def specials() -> Bits:
    """Both signs of the patterns at which a float unit goes wrong, and their neighbours."""
    centres = [0, 0x00400000, 0x00800000, 0x01000000, 0x7F000000, 0x7F800000, 0x7FC00000]
    centres += [0x3F800000, 0x3F000000, 0x3E800000, 0x3FC00000, 0x40400000, 0x4B000000, 0x4B800000]
    centres += [0x34000000, 0x33800000, 0x1F800000, 0x5F800000, 0x0C800000, 0x0D000000, 0x3FB504F3]
    centres += [1 << k for k in range(23)]
    around = {c + d for c in centres for d in (-2, -1, 0, 1, 2) if 0 <= c + d < 2**31}
    around |= {0x7FFFFFFF, 0x7FA00000, 0x3F7FFFFF, 0x007FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F800000}
    positive = np.array(sorted(around), dtype=np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)])


def pairs(name: str) -> tuple[Bits, Bits]:
    """Over three million operand pairs: uniform, special, and where this operation is hard."""
    rng = np.random.default_rng(sum(map(ord, name)))
    count = 400_000
    a, b = [uniform(rng, 2_000_000)], [uniform(rng, 2_000_000)]
    special = specials()
    a.append(np.repeat(special, special.size))
    b.append(np.tile(special, special.size))
    a.append(rng.choice(special, count))
    b.append(uniform(rng, count))
    # Close exponents and equal high fraction bits: cancellation.
    x = uniform(rng, count)
    low = uniform(rng, count) >> rng.integers(0, 32, count, dtype=np.uint32)
    a.append(x)
    b.append(x ^ (low & np.uint32(0x81FFFFFF)))
    # Short significands make ties.
    for offset in (0, 127, 150, 254):
        e_a = rng.integers(0, 256, count)
        span = rng.integers(-30, 31, count)
        e_b = e_a + span if offset == 0 else offset - e_a + span
        b_bits = np.clip(e_b, 0, 255).astype(np.uint32) << np.uint32(23)
        a_bits = e_a.astype(np.uint32) << np.uint32(23)
        for short in (True, False):
            for bits, side in ((a_bits, a), (b_bits, b)):
                fraction = uniform(rng, count) & np.uint32(0x807FFFFF)
                if short:
                    keep = rng.integers(10, 24, count, dtype=np.uint32)
                    fraction &= ~((np.uint32(1) << keep) - np.uint32(1))
                side.append(bits | fraction)
    # Quotients near the ends of the exponent range.
    e_a = rng.integers(0, 256, count)
    for target in (127, -127, -150):
        e_b = np.clip(e_a - target + rng.integers(-4, 28, count), 0, 255)
        for e, side in ((e_a, a), (e_b, b)):
            side.append((e.astype(np.uint32) << np.uint32(23)) | (uniform(rng, count) & np.uint32(0x807FFFFF)))
    return np.concatenate(a), np.concatenate(b)


def around_integers(rng: np.random.Generator, count: int) -> Bits:
    """Halves of integers up to 2^26 and their neighbours, and values of every size to 2^34."""
    half = rng.integers(-(2**27), 2**27, count) >> rng.integers(0, 27, count)
    near_ties = (half / 2).astype(np.float32).view(np.uint32) + rng.integers(-2, 3, count).astype(np.uint32)
    e = rng.integers(120, 162, count, dtype=np.uint32) << np.uint32(23)
    close_exponents = (uniform(rng, count) & np.uint32(0x807FFFFF)) | e
    return np.concatenate([near_ties, close_exponents, specials()])


# ---------------------------------------------------------------- references


def canonical(value: Floats) -> Bits:
    """The bit patterns, with every NaN the canonical one."""
    return np.where(np.isnan(value), QUIET_NAN, value.view(np.uint32))


def assert_same(actual: npt.NDArray[Any], want: npt.NDArray[Any], **inputs: npt.NDArray[Any]) -> None:
    bad = np.flatnonzero(actual != want)
    if bad.size:
        i = int(bad[0])
        input_text = ", ".join(f"{name}={int(array[i if array.size > 1 else 0]):#x}" for name, array in inputs.items())
        pytest.fail(
            f"{bad.size} of {actual.size} differ; {input_text}: got {int(actual[i]):#x}, want {int(want[i]):#x}"
        )


BINARY: dict[str, Callable[[Floats, Floats], Floats]] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
}


def round_reference(x: Floats, mode: int) -> Floats:
    """The literal float32 formulas of the rounding modes."""
    half = np.float32(0.5)
    with np.errstate(all="ignore"):
        formulas: list[Callable[[], Floats]] = [
            lambda: np.round(x),
            lambda: np.ceil(x),
            lambda: np.floor(x),
            lambda: np.sign(x) * np.ceil(np.abs(x)),
            lambda: np.fix(x),
            lambda: np.sign(x) * np.floor(np.abs(x) + half),
            lambda: np.sign(x) * np.ceil(np.abs(x) - half),
        ]
        rounded = formulas[mode]()
    assert rounded.dtype == np.float32
    return rounded


def code_reference(x: Floats, lo: np.float32, hi: np.float32, mode: int, width: int, signed: int) -> Words:
    with np.errstate(all="ignore"):
        if mode == 7:
            rounded = (x >= 0).astype(np.float32)
        else:
            y = np.where(x > hi, hi, x)
            y = np.where(y < lo, lo, y)
            rounded = round_reference(np.where(np.isnan(x), lo, y), mode)
    lowest, greatest = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    code = np.clip(rounded.astype(np.float64), lowest, greatest).astype(np.int64).view(np.uint64)
    masked: Words = code & np.uint64(2**width - 1)
    return masked


def exact_float(n: int, e: int) -> int:
    """The bits of n * 2^e rounded once to float32, nearest even, in integers alone."""
    if n == 0:
        return 0
    sign, n = (1 << 31, -n) if n < 0 else (0, n)
    unit = max(n.bit_length() + e - 24, -149)  # exponent of the result's last place
    shift = unit - e
    if shift <= 0:
        q = n << -shift
    else:
        q, remainder = n >> shift, n & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        q += int(remainder > half or (remainder == half and q & 1 == 1))
    if q == 1 << 24:
        q, unit = q >> 1, unit + 1
    field = 0 if q < 1 << 23 else unit + 150
    return sign | (0x7F800000 if field >= 255 else (field << 23) | (q & 0x7FFFFF))


# ---------------------------------------------------------------- functions


@pytest.mark.parametrize("name", list(BINARY))
def test_arithmetic(name: str) -> None:
    a, b = pairs(name)
    assert a.size > 2_000_000
    actual = function(name)(a=a, b=b)
    with np.errstate(all="ignore"):
        want = canonical(BINARY[name](a.view(np.float32), b.view(np.float32)))
    assert_same(actual, want, a=a, b=b)


@pytest.mark.parametrize("maximum", [0, 1])
def test_minmax(maximum: int) -> None:
    a, b = pairs("minmax")
    actual = function("minmax", MAX=maximum)(a=a, b=b)
    with np.errstate(all="ignore"):
        x, y = a.view(np.float32), b.view(np.float32)
        want = canonical(np.maximum(x, y) if maximum else np.minimum(x, y))
    zeros = (x == 0) & (y == 0)
    want[zeros] = (a & b if maximum else a | b)[zeros]  # -0 is below +0
    assert_same(actual, want, a=a, b=b)


def scale_cases(width: int, m_width: int, count: int) -> list[tuple[int, int, int]]:
    """(v, m, e): of all sizes, with ties, and results at the ends of the exponent range."""
    rng = random.Random(width * 100 + m_width)
    cases = []
    for _ in range(count):
        v = rng.getrandbits(rng.randint(0, width - 1)) if width > 1 else 0
        if rng.random() < 0.3 and width > 26:  # 24 bits, a half, and nothing below it
            v = (((rng.getrandbits(24) | 1 << 23) << 1) | 1) << rng.randint(0, width - 26)
        v = rng.choice([v, v, v, -v, -v - 1, -(2 ** (width - 1))])
        m = rng.choice([rng.getrandbits(rng.randint(1, m_width)), 1, 1 << (m_width - 1), (1 << m_width) - 1])
        if rng.random() < 0.02:
            m = 0
        size = abs(v * m).bit_length()
        e = rng.choice(
            [
                rng.randint(-2048, 2047),
                rng.randint(-40, 40),
                -149 - size + rng.randint(-3, 30),
                128 - size + rng.randint(-3, 3),
            ]
        )
        cases.append((v, m, max(-2048, min(2047, e))))
    return cases


@pytest.mark.cases(1)
@pytest.mark.parametrize("width, m_width", [(64, 48), (32, 24), (16, 32), (9, 24), (40, 9), (1, 1)])
def test_scale_against_exact_integers(width: int, m_width: int) -> None:
    cases = scale_cases(width, m_width, 20_000)
    v = np.array([case[0] for case in cases], dtype=np.int64)
    m = np.array([case[1] for case in cases], dtype=np.int64)
    e = np.array([case[2] for case in cases], dtype=np.int64)
    want = np.array([exact_float(n * k, x) for n, k, x in cases], dtype=np.uint64)
    actual = function("scale", W=width, M_W=m_width)(v=v, m=m, e=e)
    assert_same(actual, want, v=v, m=m, e=e)


def test_integer_conversion() -> None:
    rng = np.random.default_rng(5)
    count = 3_000_000
    v = rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 63, count)
    actual = function("scale", W=64, M_W=1)(v=v, m=1, e=0)
    assert_same(actual, v.astype(np.float32).view(np.uint32), v=v)


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", range(7))
def test_round(mode: int) -> None:
    rng = np.random.default_rng(mode)
    x = np.concatenate([uniform(rng, 1_000_000), around_integers(rng, 1_000_000)])
    actual = function("round", MODE=mode)(x=x)
    want = canonical(round_reference(x.view(np.float32), mode))
    zero = (want << np.uint32(1)) == 0  # of either sign
    assert_same(actual[zero] & np.uint64(2**31 - 1), np.zeros(int(zero.sum()), np.uint64), x=x[zero])
    assert_same(actual[~zero], want[~zero], x=x[~zero])


CODES = [(mode, 8, 1) for mode in range(8)] + [
    (0, 33, 0),
    (0, 33, 1),
    (0, 32, 1),
    (0, 1, 0),
    (0, 1, 1),
    (2, 16, 0),
    (3, 33, 0),
    (5, 33, 1),
    (6, 33, 1),
    (7, 1, 0),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("mode, width, signed", CODES)
def test_to_code(mode: int, width: int, signed: int) -> None:
    rng = np.random.default_rng(mode * 100 + width)
    x = np.concatenate([uniform(rng, 300_000), around_integers(rng, 300_000)])
    module = function("to_code", MODE=mode, OUT_W=width, OUT_SIGNED=signed)
    lowest, greatest = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    bounds = [
        (-np.inf, np.inf),
        (lowest, greatest),
        (-5, 17),
        (0, 2**32),
        (-(2**31), 2**31),
        (3, 3),
        (-9, -0.0),
    ]
    for low, high in bounds:
        lo, hi = np.float32(low), np.float32(high)
        actual = module(x=x, lo=lo.view(np.uint32), hi=hi.view(np.uint32))
        assert_same(actual, code_reference(x.view(np.float32), lo, hi, mode, width, signed), x=x)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(FLOAT_PARTS))
def test_to_code_on_every_float(part: int) -> None:
    mode = 5
    module = function("to_code", MODE=mode, OUT_W=33, OUT_SIGNED=1)
    lo, hi = np.float32(-np.inf), np.float32(np.inf)
    size, chunk = 2**32 // FLOAT_PARTS, 2**20
    for start in range(part * size, (part + 1) * size, chunk):
        x = np.arange(start, start + chunk, dtype=np.uint64).astype(np.uint32)
        actual = module(x=x, lo=lo.view(np.uint32), hi=hi.view(np.uint32))
        assert_same(actual, code_reference(x.view(np.float32), lo, hi, mode, 33, 1), x=x)


PIPELINES: list[tuple[str, dict[str, int]]] = [
    ("add", {}),
    ("mul", {}),
    ("div", {}),
    ("minmax", {"MAX": 0}),
    ("minmax", {"MAX": 1}),
    ("scale", {"W": 64, "M_W": 48}),
    ("scale", {"W": 9, "M_W": 24}),
    ("round", {"MODE": 0}),
    ("round", {"MODE": 6}),
    ("to_code", {"MODE": 5, "OUT_W": 33, "OUT_SIGNED": 1}),
    ("to_code", {"MODE": 7, "OUT_W": 1, "OUT_SIGNED": 0}),
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("name, params", PIPELINES)
def test_pipeline_equals_combinational(name: str, params: dict[str, int]) -> None:
    rng = np.random.default_rng(9)
    count = 300_000
    inputs: dict[str, npt.NDArray[Any]]
    if name == "scale":
        half = count // 10
        cases = scale_cases(params["W"], params["M_W"], half)
        inputs = {port: np.array([case[k] for case in cases], np.int64) for k, port in enumerate("vme")}
    elif name in ("round", "to_code"):
        inputs = {"x": around_integers(rng, count)}
    else:
        a, b = pairs(name)
        pick = rng.integers(0, a.size, count)
        inputs = {"a": a[pick], "b": b[pick]}
    if name == "to_code":
        bound = np.exp2(rng.uniform(0, 34, inputs["x"].size)).astype(np.float32)
        inputs |= {"lo": (-bound).view(np.uint32), "hi": bound.view(np.uint32)}
    want = function(name, **params)(**inputs)
    module = function(name, 1, **params)
    assert_same(module(**inputs), want, **inputs)
    assert_same(module(**inputs, stalls=True), want, **inputs)


# ---------------------------------------------------------------- streaming units


def words(values: npt.NDArray[Any], bits: int) -> list[str]:
    """One hexadecimal word for each row, element 0 in the low bits."""
    mask = (1 << bits) - 1
    return [f"{sum((int(v) & mask) << (bits * k) for k, v in enumerate(row)):x}" for row in values]


def drive(simulator: str, top: str, params: dict[str, object], job: dict[str, Any], folder: Path) -> None:
    """Build the unit and run f32_cocotb.py on it."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    (folder / "job.json").write_text(json.dumps(job))
    runner = get_runner(simulator)
    runner.build(
        sources=[*SOURCES, RTL / f"{top}.v"],
        hdl_toplevel=top,
        parameters=params,
        build_dir=folder / "build",
        build_args=["-Wno-fatal"] if simulator == "verilator" else [],
        timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )
    try:
        results = runner.test(
            hdl_toplevel=top,
            test_module="f32_cocotb",
            build_dir=folder / "build",
            test_dir=folder,
            extra_env={"F32_JOB": str(folder / "job.json")},
            log_file=folder / "test.log",
        )
    except SystemExit:
        pytest.fail((folder / "test.log").read_text())
    assert get_results(results) == (4, 0), (folder / "test.log").read_text()


@pytest.fixture
def simulators(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "OBJCACHE"):
        if name in (env := tool_environment()):
            monkeypatch.setenv(name, env[name])
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent))


UNIT_RUNS = [
    ("icarus", 0, 3, 5),
    ("verilator", 0, 3, 5),
    ("icarus", 1, 1, 1),
    ("verilator", 1, 2, 3),
    ("icarus", 2, 1, 4),
    ("verilator", 2, 2, 1),
    ("icarus", 3, 2, 2),
    ("verilator", 4, 1, 7),
]
BEATS = 250


@pytest.mark.cases(1)
@pytest.mark.usefixtures("simulators")
@pytest.mark.parametrize("simulator, op, lanes, folds", UNIT_RUNS)
def test_unit(simulator: str, op: int, lanes: int, folds: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(op)
    x, c = uniform(rng, BEATS * lanes), uniform(rng, folds * lanes)
    c &= np.uint32(0xBFFFFFFF)  # magnitudes below 2: the results are not mostly infinite
    x[::3] = rng.choice(specials(), x[::3].size)
    x, c = x.reshape(BEATS, lanes), c.reshape(folds, lanes)
    operation = [np.add, np.multiply, np.divide, np.maximum, np.minimum][op]
    with np.errstate(all="ignore"):
        want = canonical(operation(x.view(np.float32), c[np.arange(BEATS) % folds].view(np.float32)))
    (tmp_path / "c.hex").write_text("\n".join(words(c, 32)) + "\n")
    params = {"OP": op, "LANES": lanes, "FOLDS": folds, "FILE": f'"{tmp_path / "c.hex"}"'}
    job = {"latency": [7, 6, 19, 2, 2][op], "beats": words(x, 32), "expected": words(want, 32)}
    drive(simulator, "hg_f32_unit", params, job, tmp_path)


DECODE_RUNS = [
    ("icarus", 8, 1, 0, 9, 24, 2, 3),
    ("icarus", 6, 0, 1, 7, 9, 1, 2),  # the sum has a bit more than both sides
    ("verilator", 16, 0, 5, 30, 40, 3, 4),
    ("verilator", 4, 0, 0, 1, 1, 1, 1),
]


@pytest.mark.cases(1)
@pytest.mark.usefixtures("simulators")
@pytest.mark.parametrize("simulator, in_w, signed, shift, b_w, m_w, lanes, folds", DECODE_RUNS)
def test_decode(
    simulator: str,
    in_w: int,
    signed: int,
    shift: int,
    b_w: int,
    m_w: int,
    lanes: int,
    folds: int,
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(in_w)
    x = rng.integers(-(2 ** (in_w - 1)) if signed else 0, 2 ** (in_w - signed), (BEATS, lanes))
    b = rng.integers(-(2 ** (b_w - 1)), 2 ** (b_w - 1), (folds, lanes))
    m = rng.integers(0, 2**m_w, (folds, lanes))
    e = rng.integers(-170, 100, (folds, lanes))
    fold = np.arange(BEATS) % folds
    exact = (x.astype(object) * 2**shift + b[fold]) * m[fold]
    want = np.array([exact_float(int(n), int(k)) for n, k in zip(exact.flat, e[fold].flat, strict=True)])
    want = want.reshape(BEATS, lanes)
    c = ((e & 0xFFF).astype(object) << (m_w + b_w)) | (m.astype(object) << b_w) | (b & (2**b_w - 1)).astype(object)
    (tmp_path / "c.hex").write_text("\n".join(words(c, 12 + m_w + b_w)) + "\n")
    params = {"IN_W": in_w, "IN_SIGNED": signed, "SHIFT": shift, "B_W": b_w, "M_W": m_w}
    params |= {"LANES": lanes, "FOLDS": folds}
    job = {"latency": 8, "beats": words(x, in_w), "expected": words(want, 32)}
    drive(simulator, "hg_f32_decode", {**params, "FILE": f'"{tmp_path / "c.hex"}"'}, job, tmp_path)


ENCODE_RUNS = [("icarus", 0, 8, 1, 2, 3), ("verilator", 5, 6, 0, 3, 4), ("verilator", 7, 1, 0, 2, 1)]


@pytest.mark.cases(1)
@pytest.mark.usefixtures("simulators")
@pytest.mark.parametrize("simulator, mode, width, signed, lanes, folds", ENCODE_RUNS)
def test_encode(simulator: str, mode: int, width: int, signed: int, lanes: int, folds: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(mode)
    x = (rng.integers(-600, 600, BEATS * lanes) / np.float32(4)).astype(np.float32)
    x[::5] = rng.choice(specials(), x[::5].size).view(np.float32)
    x = x.reshape(BEATS, lanes)
    hi = rng.integers(0, 128, (folds, lanes)).astype(np.float32)
    lo = hi - rng.integers(0, 200, (folds, lanes)).astype(np.float32)
    hi[0, 0], lo[0, 0] = np.inf, -np.inf
    want = np.array(
        [
            [
                int(code_reference(x[t, k : k + 1], lo[t % folds, k], hi[t % folds, k], mode, width, signed)[0])
                for k in range(lanes)
            ]
            for t in range(BEATS)
        ]
    )
    bounds = np.stack([lo.view(np.uint32), hi.view(np.uint32)], axis=-1).reshape(folds, 2 * lanes)
    (tmp_path / "c.hex").write_text("\n".join(words(bounds, 32)) + "\n")
    params: dict[str, object] = {
        "MODE": mode,
        "OUT_W": width,
        "OUT_SIGNED": signed,
        "LANES": lanes,
        "FOLDS": folds,
    }
    params["FILE"] = f'"{tmp_path / "c.hex"}"'
    job = {"latency": 6, "beats": words(x.view(np.uint32), 32), "expected": words(want, width)}
    drive(simulator, "hg_f32_encode", params, job, tmp_path)


@pytest.mark.cases(1)
@pytest.mark.usefixtures("simulators")
@pytest.mark.parametrize("simulator, mode, lanes", [("icarus", 1, 1), ("verilator", 0, 3)])
def test_round_unit(simulator: str, mode: int, lanes: int, tmp_path: Path) -> None:
    x = around_integers(np.random.default_rng(mode), BEATS * lanes)[: BEATS * lanes]
    want = canonical(round_reference(x.view(np.float32), mode))
    job = {
        "latency": 2,
        "beats": words(x.reshape(BEATS, lanes), 32),
        "expected": words(want.reshape(BEATS, lanes), 32),
    }
    drive(simulator, "hg_f32_round_unit", {"MODE": mode, "LANES": lanes}, job, tmp_path)


# ---------------------------------------------------------------- lint

LINT: list[tuple[str, Sequence[str]]] = [
    *[(name, [f"PIPE={pipe}"]) for name in ("add", "mul", "div", "pack") for pipe in (0, 1)],
    *[("minmax", [f"PIPE={k}", f"MAX={k}"]) for k in (0, 1)],
    *[("scale", ["PIPE=1", f"W={w}", f"M_W={m}"]) for w, m in [(64, 48), (1, 1), (32, 16)]],
    *[("round", [f"PIPE={mode % 2}", f"MODE={mode}"]) for mode in range(7)],
    *[("to_code", [f"MODE={m}", f"OUT_W={w}", f"OUT_SIGNED={m % 2}"]) for m, w in [(0, 1), (3, 33), (7, 8)]],
    *[("unit", [f"OP={op}", f"LANES={op + 1}", f"FOLDS={op + 1}"]) for op in range(5)],
    ("decode", []),
    ("decode", ["IN_W=1", "IN_SIGNED=0", "SHIFT=3", "B_W=20", "M_W=1", "LANES=2", "FOLDS=4"]),
    ("encode", []),
    ("encode", ["MODE=7", "OUT_W=1", "OUT_SIGNED=0", "LANES=4", "FOLDS=2"]),
    ("round_unit", []),
    ("round_unit", ["MODE=5", "LANES=2"]),
]


@pytest.mark.parametrize("name, params", LINT)
def test_lint(name: str, params: Sequence[str], tmp_path: Path) -> None:
    top = f"hg_f32_{name}"
    verilator = ["verilator", "--lint-only", "-Wall", "--quiet", "-y", str(RTL), "--top-module", top]
    verilator += [*[f"-G{p}" for p in params], str(RTL / f"{top}.v")]
    iverilog = ["iverilog", "-g2005", "-Wall", "-y", str(RTL), "-s", top, "-o", str(tmp_path / "a.vvp")]
    iverilog += [*[f"-P{top}.{p}" for p in params], str(RTL / f"{top}.v")]
    for command in (verilator, iverilog):
        completed = subprocess.run(command, env=tool_environment(), capture_output=True, text=True, check=False)
        assert (completed.returncode, completed.stderr) == (0, ""), completed.stderr


@pytest.mark.parametrize(
    "name, param",
    [
        ("scale", "W=65"),
        ("round", "MODE=7"),
        ("to_code", "OUT_W=34"),
        ("unit", "OP=5"),
        ("decode", "SHIFT=64"),
        ("decode", "LANES=0"),
        ("encode", "LANES=0"),
        ("encode", "FOLDS=0"),
    ],
)
def test_senseless_parameters_stop_elaboration(name: str, param: str) -> None:
    top = f"hg_f32_{name}"
    command = ["verilator", "--lint-only", "--quiet", "-y", str(RTL), "--top-module", top, f"-G{param}"]
    command.append(str(RTL / f"{top}.v"))
    completed = subprocess.run(command, env=tool_environment(), capture_output=True, text=True, check=False)
    assert completed.returncode != 0
    assert "hg_parameter_error" in completed.stderr
