"""Integer ONNX in every type and opset, and operators after an integer layer, equal onnxruntime."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import ort
import pytest
from integer_models import FLOAT, ONE, QUANTIZE, agrees, chain, codes, compiled, evaluated, refused, same
from onnx import TensorProto

from hlsgen.interpreter import graph as reference

Array = Any
f16, f32 = np.float16, np.float32


def floats(columns: int = 6, rows: int = 200) -> Array:
    """float32 samples; ties, infinities, NaN and subnormals among them."""
    x = (np.random.default_rng(2).normal(size=(rows, columns)) * 40).astype(f32)
    x[:2, :6] = [[0.5, 1.5, -0.5, 2.5, -1.5, np.inf], [np.nan, -np.inf, 1e30, -1e30, -0.0, 1e-40]]
    return x


@pytest.mark.sweep
@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 25])
def test_opsets(opset: int, tmp_path: Path) -> None:
    """QuantizeLinear and integer layers of every opset, from a float32 input."""
    weight = np.random.default_rng(3).integers(-128, 128, (6, 5)).astype(np.int8)
    for zero in (np.int8(3), np.uint8(130)):
        model = chain(
            ("QuantizeLinear", f32(0.4), zero),
            ("MatMulInteger", weight, zero),
            FLOAT,
            ("Mul", f32(0.004)),
            ("QuantizeLinear", f32(0.7), zero),
            ("DequantizeLinear", f32(0.7), zero),
            source="float32",
            shape=["N", 6],
            opset=opset,
        )
        agrees(model, floats(), tmp_path)
        agrees(model, floats(), tmp_path, input="float32")


@pytest.mark.parametrize("opset", [21, 23, 25])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("zero", [None, 0, 3])
def test_four_bits(kind: str, opset: int, zero: int | None, tmp_path: Path) -> None:
    """QuantizeLinear to 4 bits, followed by an operator to another type, as onnxruntime cannot output such tensors."""
    point = [] if zero is None else [np.array(zero, getattr(ml_dtypes, kind))]
    attributes = {"output_dtype": getattr(TensorProto, kind.upper())} if zero is None else {}
    first = ("QuantizeLinear", f32(9), *point, attributes)
    for after in (("DequantizeLinear", f32(0.3), *point), ("Cast", {"to": TensorProto.INT8})):
        model = chain(first, after, source="float32", shape=["N", 6], opset=opset)
        y = agrees(model, floats(), tmp_path)
        assert len(np.unique(y)) == 16
        build = compiled(model, tmp_path)
        assert build.network.nodes[-1].result.bits == 4


@pytest.mark.sweep
def test_sixteen_bits(tmp_path: Path) -> None:
    """16-bit codes and weights as far as there is hardware: short sources, and shifts."""
    x = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)
    for zero in (np.int16(-5), np.uint16(40000)):
        nodes = ("DequantizeLinear", f32(0.37), np.int8(9)), ("QuantizeLinear", f32(0.0031), zero)
        assert len(np.unique(agrees(chain(*nodes, source="int8", shape=["N", 1], opset=21), x, tmp_path))) == 256
    weight = np.random.default_rng(4).integers(-128, 128, (12, 5)).astype(np.int8)
    for zero in (np.int16(-6), np.uint16(32768)):
        shifted = chain(
            ("MatMulInteger", weight),
            FLOAT,
            ("Mul", f32(0.25)),
            ("QuantizeLinear", ONE, zero),
            source="int8",
            shape=["N", 12],
            opset=21,
        )
        assert np.ptp(agrees(shifted, codes(shifted, 300), tmp_path).astype(int)) > 10000
    int16_layer = chain(
        ("DequantizeLinear", f32(0.5), np.int8(3)),
        ("QuantizeLinear", f32(0.25), np.int16(0)),
        ("MatMulInteger", np.eye(6, 5, dtype=np.int8)),
        FLOAT,
        ("Mul", f32(0.3)),
        QUANTIZE,
        source="int8",
        shape=["N", 6],
        opset=21,
    )
    y = evaluated(
        int16_layer, codes(int16_layer, 100), tmp_path
    )  # ONNX has no such MatMulInteger, Deeploy and others do
    doubled = 2 * (codes(int16_layer, 100)[:, :5].astype(np.int64) - 3)
    assert same(y, ort.quantize_linear(doubled.astype(f32) * f32(0.3), 1, 0, -128, 127))


@pytest.mark.parametrize("axis, size", [(0, 1), (1, 3), (2, 4), (3, 5), (-1, 5), (-3, 3)])
def test_scales_along_every_axis(axis: int, size: int, tmp_path: Path) -> None:
    scale, zero = np.linspace(0.2, 3, size).astype(f32), np.arange(size, dtype=np.int8)
    model = chain(("QuantizeLinear", scale, zero, {"axis": axis}), source="float32", shape=[1, 3, 4, 5])
    back = chain(
        ("QuantizeLinear", scale, zero, {"axis": axis}),
        ("DequantizeLinear", scale, zero, {"axis": axis}),
        ("QuantizeLinear", f32(0.9), np.uint8(100)),
        source="float32",
        shape=[1, 3, 4, 5],
    )
    for seed in range(3):
        x = (np.random.default_rng(seed).normal(size=(1, 3, 4, 5)) * 40).astype(f32)
        agrees(model, x, tmp_path)
        agrees(back, x, tmp_path, ort.OFF)  # at higher levels onnxruntime merges the two quantizers


def test_scales_per_channel_after_a_layer(tmp_path: Path) -> None:
    weight = np.random.default_rng(5).integers(-128, 128, (6, 5)).astype(np.int8)
    model = chain(
        ("MatMulInteger", weight),
        FLOAT,
        ("Mul", np.geomspace(1e-3, 1e-2, 5).astype(f32)),
        ("QuantizeLinear", np.linspace(0.5, 2, 5).astype(f32), np.arange(5, dtype=np.uint8), {"axis": 1}),
        source="int8",
        shape=["N", 6],
    )
    agrees(model, codes(model, 300), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("data", ["int8", "uint8"])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
def test_zero_points_of_layers(data: str, weights: str, tmp_path: Path) -> None:
    rng, low = np.random.default_rng(6), np.iinfo(weights).min
    weight = rng.integers(low, low + 256, (6, 5)).astype(weights)
    weight_zeros = [
        np.array(9, weights),
        np.array([9], weights),
        np.arange(5).astype(weights),
        np.arange(90, 95).astype(weights).reshape(1, 5),
    ]
    zeros: list[tuple[Any, ...]] = [(np.array(7, data),), (np.array([7], data),), (np.array(np.iinfo(data).min, data),)]
    for zero in [(), *zeros, *((np.array(3, data), z) for z in weight_zeros)]:
        model = chain(
            ("MatMulInteger", weight, *zero),
            FLOAT,
            ("Mul", f32(0.0037)),
            QUANTIZE,
            source=data,
            shape=["N", 6],
        )
        agrees(model, codes(model, 100), tmp_path)


def test_matrices_of_more_axes(tmp_path: Path) -> None:
    """Data of three axes; weights of three axes for data of two, which makes the result one axis longer."""
    weight = np.random.default_rng(7).integers(-128, 128, (6, 5)).astype(np.int8)
    rescaling = FLOAT, ("Mul", f32(0.0037)), QUANTIZE
    x = np.random.default_rng(8).integers(-128, 128, (1, 3, 6)).astype(np.int8)
    assert agrees(
        chain(("MatMulInteger", weight, np.int8(4)), *rescaling, source="int8", shape=[1, 3, 6]), x, tmp_path
    ).size
    for weight_shape in ((1, 6, 5), (1, 1, 6, 5)):
        model = chain(("MatMulInteger", weight.reshape(weight_shape)), *rescaling, source="int8", shape=[3, 6])
        assert agrees(model, x[0], tmp_path).ndim == len(weight_shape)


def test_a_zero_point_for_each_row_is_refused(tmp_path: Path) -> None:
    """onnxruntime refuses it as well."""
    weight = np.ones((6, 5), np.int8)
    model = chain(("MatMulInteger", weight, np.array([1, 2, 3], np.int8)), FLOAT, QUANTIZE, source="int8", shape=[3, 6])
    refused(model, tmp_path, "HG024")
    with pytest.raises(Exception, match="MatMulInteger"):
        ort.run(model, {"x": np.ones((3, 6), np.int8)})


# --------------------------------------------------------------------------- float16


@pytest.mark.sweep
@pytest.mark.parametrize("opset", [19, 21, 23])
def test_quantizers_of_half_precision(opset: int, tmp_path: Path) -> None:
    """float16 data and scale: divided in float32. An infinity saturates, as ONNX says; onnxruntime 1.31 gives the
    lowest code for +infinity where the zero point is not negative."""
    x = np.clip(floats(), -6e4, 6e4).astype(f16)
    weight = np.random.default_rng(9).integers(-128, 128, (6, 5)).astype(np.int8)
    model = chain(
        ("QuantizeLinear", f16(0.3), np.int8(4)),
        ("MatMulInteger", weight, np.int8(4)),
        FLOAT,
        ("Mul", f32(0.0037)),
        QUANTIZE,
        source="float16",
        shape=["N", 6],
        opset=opset,
    )
    agrees(model, x, tmp_path)
    agrees(model, x, tmp_path, input="float32")
    alone = chain(("QuantizeLinear", f16(0.3), np.int8(4)), source="float16", shape=["N", 8], opset=opset)
    halves = np.arange(1 << 16, dtype=np.uint16).view(f16)
    halves = halves[np.isfinite(halves)].reshape(-1, 8)
    agrees(alone, halves, tmp_path)
    inf = np.array([[np.inf, -np.inf, 0, 0, 0, 0, 0, 0]], f16)
    assert evaluated(alone, inf, tmp_path)[0, :2].tolist() == [127, -128]


def test_dequantizers_of_half_precision(tmp_path: Path) -> None:
    """The product is rounded to float16."""
    x = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)
    for after, scale, zero in product(((), (("Relu",),)), (0.03, 0.47, 11.3), (np.int8(4), np.int8(-128))):
        model = chain(
            ("DequantizeLinear", f16(scale), zero),
            *after,
            ("QuantizeLinear", f16(scale / 150), np.uint16(60)),
            source="int8",
            shape=["N", 1],
            opset=21,
        )
        assert len(np.unique(agrees(model, x, tmp_path))) > 100


def test_arithmetic_of_half_precision(tmp_path: Path) -> None:
    """Cast and Mul in float16, each rounded once. onnxruntime has no such Mul: it computes in float32 and leaves out
    the Casts in between."""
    weight = np.random.default_rng(10).integers(-20, 20, (6, 5)).astype(np.int8)
    model = chain(
        ("MatMulInteger", weight),
        ("Cast", {"to": TensorProto.FLOAT16}),
        ("Mul", f16(0.037)),
        FLOAT,
        ("QuantizeLinear", f32(0.7), np.int8(4)),
        source="int8",
        shape=["N", 6],
    )
    x = codes(model, 2000)
    y, z = evaluated(model, x, tmp_path), ort.run(model, {"x": x})[0]
    half = ort.matmul_integer(x, weight).astype(f16) * f16(0.037)
    assert same(y, ort.quantize_linear(half, f32(0.7), 4, -128, 127))
    assert 0 < (y != z).mean() < 0.01


# --------------------------------------------------------------------------- Clip, Cast, integer arithmetic

CHAINS: dict[str, list[tuple[Any, ...]]] = {
    "int8 Clip": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(-100), np.int8(50))],
    "int8 Clip, one bound": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(-100))],
    "int8 Clip, bounds crossed": [
        FLOAT,
        ("Mul", f32(0.0037)),
        QUANTIZE,
        ("Clip", np.int8(100), np.int8(50)),
        ("Cast", {"to": TensorProto.INT32}),
        ("Add", np.arange(5, dtype=np.int32)),
    ],
    "int32 Clip": [("Clip", np.int32(-9000), np.int32(9999)), FLOAT, ("Mul", f32(0.0037)), QUANTIZE],
    "float Clip": [FLOAT, ("Mul", f32(0.0037)), ("Clip", f32(-20.3), f32(33.7)), QUANTIZE],
    "Relu of int8": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Relu",)],
    "Relu of int32": [("Relu",), FLOAT, ("Mul", f32(0.0037)), QUANTIZE],
    "Max and Min": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Max", np.int8(-9)), ("Min", np.int8(60))],
    "Abs of int32": [("Abs",), FLOAT, ("Mul", f32(0.0037)), QUANTIZE],
    "Neg of int32": [("Neg",), FLOAT, ("Mul", f32(0.0037)), QUANTIZE],
    "Sub of int32": [("Sub", np.int32(5000)), FLOAT, ("Mul", f32(0.0037)), QUANTIZE],
    "Cast to int16": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Cast", {"to": TensorProto.INT16})],
    "Cast to int32": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Cast", {"to": TensorProto.INT32})],
    "Cast to uint8": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Cast", {"to": TensorProto.UINT8})],
    "Cast, Add, Cast": [
        FLOAT,
        ("Mul", f32(0.0037)),
        QUANTIZE,
        ("Cast", {"to": TensorProto.INT32}),
        ("Add", np.int32(7)),
        ("Cast", {"to": TensorProto.INT8}),
    ],
    "Cast of float to int8": [
        FLOAT,
        ("Mul", f32(0.0037)),
        ("Clip", f32(-128), f32(127)),
        ("Cast", {"to": TensorProto.INT8}),
    ],
    "Floor": [FLOAT, ("Mul", f32(0.0037)), ("Floor",), QUANTIZE],
    "Round": [FLOAT, ("Div", f32(301)), ("Round",), QUANTIZE],
    "float64": [("Cast", {"to": TensorProto.DOUBLE}), ("Mul", np.float64(0.0037)), FLOAT, QUANTIZE],
    "no quantizer": [("Add", np.arange(5, dtype=np.int32))],
    "float result": [FLOAT, ("Mul", f32(0.0037))],
    "int16 between layers": [
        FLOAT,
        ("Mul", f32(0.0037)),
        QUANTIZE,
        ("Cast", {"to": TensorProto.INT16}),
        ("Cast", {"to": TensorProto.INT8}),
        ("MatMulInteger", np.eye(5, 3, dtype=np.int8)),
        FLOAT,
        QUANTIZE,
    ],
    "Clip between layers": [
        FLOAT,
        ("Mul", f32(0.0037)),
        QUANTIZE,
        ("Clip", np.int8(-5), np.int8(6)),
        ("MatMulInteger", np.eye(5, 3, dtype=np.int8) * np.int8(9)),
        FLOAT,
        QUANTIZE,
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_after_a_layer(name: str, tmp_path: Path) -> None:
    weight = np.random.default_rng(11).integers(-128, 128, (6, 5)).astype(np.int8)
    model = chain(("MatMulInteger", weight), *CHAINS[name], source="int8", shape=["N", 6], opset=14)
    assert len(np.unique(agrees(model, codes(model, 300), tmp_path))) > 1


def test_a_clip_makes_the_codes_narrow(tmp_path: Path) -> None:
    """Codes that a Clip keeps within -5..6 have 4 bits in hardware."""
    model = chain(
        ("MatMulInteger", np.ones((6, 5), np.int8)), *CHAINS["Clip between layers"], source="int8", shape=["N", 6]
    )
    nodes = {node.name: node for node in compiled(model, tmp_path).network.nodes}
    assert nodes["QuantizeLinear_t3"].result.type.bits == 4


@pytest.mark.parametrize("source", ["int16", "uint16", "uint8"])
def test_short_integer_inputs(source: str, tmp_path: Path) -> None:
    x = np.arange(np.iinfo(source).min, np.iinfo(source).max + 1).astype(source).reshape(-1, 4)
    zero = np.array(9, source)
    for first in ((FLOAT, ("Mul", f32(0.0031))), (("DequantizeLinear", f32(0.0031), zero),)):
        model = chain(*first, ("QuantizeLinear", f32(0.3), np.int8(-9)), source=source, shape=["N", 4], opset=21)
        agrees(model, x, tmp_path)


# --------------------------------------------------------------------------- ConvInteger as a fully connected layer

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 6, 1, 1), (5, 6, 1, 1), {}),
    ((1, 6, 4, 3), (5, 6, 1, 1), {"kernel_shape": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}),
    ((1, 6, 3, 2), (5, 6, 3, 2), {}),
    ((1, 6, 3, 2), (5, 6, 3, 2), {"strides": [2, 2]}),
    ((1, 6, 7), (5, 6, 1), {}),
    ((1, 6, 7), (5, 6, 7), {}),
    ((1, 6, 3), (1, 6, 3), {}),
]


@pytest.mark.sweep
@pytest.mark.parametrize("shape, kernel, attributes", CONVOLUTIONS)
def test_convolutions_that_are_matrices(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(12)
    weight = rng.integers(-128, 128, kernel).astype(np.int8)
    bias = rng.integers(-999, 999, (1, kernel[0]) + (1,) * (len(shape) - 2)).astype(np.int32)
    for zeros in ((), (np.int8(5),), (np.int8(5), np.int8(-3))):
        model = chain(
            ("ConvInteger", weight, *zeros, attributes),
            ("Add", bias),
            FLOAT,
            ("Mul", f32(0.003)),
            QUANTIZE,
            source="int8",
            shape=shape,
        )
        build = compiled(model, tmp_path)
        for x in rng.integers(-128, 128, (5, *shape)).astype(np.int8):
            assert same(reference.evaluate(build.graph, x), ort.run(model, {"x": x})[0])


@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((5, 6, 1, 1), {"strides": [2, 1]}),
        ((6, 1, 1, 1), {"group": 6}),
        ((5, 6, 3, 2), {"pads": [1, 1, 1, 1]}),
        ((5, 6, 2, 2), {}),
        ((4, 3, 2, 2), {"group": 2, "dilations": [2, 1], "pads": [0, 1, 1, 0]}),
    ],
)
def test_other_convolutions(kernel: tuple[int, ...], attributes: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    weight = rng.integers(-128, 128, kernel).astype(np.int8)
    for zeros in ((), (np.int8(5),), (np.int8(5), np.int8(-3))):
        model = chain(
            ("ConvInteger", weight, *zeros, attributes),
            FLOAT,
            ("Mul", f32(0.003)),
            QUANTIZE,
            source="int8",
            shape=(1, 6, 4, 3),
        )
        build = compiled(model, tmp_path)
        for x in rng.integers(-128, 128, (5, 1, 6, 4, 3)).astype(np.int8):
            assert same(reference.evaluate(build.graph, x), ort.run(model, {"x": x})[0])


def test_three_dimensional_kernels_are_refused(tmp_path: Path) -> None:
    model = chain(
        ("ConvInteger", np.ones((5, 2, 2, 2, 2), np.int8), {}), FLOAT, QUANTIZE, source="int8", shape=(1, 2, 3, 3, 3)
    )
    refused(model, tmp_path, "HG010")
