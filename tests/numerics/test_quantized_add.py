"""Quantized add: the reference against the steps of its description, and the ONNX operator."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, shape_inference
from onnx.reference import ReferenceEvaluator

from hlsgen.frontend.domain_hlsgen import (
    ATTRIBUTES,
    OPERATORS,
    make_quantized_add,
    opset_import,
    quantized_add_parameters,
)
from hlsgen.numerics.quantized_add import BOUNDS, Parameters, quantized_add

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
    quotient, remainder = divmod(value, 2**shift)
    if 2 * remainder > 2**shift or (2 * remainder == 2**shift and quotient % 2 == 1):
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
    """The sum of every pair of codes, in the order of A and B."""
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


@pytest.mark.sweep
@pytest.mark.parametrize("make", [extreme_set, visible_set])
def test_all_pairs_of_codes(make: Callable[[random.Random], Set]) -> None:
    rng = random.Random(make.__name__)
    for _ in range(25):
        p = make(rng)
        codes = quantized_add(A, B, *p)
        assert codes.dtype == np.int8
        assert codes.tolist() == all_pairs(p), p


def test_every_shift_and_mixed_parameters() -> None:
    """All arguments as arrays, at the ends of the codes."""
    rng = random.Random(1)
    rows = [(*rng.choice([extreme_set, visible_set])(rng)[:6], shift) for shift in range(-128, 128) for _ in range(120)]
    codes = [rng.choice([-128, -127, -1, 0, 1, 126, 127]) for _ in range(2 * len(rows))]
    a, b = codes[::2], codes[1::2]
    sums = quantized_add(a, b, *(list(column) for column in zip(*rows, strict=True)))
    assert sums.tolist() == [steps(x, y, p) for x, y, p in zip(a, b, rows, strict=True)]


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


@pytest.mark.sweep
def test_operator_is_checked_inferred_and_evaluated() -> None:
    rng = random.Random(5)
    for p in [extreme_set(rng) for _ in range(3)] + [visible_set(rng) for _ in range(3)]:
        proto = model(["N", 256], ["N", 256], Parameters(*p))
        checker.check_model(proto, full_check=True)
        assert quantized_add_parameters(proto.graph.node[0]) == Parameters(*p)
        (codes,) = ReferenceEvaluator(proto, new_ops=OPERATORS).run(
            None, {"a": A.astype(np.int8).reshape(256, 256), "b": B.astype(np.int8).reshape(256, 256)}
        )
        assert codes.dtype == np.int8
        assert codes.ravel().tolist() == all_pairs(p)


@pytest.mark.parametrize(
    "a, b, c",
    [
        (["N", 3], ["N", 3], "Nx3"),
        ([4, 3], ["N", None], "4x3"),
        ([None, 3], ["M", 3], "Mx3"),
        ([], [], "scalar"),
        (None, [2, 3], "2x3"),
        ([5, 1], None, "5x1"),
    ],
)
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
        (attribute_proto,) = (entry for entry in proto.graph.node[0].attribute if entry.name == attribute)
        attribute_proto.i = BOUNDS[short][1] + 1
        with pytest.raises(shape_inference.InferenceError, match=attribute):
            shape_inference.infer_shapes(proto, strict_mode=True)
        proto.graph.node[0].attribute.remove(attribute_proto)
        with pytest.raises(checker.ValidationError, match=attribute):
            checker.check_model(proto)
        with pytest.raises(ValueError, match=attribute):
            quantized_add_parameters(proto.graph.node[0])
    with pytest.raises(shape_inference.InferenceError, match=r"typestr: T|type constraint|Type"):
        shape_inference.infer_shapes(model([2], [2], p, TensorProto.UINT8), check_type=True, strict_mode=True)


def test_evaluator_rejects_other_types_and_shapes() -> None:
    run = ReferenceEvaluator(model([2], [2], Parameters(0, 0, 0, 1, 1, 1, 0)), new_ops=OPERATORS).run
    with pytest.raises(ValueError, match="int8 operands, not uint8"):
        run(None, {"a": np.zeros(2, np.uint8), "b": np.zeros(2, np.uint8)})
    with pytest.raises(ValueError, match="one shape"):
        run(None, {"a": np.zeros((2, 2), np.int8), "b": np.zeros(2, np.int8)})


@pytest.mark.sweep
def test_interpreter_ends_without_errors() -> None:
    """A schema with a Python function must be gone before the interpreter is."""
    completed = subprocess.run(
        [sys.executable, "-c", "import hlsgen.frontend.domain_hlsgen"], capture_output=True, text=True
    )
    assert (completed.returncode, completed.stderr) == (0, "")
