"""hg_eltwise_add and its AXI wrapper, against the operations of the description on numpy vectors."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lanes import Words, compile_function
from streams import RTL, SIMULATORS, Stream, pack, sweep

from hlsgen.numerics.quantized_add import quantized_add

Vector = npt.NDArray[Any]
#: zp0, zp1, zpo, s0, s1, so, shift and their bits.
WIDTHS = {"zp0": 16, "zp1": 16, "zpo": 16, "s0": 16, "s1": 16, "so": 8, "shift": 8}
A, B = (axis.ravel().astype(np.int8) for axis in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
Set = tuple[int, int, int, int, int, int, int]

# ---------------------------------------------------------------- the operations, on vectors of their types


def vadd(x: Vector, y: Any, kind: type = np.int32) -> Vector:
    """Saturating addition."""
    info = np.iinfo(kind)
    return np.clip(x.astype(np.int64) + y, info.min, info.max).astype(kind)


def vmul(x: Vector, y: Any) -> Vector:
    """The low 32 bits of the product, as the processor's uint32 computes them."""
    return (x.astype(np.uint32) * np.asarray(y).astype(np.uint32)).view(np.int32)


def vnsrsr(x: Vector, shift: int, kind: type) -> Vector:
    """Shift right, round half to even, narrow with saturation; float64 holds these quotients exactly."""
    info = np.iinfo(kind)
    return np.clip(np.rint(x.astype(np.float64) / 2.0**shift), info.min, info.max).astype(kind)


def compute(a: Vector, b: Vector, p: Set) -> Vector:
    zp0, zp1, zpo, s0, s1, so, shift = p
    a32 = vmul(vadd(a, zp0), s0)
    b32 = vmul(vadd(b, zp1), s1)
    word = vmul(vadd(a32, b32.astype(np.int64)), so)
    if shift < 0:
        word = vmul(word, 1 << -shift) if shift > -32 else np.zeros_like(word)
        shift = 0
    half = vadd(vnsrsr(word, shift, np.int16), -zpo, np.int16)
    return vnsrsr(half, 0, np.int8)


def any_set(rng: random.Random) -> Set:
    """Parameters at the ends of their types half of the time; often a shift that keeps the code in range."""
    zp = [rng.choice([-32768, 32767, 0, rng.randint(-32768, 32767), rng.randint(-300, 300)]) for _ in range(3)]
    s = [rng.choice([65535, 32768, 1, 0, rng.randint(0, 65535), rng.randint(0, 65535)]) for _ in range(2)]
    so = rng.choice([255, 1, 128, 0, rng.randint(0, 255), rng.randint(0, 255)])
    if rng.random() < 0.5:
        return (zp[0], zp[1], rng.randint(-100, 100), s[0], s[1], max(so, 1), rng.randint(20, 26))
    return (zp[0], zp[1], zp[2], s[0], s[1], so, rng.randint(-128, 127))


# ---------------------------------------------------------------- one lane


@cache
def function(pipe: int) -> Callable[..., Words]:
    inputs = {"a": 8, "b": 8, **WIDTHS}
    file, latency = RTL / "hg_eltwise_add_fn.v", 7 if pipe else 0
    return compile_function([file], "hg_eltwise_add_fn", {"PIPE": pipe}, inputs, ("c", 8), latency)


def lane(pipe: int, a: Vector, b: Vector, p: Set, *, stalls: bool = False) -> Vector:
    # The harness ends with noise on all inputs, which would be the parameters of the last pairs.
    ends = np.zeros(7 * pipe, np.int8)
    words = function(pipe)(
        a=np.append(a, ends), b=np.append(b, ends), stalls=stalls, **dict(zip(WIDTHS, p, strict=True))
    )
    return words[: len(a)].astype(np.uint8).view(np.int8)


def assert_all_pairs(pipe: int, p: Set, *, stalls: bool = False) -> None:
    want = compute(A, B, p)
    assert np.array_equal(quantized_add(A, B, *p), want), p
    actual = lane(pipe, A, B, p, stalls=stalls)
    wrong = np.flatnonzero(actual != want)
    assert not wrong.size, (p, A[wrong[0]], B[wrong[0]], actual[wrong[0]], want[wrong[0]])


def test_all_pairs_at_every_shift() -> None:
    """Extreme parameters, each shift from -128 to 127, all 65536 pairs."""
    rng = random.Random(1)
    for shift in range(-128, 128):
        assert_all_pairs(0, (*any_set(rng)[:6], shift))


def test_all_pairs_at_the_corners() -> None:
    """Every combination of the ends of zp0, zp1, s0, s1 and so, with the top bits in view."""
    rng = random.Random(2)
    ends = np.stack(np.meshgrid([-32768, 32767], [-32768, 32767], [1, 65535], [1, 65535], [1, 255]), -1).reshape(-1, 5)
    for zp0, zp1, s0, s1, so in ends.tolist():
        for zpo in (-32768, 32767, rng.randint(-90, 90)):
            assert_all_pairs(0, (zp0, zp1, zpo, s0, s1, so, rng.choice([8, 15, 16, 22, 23, 24, 25])))


def test_all_pairs_of_random_sets() -> None:
    rng = random.Random(3)
    for _ in range(150):
        assert_all_pairs(0, any_set(rng))


def test_ties() -> None:
    """Sums half-way between two codes and beside them, at every shift: A = u * 65535, B = v."""
    for shift in range(32):
        half = (1 << shift) >> 1
        quotients = np.arange(-131, 132)
        total = (quotients[:, None] * (1 << shift) + half + np.array([-1, 0, 1])).ravel()
        total = total[np.abs(total) < 2**31 - 65536]
        u, v = np.divmod(total + 32768, 65535)
        a, b = np.clip(u, -128, 127), np.clip(v - 32768, -128, 127)
        actual = function(0)(a=a, b=b, zp0=u - a, zp1=v - 32768 - b, zpo=0, s0=65535, s1=1, so=1, shift=shift)
        want = np.clip(np.rint(total / 2.0**shift), -128, 127)
        assert len(total) > 2
        assert np.array_equal(actual.astype(np.uint8).view(np.int8), want), shift


@pytest.mark.parametrize("stalls", [False, True])
def test_pipeline(stalls: bool) -> None:
    rng = random.Random(4)
    for _ in range(12):
        assert_all_pairs(1, any_set(rng), stalls=stalls)


# ---------------------------------------------------------------- the stream


def random_sets(rng: random.Random, rows: int) -> list[Set]:
    return [any_set(rng) for _ in range(rows)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep([(3, 4), (1, 1), (8, 9)], 1))
def test_stream(simulate: Callable[..., None], simulator: str, shape: tuple[int, int]) -> None:
    """Other parameters with every beat; the sideband stays with its beat."""
    lanes, user = shape
    rng, generator = random.Random(lanes), np.random.default_rng(lanes)
    pairs = generator.integers(-128, 128, (300, 2 * lanes))
    sets = random_sets(rng, 300)
    users = [rng.getrandbits(user) for _ in sets]
    codes = np.stack([compute(row[:lanes], row[lanes:], p) for row, p in zip(pairs, sets, strict=True)])
    columns = {
        f"s_{name}": [int(p[k]) & ((1 << bits) - 1) for p in sets] for k, (name, bits) in enumerate(WIDTHS.items())
    }
    job = Stream(
        {"s_data": pack(pairs, 8), "s_user": users, **columns},
        {"m_data": pack(codes, 8), "m_user": users},
        latency=7,
        capacity=7,
    )
    simulate(simulator, "hg_eltwise_add", {"LANES": lanes, "USER_W": user}, job)


# ---------------------------------------------------------------- AXI


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("words, status, address_bits", [(3, 2, 5), (2, 1, 4)])
def test_registers(cocotb_job: Callable[..., None], simulator: str, words: int, status: int, address_bits: int) -> None:
    rng = random.Random(words)
    reset, masks = ([rng.getrandbits(32) for _ in range(words)] for _ in range(2))
    parameters: dict[str, object] = {"WORDS": words, "STATUS": status, "ADDR_W": address_bits}
    for name, values in (("RESET", reset), ("MASK", masks)):
        parameters[name] = f"{32 * words}'h{sum(word << (32 * k) for k, word in enumerate(values)):x}"
    job = {"reset": reset, "masks": masks, "status": status, "address_bits": address_bits}
    cocotb_job(simulator, "hg_axil_regs", parameters, job, tests=4)


def register_words(p: Set) -> list[int]:
    """Words 0x00, 0x04, 0x08."""
    zp0, zp1, zpo, s0, s1, so, shift = p
    return [zp0 & 0xFFFF | (zp1 & 0xFFFF) << 16, s0 | s1 << 16, zpo & 0xFFFF | so << 16 | (shift & 0xFF) << 24]


def frame(rng: random.Random, beats: int, lanes: int, sets: list[Set], initial: Set) -> dict[str, Any]:
    """A frame, its codes with a set of its own and with the one after reset."""
    generator = np.random.default_rng(rng.getrandbits(32))
    a, b = generator.integers(-128, 128, (2, beats, lanes)).astype(np.int8)
    chosen = rng.randrange(len(sets))
    vectors = {"a": a, "b": b, "c": compute(a, b, sets[chosen]), "initial": compute(a, b, initial)}
    words = {name: [f"{word:x}" for word in pack(vector, 8)] for name, vector in vectors.items()}
    return {"set": chosen, "keep": (2 << rng.randrange(lanes)) - 1, **words}


def lively(rng: random.Random) -> Set:
    """Parameters whose codes differ from pair to pair, so that a wrong set shows."""
    probe = np.random.default_rng(1).integers(-128, 128, (2, 64)).astype(np.int8)
    while True:
        p = any_set(rng)
        if len(np.unique(compute(probe[0], probe[1], p))) > 40:
            return p


AXI = [("icarus", 3, 1), ("verilator", 3, 1), ("icarus", 1, 0), ("verilator", 4, 0), ("icarus", 1, 1)]
OUTPUTS = [
    "s0_axis_tready",
    "s1_axis_tready",
    "m_axis_tdata",
    "m_axis_tkeep",
    "m_axis_tlast",
    "m_axis_tvalid",
    "frame_error",
    "s_axil_awready",
    "s_axil_wready",
    "s_axil_bresp",
    "s_axil_bvalid",
    "s_axil_arready",
    "s_axil_rdata",
    "s_axil_rresp",
    "s_axil_rvalid",
]
INPUTS = [
    *(f"s{k}_axis_t{name}" for k in (0, 1) for name in ("data", "keep", "last", "valid")),
    "m_axis_tready",
    "s_axil_awaddr",
    "s_axil_awvalid",
    "s_axil_wdata",
    "s_axil_wstrb",
    "s_axil_wvalid",
    "s_axil_bready",
    "s_axil_araddr",
    "s_axil_arvalid",
    "s_axil_rready",
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, lanes, registers", AXI)
def test_axi(cocotb_job: Callable[..., None], simulator: str, lanes: int, registers: int) -> None:
    """Frames of one beat and more, stalls, parameters that change, errors, reset."""
    rng = random.Random(10 * lanes + registers)
    initial, sets = lively(rng), [lively(rng) for _ in range(5)]
    lengths = [1, 5, 3, 1, 1, 17, 2, 9, 4, 1, 30, 3]
    job = {
        "port": bool(registers),
        "full": (1 << lanes) - 1,
        "sets": [register_words(p) for p in sets],
        "frames": [frame(rng, beats, lanes, sets, initial) for beats in lengths],
        "inputs": INPUTS,
        "outputs": OUTPUTS,
    }
    parameters: dict[str, object] = {"LANES": lanes, "REGISTERS": registers}
    for (name, bits), value in zip(WIDTHS.items(), initial, strict=True):
        parameters[name.upper()] = f"{bits}'d{value & ((1 << bits) - 1)}"
    cocotb_job(simulator, "hg_eltwise_add_axi", parameters, job, tests=8 if registers else 5)
