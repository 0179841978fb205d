"""Quantized add: the reference against the steps of its description, the ONNX operator, the derivation."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, shape_inference
from onnx.reference import ReferenceEvaluator

from hlsgen.frontend.dialect import ATTRIBUTES, OPERATORS, make_quantized_add, opset_import, quantized_add_parameters
from hlsgen.quantized_add import BOUNDS, Parameters, derive, greatest_error, quantized_add

CODES = range(-128, 128)
A, B = (axis.ravel() for axis in np.meshgrid(CODES, CODES, indexing="ij"))
#: zp0, zp1, zpo, s0, s1, so, shift
Set = tuple[int, int, int, int, int, int, int]
Shape = list[int | str | None] | None


# ---------------------------------------------------------------- the description, step by step


def saturated(value: int, bits: int) -> int:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return low if value < low else high if value > high else value


def low_bits(value: int) -> int:
    """The low 32 bits as a signed number."""
    value %= 2**32
    return value - 2**32 if value >= 2**31 else value


def upgraded(code: int, zero_point: int, scale: int) -> int:
    """vadd(saturate), vmul of one input."""
    return low_bits(saturated(code + zero_point, 32) * scale)


def narrowed(value: int, shift: int, bits: int) -> int:
    """vnsrsr: shift right, round, saturate."""
    quotient, rest = divmod(value, 2**shift)
    if 2 * rest > 2**shift or (2 * rest == 2**shift and quotient % 2 == 1):
        quotient += 1
    return saturated(quotient, bits)


def finished(a32: int, b32: int, zpo: int, so: int, shift: int) -> int:
    """From the two products to the code."""
    word = saturated(a32 + b32, 32)
    word = low_bits(word * so)
    half = narrowed(low_bits(word * 2**-shift), 0, 16) if shift < 0 else narrowed(word, shift, 16)
    half = saturated(half - zpo, 16)
    return narrowed(half, 0, 8)


def steps(a: int, b: int, p: Set) -> int:
    return finished(upgraded(a, p[0], p[3]), upgraded(b, p[1], p[4]), p[2], p[5], p[6])


def all_pairs(p: Set) -> list[int]:
    """Of every pair of codes, in the order of A and B."""
    first, second = ([upgraded(code, p[k], p[3 + k]) for code in CODES] for k in (0, 1))
    return [finished(x, y, p[2], p[5], p[6]) for x in first for y in second]


def extreme_set(rng: random.Random) -> Set:
    """Parameters at and near the ends of their types, now and then moderate ones."""
    zp = [rng.choice([-32768, -32767, 32767, 0, rng.randint(-32768, 32767), rng.randint(-200, 200)]) for _ in range(3)]
    s = [rng.choice([65535, 65534, 32768, 1, 0, rng.randint(0, 65535)]) for _ in range(2)]
    shift = rng.choice(
        [-128, -127, -33, -32, -31, -1, 0, 1, 31, 32, 33, 127, *[rng.randint(-16, 31) for _ in range(8)]]
    )
    return (*zp, *s, rng.choice([255, 254, 128, 1, 0, rng.randint(0, 255)]), shift)


def visible_set(rng: random.Random) -> Set:
    """Extreme inputs, but a shift that leaves the top bits of the 32 in the code."""
    zp0, zp1, _, s0, s1, so, _ = extreme_set(rng)
    return (zp0, zp1, rng.choice([0, 1, -7]), s0, s1, max(so, 1), rng.randint(21, 26))


# ---------------------------------------------------------------- the reference


@pytest.mark.parametrize("make", [extreme_set, visible_set])
def test_all_pairs_of_codes(make: Callable[[random.Random], Set]) -> None:
    rng = random.Random(make.__name__)
    for _ in range(25):
        p = make(rng)
        got = quantized_add(A, B, *p)
        assert got.dtype == np.int8
        assert got.tolist() == all_pairs(p), p


def test_every_shift_and_mixed_parameters() -> None:
    """All arguments as arrays, at the ends of the codes."""
    rng = random.Random(1)
    rows = [(*rng.choice([extreme_set, visible_set])(rng)[:6], shift) for shift in range(-128, 128) for _ in range(120)]
    codes = [rng.choice([-128, -127, -1, 0, 1, 126, 127]) for _ in range(2 * len(rows))]
    a, b = codes[::2], codes[1::2]
    got = quantized_add(a, b, *(list(column) for column in zip(*rows, strict=True)))
    assert got.tolist() == [steps(x, y, p) for x, y, p in zip(a, b, rows, strict=True)]


def split(total: int) -> tuple[int, int, Set]:
    """(a, b, parameters with so = 1) whose sum is that 32-bit number: A = u * 65535, B = v."""
    u, v = divmod(total + 32768, 65535)
    a, b = max(-128, min(127, u)), max(-128, min(127, v - 32768))
    return a, b, (u - a, v - 32768 - b, 0, 65535, 1, 1, 0)


def test_ties_of_every_shift() -> None:
    """Sums at and beside half-way points, whose quotients fit the code."""
    for shift in range(1, 34):
        half = 2 ** (shift - 1)
        limit = min(130, 2 ** (31 - shift) - 1) if shift < 31 else 0
        quotients = {0, 1, 2, 3, limit, limit - 1, 63, 64, -1, -2, -3, -limit}
        totals = [q * 2**shift + half + d for q in quotients for d in (-1, 0, 1)]
        for total in (total for total in totals if abs(total) < 2**31 - 65536):
            a, b, p = split(total)
            p = (*p[:6], shift)
            assert upgraded(a, p[0], p[3]) + upgraded(b, p[1], p[4]) == total
            want = saturated(round(Fraction(total, 2**shift)), 8)
            assert steps(a, b, p) == want == int(quantized_add(a, b, *p)), (total, shift)


@pytest.mark.parametrize("name", BOUNDS)
def test_parameters_out_of_bounds(name: str) -> None:
    good = {"zp0": 0, "zp1": 0, "zpo": 0, "s0": 1, "s1": 1, "so": 1, "shift": 0}
    for value, fine in zip((BOUNDS[name][0] - 1, *BOUNDS[name], BOUNDS[name][1] + 1), (0, 1, 1, 0), strict=True):
        if fine:
            quantized_add([1], [2], **{**good, name: value})
            Parameters(**{**good, name: value})
        else:
            with pytest.raises(ValueError, match=f"{name} is not within"):
                quantized_add([1], [2], **{**good, name: value})
            with pytest.raises(ValueError, match=f"{name} is not within"):
                Parameters(**{**good, name: value})
    with pytest.raises(TypeError, match=name):
        quantized_add([1], [2], **{**good, name: 1.0})


def test_codes_out_of_bounds() -> None:
    for a, b in ((128, 0), (0, -129)):
        with pytest.raises(ValueError, match="is not within -128 and 127"):
            quantized_add(a, b, 0, 0, 0, 1, 1, 1, 0)
    assert quantized_add(np.zeros((0, 3), np.int8), np.zeros((0, 3), np.int8), 0, 0, 0, 1, 1, 1, 0).shape == (0, 3)


# ---------------------------------------------------------------- the ONNX operator


def model(a: Shape, b: Shape, p: Parameters, kind: int = TensorProto.INT8) -> onnx.ModelProto:
    """The output's dimensions are for inference to find."""
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in (("a", a), ("b", b))]
    output = helper.make_tensor_value_info("c", TensorProto.INT8, [None] * len(a or b or []))
    node = make_quantized_add("a", "b", "c", p, name="add")
    graph = helper.make_graph([node], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), opset_import()], ir_version=10)


def test_operator_is_checked_inferred_and_evaluated() -> None:
    rng = random.Random(5)
    for p in [extreme_set(rng) for _ in range(3)] + [visible_set(rng) for _ in range(3)]:
        proto = model(["N", 256], ["N", 256], Parameters(*p))
        checker.check_model(proto, full_check=True)
        assert quantized_add_parameters(proto.graph.node[0]) == Parameters(*p)
        (got,) = ReferenceEvaluator(proto, new_ops=OPERATORS).run(
            None, {"a": A.astype(np.int8).reshape(256, 256), "b": B.astype(np.int8).reshape(256, 256)}
        )
        assert got.dtype == np.int8
        assert got.ravel().tolist() == all_pairs(p)


@pytest.mark.parametrize(
    "a, b, c",
    [(["N", 3], ["N", 3], "Nx3"), ([4, 3], ["N", None], "4x3"), ([None, 3], ["M", 3], "Mx3"), ([], [], "scalar"),
     (None, [2, 3], "2x3"), ([5, 1], None, "5x1")],
)  # fmt: skip
def test_shape_inference(a: Shape, b: Shape, c: str) -> None:
    proto = shape_inference.infer_shapes(model(a, b, Parameters(0, 0, 0, 1, 1, 1, 0)), strict_mode=True)
    assert helper.printable_value_info(proto.graph.output[0]) == f"%c[INT8, {c}]"


def test_shape_inference_rejects() -> None:
    p = Parameters(0, 0, 0, 1, 1, 1, 0)
    for a, b, message in (([2], [3], "dimensions 2 and 3"), ([1, 2], [2], "ranks 2 and 1")):
        with pytest.raises(shape_inference.InferenceError, match=message):
            shape_inference.infer_shapes(model(a, b, p), strict_mode=True)
    for attribute, short in ATTRIBUTES.items():
        proto = model([2], [2], p)
        (found,) = (entry for entry in proto.graph.node[0].attribute if entry.name == attribute)
        found.i = BOUNDS[short][1] + 1
        with pytest.raises(shape_inference.InferenceError, match=attribute):
            shape_inference.infer_shapes(proto, strict_mode=True)
        proto.graph.node[0].attribute.remove(found)
        with pytest.raises(checker.ValidationError, match=attribute):
            checker.check_model(proto)
        with pytest.raises(ValueError, match=attribute):
            quantized_add_parameters(proto.graph.node[0])
    with pytest.raises(shape_inference.InferenceError, match=r"typestr: T|type constraint|Type"):
        shape_inference.infer_shapes(model([2], [2], p, TensorProto.UINT8), check_type=True, strict_mode=True)


def test_evaluator_rejects_other_types_and_shapes() -> None:
    run = ReferenceEvaluator(model([2], [2], Parameters(0, 0, 0, 1, 1, 1, 0)), new_ops=OPERATORS).run
    with pytest.raises(ValueError, match="int8, not uint8"):
        run(None, {"a": np.zeros(2, np.uint8), "b": np.zeros(2, np.uint8)})
    with pytest.raises(ValueError, match="one shape"):
        run(None, {"a": np.zeros((2, 2), np.int8), "b": np.zeros(2, np.int8)})


def test_interpreter_ends_in_peace() -> None:
    """A schema with a Python function must be gone before the interpreter is."""
    done = subprocess.run([sys.executable, "-c", "import hlsgen.frontend.dialect"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------- float scales


def exact_sum(scales: tuple[float, float, float], zeros: tuple[int, int, int], inside: bool) -> list[int]:
    """The codes that exact arithmetic gives; `inside`: the zero point is added before rounding."""
    ratio_a, ratio_b = (Fraction(s) / Fraction(scales[2]) for s in scales[:2])
    bottom = ratio_a.denominator * ratio_b.denominator
    first = [int(ratio_a * bottom) * (code - zeros[0]) for code in CODES]
    second = [int(ratio_b * bottom) * (code - zeros[1]) for code in CODES]
    before, after = (zeros[2], 0) if inside else (0, zeros[2])
    found = []
    for x in first:
        for y in second:
            quotient, rest = divmod(x + y + before * bottom, bottom)
            quotient += 2 * rest > bottom or (2 * rest == bottom and quotient % 2 == 1)
            found.append(saturated(quotient + after, 8))
    return found


def random_quantization(rng: random.Random, kind: int = 0) -> tuple[tuple[float, float, float], tuple[int, int, int]]:
    """float32 scales with ratios from 1/64 to 64; kind 1: with an exact one, 2: small integers."""
    a, b, c = (float(np.float32(2.0 ** rng.uniform(-9, -3))) for _ in range(3))
    if kind == 1:
        bits = rng.randint(1, 14)
        a = c * (2 * rng.randrange(1 << bits) + 1) / 2**bits
    elif kind == 2:
        a, b, c = (float(rng.randint(1, 50)) for _ in range(3))
    return (a, b, c), (rng.randint(-128, 127), rng.randint(-128, 127), rng.randint(-128, 127))


def derived(
    scales: tuple[float, float, float], zeros: tuple[int, int, int], *, round_first: bool = False
) -> Parameters:
    (a, b, c), (x, y, z) = scales, zeros
    return derive(a, x, b, y, c, z, round_first=round_first)


def test_derived_add_is_within_its_bound() -> None:
    """Codes differ by one at most, and only where the exact sum is that close to a tie."""
    rng = random.Random(8)
    for k in range(180):
        scales, zeros = random_quantization(rng, k % 3)
        found = derived(scales, zeros)
        bound = greatest_error(found, *scales)
        assert bound < Fraction(1, 2)
        assert bound == greatest_error(derived(scales, zeros, round_first=True), *scales)
        y = (scales[0] * (A - zeros[0]) + scales[1] * (B - zeros[1])) / scales[2]
        want = np.clip(np.rint(y + zeros[2]), -128, 127)
        off = np.abs(found.apply(A, B) - want)
        to_tie = np.abs(y - np.floor(y) - 0.5)
        assert off.max() <= 1
        assert (to_tie[off > 0] <= float(bound) + 1e-9).all()


@pytest.mark.parametrize("seed", [0, 8, 12, 19])
def test_nothing_comes_closer(seed: int) -> None:
    """Every so and shift, with both neighbours of the exact multipliers, in exact fractions."""
    rng = random.Random(seed)
    scales, zeros = random_quantization(rng)
    found = greatest_error(derived(scales, zeros), *scales)
    ratios = [Fraction(s) / Fraction(scales[2]) for s in scales[:2]]
    corners = list(product(*((-128 - zero, 127 - zero) for zero in zeros[:2])))
    for so, shift in product(range(1, 256), range(-3, 32)):
        unit = Fraction(so) / Fraction(2) ** shift
        low = [int(ratio / unit) for ratio in ratios]
        if max(low) > 65535 or max(low) < 256:
            continue
        for s0, s1 in product(*((s, s + 1) for s in low)):
            if max(s0, s1) > 65535 or max(abs(s0 * u + s1 * v) for u, v in corners) * so * 2 ** max(-shift, 0) >= 2**31:
                continue
            e, f = s0 * unit - ratios[0], s1 * unit - ratios[1]
            assert max(abs(e * u + f * v) for u, v in corners) >= found * (1 - Fraction(1, 10**9)), (s0, s1, so, shift)


@pytest.mark.parametrize("round_first", [False, True])
@pytest.mark.parametrize(
    "exponents", [(0, 0), (-1, -1), (-1, -2), (0, -3), (-4, 2), (1, -2), (3, 5), (-7, -7), (-3, 9)]
)
def test_powers_of_two_are_exact(exponents: tuple[int, int], round_first: bool) -> None:
    rng = random.Random(sum(exponents))
    for odd in (1, 1, 3, 11):
        scales = (2.0 ** exponents[0] * odd * 0.75, 2.0 ** exponents[1] * 0.75, 0.75)
        zeros = (rng.randint(-128, 127), rng.randint(-128, 127), rng.choice([-127, -3, 1, 2, 0, 77, 127]))
        found = derived(scales, zeros, round_first=round_first)
        assert found.apply(A, B).tolist() == exact_sum(scales, zeros, inside=not round_first)


def test_large_ratio_stays_in_bounds() -> None:
    """No room for a moved zero point in 16 bits: QuantizeLinear's ties."""
    scales, zeros = (40001.0, 2.0, 2.0), (3, 4, 5)
    assert derived(scales, zeros).apply(A, B).tolist() == exact_sum(scales, zeros, inside=False)


def test_derivation_rejects() -> None:
    for arguments, message in [
        ((0.0, 0, 1.0, 0, 1.0, 0), "not positive"),
        ((1.0, 0, -1.0, 0, 1.0, 0), "not positive"),
        ((1.0, 0, 1.0, 0, float("inf"), 0), "not positive"),
        ((1.0, 128, 1.0, 0, 1.0, 0), "a is not within"),
        ((1e5, 0, 1.0, 0, 1.0, 0), "half a code"),
        ((1e300, 0, 1.0, 0, 1e-300, 0), "half a code"),
    ]:
        with pytest.raises(ValueError, match=message):
            derive(*arguments)
