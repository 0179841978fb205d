"""Operators of onnxruntime's own domain, and single operators between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import ort
import pytest
from functions import FUNCTIONS, HALF
from integer_models import agrees, chain, codes, evaluated, model, same
from onnx import helper

Array = Any
f32 = np.float32
TYPES = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")]


def all_codes(dtype: str) -> Array:
    """All codes of an 8-bit type, as a column."""
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype).reshape(256, 1)


def any_code(rng: np.random.Generator, dtype: str, shape: Any = ()) -> Array:
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max + 1, shape)).astype(dtype)


@pytest.mark.cases(2)
@pytest.mark.sweep
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("first", [True, False])
def test_binary_operators(op: str, dtype: str, first: bool, tmp_path: Path) -> None:
    """All codes with a constant on either side: a number, a row, a column, a matrix."""
    for seed, shape in enumerate([(), (1,), (2,), (1, 2), (256, 1), (256, 2)]):
        rng = np.random.default_rng(seed)
        sa, sb = np.exp(rng.uniform(-5, 0, 2)).astype(f32)
        data_inputs: list[Any] = ["x", sa, any_code(rng, dtype)]
        constant_inputs: list[Any] = [any_code(rng, dtype, shape), sb, any_code(rng, dtype)]
        sy = f32(sa + sb) if op == "QLinearAdd" else f32(sa * sb * 100)
        node_model = microsoft(
            op,
            [*(data_inputs + constant_inputs if first else constant_inputs + data_inputs), sy, any_code(rng, dtype)],
            dtype,
            [256, 2],
        )
        agrees(node_model, np.repeat(all_codes(dtype), 2, axis=1), tmp_path)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "data, constant, seeds",
    [
        ((64, 1), (1,), (27393, 29995)),
        ((64, 1), (), (27393, 29995)),
        ((64, 1), (64, 1), (2298, 17182)),
        ((16, 8), (16, 1), (8379, 8781)),
        ((2, 8, 4), (1, 8, 1), (5855, 9293)),
        ((4, 16), (16,), (2298, 4644)),
    ],
)
def test_sums_of_broadcast_operands(
    data: tuple[int, ...], constant: tuple[int, ...], seeds: tuple[int, ...], first: bool, tmp_path: Path
) -> None:
    """The kernel exchanges operands of some shapes. For these parameters, among thousands, it changes the result."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        sa, sb = (f32(np.round(v, 3)) for v in rng.uniform(0.001, 0.1, 2))
        sy = f32((float(sa) + float(sb)) * 2.0 ** rng.uniform(-1, 1))
        za, zb, zy = (any_code(rng, "int8") for _ in range(3))
        x, c = any_code(rng, "int8", data), any_code(rng, "int8", constant)
        args = x, sa, int(za), c, sb, int(zb), sy, int(zy), -128, 127
        assert not same(ort.qlinear_add(*args), ort.qlinear_add(*args, swap=True))
        data_inputs, constant_inputs = ["x", sa, za], [c, sb, zb]
        agrees(
            microsoft(
                "QLinearAdd",
                [*(data_inputs + constant_inputs if first else constant_inputs + data_inputs), sy, zy],
                "int8",
                data,
            ),
            x,
            tmp_path,
        )


def microsoft(op: str, inputs: list[Any], dtype: str, shape: Any, output: str | None = None, **attributes: Any) -> Any:
    """One node of onnxruntime's own domain; inputs are "x", "" or constants."""
    names = [part if isinstance(part, str) else f"c{i}" for i, part in enumerate(inputs)]
    constants = {n: part for n, part in zip(names, inputs, strict=True) if not isinstance(part, str)}
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    return model([node], {"x": (dtype, shape)}, output or dtype, **constants)


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("activation, weight", TYPES)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_gemm(activation: str, weight: str, alpha: float, tmp_path: Path) -> None:
    """alpha scales the bias as well; transposed weights, scales of each column, float results."""
    rng = np.random.default_rng(10)
    for trans, columns, bias, real in product([0, 1], [False, True], [None, (5,), (1, 5), ()], [False, True]):
        if real and bias == ():
            continue
        n = (5,) if columns else ()
        matrix = any_code(rng, weight, (5, 12) if trans else (12, 5))
        constant = "" if bias is None else rng.integers(-5000, 5000, bias).astype(np.int32)
        node_model = microsoft(
            "QGemm",
            [
                "x",
                f32(0.03),
                any_code(rng, activation),
                matrix,
                np.exp(rng.uniform(-4, -2, n)).astype(f32),
                any_code(rng, weight, n),
                constant,
                *([] if real else [f32(0.07), any_code(rng, activation)]),
            ],
            activation,
            ["N", 12],
            "float32" if real else None,
            transB=trans,
            alpha=alpha,
        )
        agrees(node_model, codes(node_model, 60), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("activation, weight", TYPES)
def test_products_with_float_results(activation: str, weight: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    for columns, bias in product([(), (5,)], [[], [rng.normal(size=5).astype(f32)]]):
        node_model = microsoft(
            "MatMulIntegerToFloat",
            [
                "x",
                any_code(rng, weight, (12, 5)),
                f32(0.03),
                np.exp(rng.uniform(-4, -2, columns)).astype(f32),
                any_code(rng, activation),
                any_code(rng, weight, columns),
                *bias,
            ],
            activation,
            ["N", 12],
            "float32",
        )
        agrees(node_model, codes(node_model, 60), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "op, attributes",
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {}),
        ("QLinearLeakyRelu", {"alpha": 0.1}),
    ],
)
def test_tables_of_onnxruntime(op: str, attributes: dict[str, float], tmp_path: Path) -> None:
    for seed in range(12):
        rng, dtype = np.random.default_rng(seed), ["int8", "uint8"][seed % 2]
        sx, sy = np.exp(rng.uniform(-4, -2, 2)).astype(f32)
        output = f32(1 / 300) if op == "QLinearSigmoid" else sy
        parts = ["x", sx, any_code(rng, dtype), output, any_code(rng, dtype)]
        agrees(microsoft(op, parts, dtype, [256, 1], **attributes), all_codes(dtype), tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "shape, axis, opset",
    [
        ((2, 300), -1, 13),
        ((3, 7), 1, 12),
        ((2, 5, 3), 1, 13),
        ((2, 5, 3), 1, 11),
        ((1, 1000), 1, 18),
    ],
)
def test_softmax(shape: tuple[int, ...], axis: int, opset: int, dtype: str, tmp_path: Path) -> None:
    """The host's lookup table of exponentials, and sums in order. onnxruntime's int8 codes wrap above 127."""
    low = np.array(np.iinfo(dtype).min, dtype)
    for seed, (sx, sy) in enumerate([(0.1, 1 / 250), (0.03, 1 / 255), (1.3, 1 / 128), (1e-3, 1 / 256)]):
        if sy == 1 / 256 and dtype == "int8":
            continue
        rng = np.random.default_rng(seed)
        constants = {"one": f32(1), "zero": low, "sx": f32(sx), "sy": f32(sy)}
        nodes = [
            helper.make_node("QLinearLeakyRelu", ["x", "one", "zero", "one", "zero"], ["t"], domain="com.microsoft"),
            helper.make_node(
                "QLinearSoftmax",
                ["t", "sx", "zero", "sy", "zero"],
                ["y"],
                domain="com.microsoft",
                axis=axis,
                opset=opset,
            ),
        ]
        agrees(model(nodes, {"x": (dtype, shape)}, dtype, **constants), any_code(rng, dtype, shape), tmp_path)


# --------------------------------------------------------------------------- one operator between quantizers


def spread(y: Array) -> float:
    finite = y[np.isfinite(y)].astype(float)
    return float(np.ptp(finite))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_code_through_an_operator(name: str, tmp_path: Path) -> None:
    """256 codes and six random scales.

    Smooth functions are correctly rounded here, and not in onnxruntime. No code here is within an ulp of a rounding
    boundary, where this would matter.
    """
    op, constants, function = FUNCTIONS[name]
    wrong = 0
    for seed in range(6):
        rng, dtype, output = np.random.default_rng(seed), ["int8", "uint8"][seed % 2], ["int8", "uint8"][seed // 2 % 2]
        zero = any_code(rng, dtype) if name not in HALF else np.array(np.iinfo(dtype).min, dtype)
        sx, point = f32(np.exp(rng.uniform(-4.5, -2.5))), any_code(rng, output)
        first = ("DequantizeLinear", sx, zero), (op, *constants)
        real = ort.run(chain(*first, source=dtype, shape=[256, 1], opset=20), {"x": all_codes(dtype)})[0]
        sy = f32(max(spread(real), 1e-3) / rng.uniform(150, 300))
        node_model = chain(*first, ("QuantizeLinear", sy, point), source=dtype, shape=[256, 1], opset=20)
        y, z = evaluated(node_model, all_codes(dtype), tmp_path), ort.run(node_model, {"x": all_codes(dtype)})[0]
        if function is not None:
            info = np.iinfo(output)
            with np.errstate(all="ignore"):
                exact = function(ort.dequantize_linear(all_codes(dtype), sx, int(zero)).astype(np.float64)).astype(f32)
            assert same(y, ort.quantize_linear(exact, sy, int(point), info.min, info.max))
        wrong += int((y != z).sum())
    assert wrong == 0
