"""Models in integer ONNX: hlsgen's integers are onnxruntime's, in the reference and in simulated hardware."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import ort
import pytest
from integer_models import EXAMPLE, FIGURES, chain, codes, compiled, evaluated, in_hardware, prequantized, same
from onnx import TensorProto, numpy_helper
from paths import needs_icarus

import hlsgen
from hlsgen.errors import HlsgenError

Array = Any
f16, f32 = np.float16, np.float32
ONE, ZERO = f32(1), np.int8(0)
FLOAT = ("Cast", {"to": TensorProto.FLOAT})
SIMULATORS = [pytest.param("icarus", marks=needs_icarus), "verilator"]
STACKS = [("F1", "F1"), ("F2", "F2", "F1"), ("F3", "F3"), ("F1", "F4"), ("F2", "F5", "F1"), ("F4", "F2", "F5", "F1")]


def agrees(made: onnx.ModelProto, x: Array, directory: Path, level: Any = ort.DEFAULT, **options: Any) -> Array:
    """hlsgen's result, after comparing its numbers, shape and type with onnxruntime's."""
    y, z = evaluated(made, x, directory, **options), ort.run(made, {"x": x}, level)[0]
    assert y.dtype == z.dtype
    assert same(y, z)
    return y


def refused(made: onnx.ModelProto, directory: Path, code: str) -> None:
    with pytest.raises(HlsgenError) as error:
        compiled(made, directory)
    assert code in [d.code for d in error.value.diagnostics]


# --------------------------------------------------------------------------- the paper's constructions


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("figure", [f for f in FIGURES if f != "F6"])
def test_every_construction(figure: str, dtype: str, tmp_path: Path) -> None:
    """Sizes, scales (filling, saturating, of powers of two), one and two Mul, Relu on either side of them."""
    sizes = [(1, 1), (16, 8), (200, 12)]
    for k, (two_muls, relu_first) in enumerate(product([False, True], repeat=2)):
        ins, outs = sizes[k % 3]
        scale = [None, [1 / 3], [2.0**-8], [3e-3]][k]
        made = prequantized(
            figure, (ins, outs), dtype=dtype, output=["int8", "uint8"][k // 2], scales=scale, two_muls=two_muls,
            relu_first=relu_first, bias=k != 1, rows="N", seed=k,
        )  # fmt: skip
        assert len(np.unique(agrees(made, codes(made, 300), tmp_path))) > 5


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("figures", STACKS)
def test_networks_of_constructions(figures: Sequence[str], dtype: str, tmp_path: Path) -> None:
    made = prequantized(figures, (24, 16, 12, 12, 8)[: len(figures) + 1], dtype=dtype, rows="N", seed=3)
    assert len(np.unique(agrees(made, codes(made, 400), tmp_path))) > 20


def test_run_is_the_same_function(tmp_path: Path) -> None:
    made = prequantized(("F2", "F1"), (16, 8, 4), seed=5)
    onnx.save(made, tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "build")
    x = codes(made, 50)
    assert same(hlsgen.run(tmp_path / "build", x), np.concatenate([ort.run(made, {"x": row[None]})[0] for row in x]))


def test_the_script_writes_them(tmp_path: Path) -> None:
    """The command line of examples/prequantized."""

    def script(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(EXAMPLE), *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert (
        script("F2", "F4", "--sizes", "9", "8", "4", "--dtype", "uint8", "--relu-last", "-o", "a.onnx").returncode == 0
    )
    wanted = prequantized(("F2", "F4"), (9, 8, 4), dtype="uint8", relu_first=False)
    assert (tmp_path / "a.onnx").read_bytes() == wanted.SerializeToString()
    assert script("--all", "set").returncode == 0
    written = list((tmp_path / "set").glob("*.onnx"))
    assert len(written) == 118
    assert {path.name[:2] for path in written} == set(FIGURES)
    for wrong in (["F7"], ["F1", "F3"], ["F1", "--sizes", "4"], ["F1", "--one-mul", "--two-muls"]):
        assert script(*wrong).returncode == 2


def sigmoid_layer(made: onnx.ModelProto, x: Array, half: bool) -> Array:
    """F6 node by node in numpy; the sigmoid correctly rounded to float16, or all in float32."""
    weight, bias, scale, one, zero, reach, _, step, _ = (numpy_helper.to_array(i) for i in made.graph.initializer)
    q = ort.quantize_linear((ort.matmul_integer(x, weight) + bias).astype(f32) * scale, one, zero, -128, 127)
    real = ort.dequantize_linear(q, reach).astype(f16 if half else f32)
    sigmoid = (1 / (1 + np.exp(-real.astype(np.float64)))).astype(real.dtype)
    return ort.quantize_linear(sigmoid, step, 0, 0, 255)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sigmoid_in_half_precision(dtype: str, tmp_path: Path) -> None:
    """F6 as the model states it. onnxruntime leaves out the Casts around Sigmoid and computes in float32: that, and
    nothing else, explains where its codes differ, always by one."""
    wrong = total = 0
    for seed, size in enumerate([8, 64, 200]):
        made = prequantized("F6", (size, 10), dtype=dtype, rows="N", seed=seed)
        x = codes(made, 500)
        y, z = evaluated(made, x, tmp_path), ort.run(made, {"x": x})[0]
        assert same(y, sigmoid_layer(made, x, half=True))
        assert same(z, sigmoid_layer(made, x, half=False))
        assert np.abs(y.astype(int) - z).max() == 1
        wrong, total = wrong + int((y != z).sum()), total + y.size
    assert 0.03 < wrong / total < 0.08


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("figures, dtype", [(("F1",), "int8"), (("F2", "F4"), "uint8")])
def test_hardware_gives_the_codes_of_onnxruntime(
    figures: Sequence[str], dtype: str, simulator: str, tmp_path: Path
) -> None:
    made = prequantized(figures, (12, 8, 4)[: len(figures) + 1], dtype=dtype, rows="N", seed=1)
    x = codes(made, 40)
    in_hardware(made, x, ort.run(made, {"x": x})[0], tmp_path, simulator, target_cycles=24)


@needs_icarus
@pytest.mark.parametrize("figures", [("F3",), ("F6",), ("F2", "F5", "F1")])
def test_more_hardware(figures: Sequence[str], tmp_path: Path) -> None:
    made = prequantized(figures, (8, 6, 6, 4)[: len(figures) + 1], rows="N", seed=2)
    x = codes(made, 30)
    expected = sigmoid_layer(made, x, half=True) if figures == ("F6",) else ort.run(made, {"x": x})[0]
    in_hardware(made, x, expected, tmp_path, "icarus", target_cycles=24)


# --------------------------------------------------------------------------- sums beyond float32, sums that wrap


def beyond(x: Array, *edges: int) -> Array:
    """int32 samples; some stand where the Cast to float32 has ties."""
    ties = [e + d for e in (*edges, 2**24, 2**25, 2**27, 2**30) for d in (-65, -64, -33, -3, -1, 0, 1, 2, 3, 4, 63, 64)]
    special = np.array([*ties, *[-t for t in ties], -(2**31), 2**31 - 1])
    return np.concatenate([x.ravel(), np.resize(special, -(-len(special) // 4) * 4)]).reshape(-1, 4).astype(np.int32)


@pytest.mark.parametrize("scale", [2.0**-24, 1.1e-7, 3e-8])
def test_int32_input(scale: float, tmp_path: Path) -> None:
    """The graph's input is a sum of 32 bits: Cast rounds it."""
    made = chain(FLOAT, ("Mul", f32(scale)), ("QuantizeLinear", ONE, np.int8(-3)), source="int32", shape=["N", 4])
    x = beyond(np.random.default_rng(0).integers(-(2**31), 2**31, 2000), int(0.5 / scale), int(7.5 / scale))
    assert len(np.unique(agrees(made, x, tmp_path))) > 100


@pytest.mark.parametrize("scale", [2.0**-18, 3e-6])
def test_wide_layers(scale: float, tmp_path: Path) -> None:
    """Sums above 2^24, where Cast rounds: on both sides of the thresholds, which stand behind that rounding."""
    weight = np.repeat(np.array([[127, -127], [1, -1]], np.int8), [2990, 10], axis=0)
    made = chain(
        ("MatMulInteger", weight), FLOAT, ("Mul", f32(scale)), ("QuantizeLinear", ONE, ZERO), source="int8",
        shape=["N", 3000],
    )  # fmt: skip
    middle = np.round((np.arange(70, 127, 7) + 0.5) / scale).astype(np.int64)
    wanted = np.concatenate([(middle[:, None] + np.arange(-6, 7)).ravel(), [2**24 + d for d in range(5)]])
    wanted = np.concatenate([wanted, -wanted])
    x = np.zeros((len(wanted), 3000), np.int64)
    x[:, :2990] = (wanted // 127 + np.arange(2990)[:, None]).T // 2990
    x[:, 2990:] = (wanted % 127 + np.arange(10)[:, None]).T // 10
    assert same(x @ weight[:, 0].astype(np.int64), wanted)
    y = agrees(made, x.astype(np.int8), tmp_path)
    assert not same(y[:, 0], np.clip(np.rint(wanted * np.float64(f32(scale))), -128, 127))


@pytest.mark.parametrize("bias", [2**31 - 1 - 1000, -(2**31) + 500, 2**30])
def test_sums_wrap(bias: int, tmp_path: Path) -> None:
    """int32 Add wraps, as in onnxruntime."""
    weight = np.random.default_rng(0).integers(-128, 128, (16, 4)).astype(np.int8)
    made = chain(
        ("MatMulInteger", weight), ("Add", np.full(4, bias, np.int32)), FLOAT, ("Mul", f32(2.0**-24)),
        ("QuantizeLinear", ONE, ZERO), source="int8", shape=["N", 16],
    )  # fmt: skip
    assert len(np.unique(agrees(made, codes(made, 300), tmp_path))) >= (2 if bias != 2**30 else 1)


@needs_icarus
def test_wrapping_hardware(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).integers(-128, 128, (8, 3)).astype(np.int8)
    made = chain(
        ("MatMulInteger", weight), ("Add", np.full(3, 2**31 - 100, np.int32)), FLOAT, ("Mul", f32(2.0**-25)),
        ("QuantizeLinear", ONE, ZERO), source="int8", shape=["N", 8],
    )  # fmt: skip
    x = codes(made, 40)
    in_hardware(made, x, ort.run(made, {"x": x})[0], tmp_path, "icarus")


def test_a_product_that_wraps_is_refused(tmp_path: Path) -> None:
    """Too many wraps of too many inputs: a diagnostic, no hardware that is wrong."""
    made = chain(("Mul", np.int32(3)), FLOAT, ("QuantizeLinear", ONE, ZERO), source="int32", shape=["N", 4])
    refused(made, tmp_path, "HG037")


# --------------------------------------------------------------------------- types, opsets, parameters


def floats(columns: int = 6, rows: int = 200) -> Array:
    """float32 samples; ties, infinities, NaN and subnormals among them."""
    x = (np.random.default_rng(2).normal(size=(rows, columns)) * 40).astype(f32)
    x[:2, :6] = [[0.5, 1.5, -0.5, 2.5, -1.5, np.inf], [np.nan, -np.inf, 1e30, -1e30, -0.0, 1e-40]]
    return x


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 25])
def test_opsets(opset: int, tmp_path: Path) -> None:
    """QuantizeLinear and integer layers of every opset, from a float32 input on."""
    weight = np.random.default_rng(3).integers(-128, 128, (6, 5)).astype(np.int8)
    for zero in (np.int8(3), np.uint8(130)):
        made = chain(
            ("QuantizeLinear", f32(0.4), zero), ("MatMulInteger", weight, zero), FLOAT, ("Mul", f32(0.004)),
            ("QuantizeLinear", f32(0.7), zero), ("DequantizeLinear", f32(0.7), zero), source="float32",
            shape=["N", 6], opset=opset,
        )  # fmt: skip
        agrees(made, floats(), tmp_path)
        agrees(made, floats(), tmp_path, input="float32")


@pytest.mark.parametrize("opset", [21, 23, 25])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("zero", [None, 0, 3])
def test_four_bits(kind: str, opset: int, zero: int | None, tmp_path: Path) -> None:
    """QuantizeLinear to 4 bits. onnxruntime cannot hand out such tensors: what follows makes others of them."""
    point = [] if zero is None else [np.array(zero, getattr(ml_dtypes, kind))]
    attributes = {"output_dtype": getattr(TensorProto, kind.upper())} if zero is None else {}
    first = ("QuantizeLinear", f32(9), *point, attributes)
    for after in (("DequantizeLinear", f32(0.3), *point), ("Cast", {"to": TensorProto.INT8})):
        made = chain(first, after, source="float32", shape=["N", 6], opset=opset)
        y = agrees(made, floats(), tmp_path)
        assert len(np.unique(y)) == 16
        build = compiled(made, tmp_path)
        assert build.schedule.stages[-1].result.bits == 4


def test_sixteen_bits(tmp_path: Path) -> None:
    """16-bit codes and weights as far as there is hardware: short sources, and shifts."""
    x = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)
    for zero in (np.int16(-5), np.uint16(40000)):
        nodes = ("DequantizeLinear", f32(0.37), np.int8(9)), ("QuantizeLinear", f32(0.0031), zero)
        assert len(np.unique(agrees(chain(*nodes, source="int8", shape=["N", 1], opset=21), x, tmp_path))) == 256
    weight = np.random.default_rng(4).integers(-128, 128, (12, 5)).astype(np.int8)
    for zero in (np.int16(-6), np.uint16(32768)):
        shifted = chain(
            ("MatMulInteger", weight), FLOAT, ("Mul", f32(0.25)), ("QuantizeLinear", ONE, zero), source="int8",
            shape=["N", 12], opset=21,
        )  # fmt: skip
        assert np.ptp(agrees(shifted, codes(shifted, 300), tmp_path).astype(int)) > 10000
    wide = chain(
        ("DequantizeLinear", f32(0.5), np.int8(3)), ("QuantizeLinear", f32(0.25), np.int16(0)),
        ("MatMulInteger", np.eye(6, 5, dtype=np.int8)), FLOAT, ("Mul", f32(0.3)), QUANTIZE, source="int8",
        shape=["N", 6], opset=21,
    )  # fmt: skip
    y = evaluated(wide, codes(wide, 100), tmp_path)  # ONNX has no such MatMulInteger, Deeploy and others do
    doubled = 2 * (codes(wide, 100)[:, :5].astype(np.int64) - 3)
    assert same(y, ort.quantize_linear(doubled.astype(f32) * f32(0.3), 1, 0, -128, 127))


@pytest.mark.parametrize("axis, size", [(0, 1), (1, 3), (2, 4), (3, 5), (-1, 5), (-3, 3)])
def test_scales_along_every_axis(axis: int, size: int, tmp_path: Path) -> None:
    scale, zero = np.linspace(0.2, 3, size).astype(f32), np.arange(size, dtype=np.int8)
    made = chain(("QuantizeLinear", scale, zero, {"axis": axis}), source="float32", shape=[1, 3, 4, 5])
    back = chain(("QuantizeLinear", scale, zero, {"axis": axis}), ("DequantizeLinear", scale, zero, {"axis": axis}),
                 ("QuantizeLinear", f32(0.9), np.uint8(100)), source="float32", shape=[1, 3, 4, 5])  # fmt: skip
    for seed in range(3):
        x = (np.random.default_rng(seed).normal(size=(1, 3, 4, 5)) * 40).astype(f32)
        agrees(made, x, tmp_path)
        agrees(back, x, tmp_path, ort.OFF)  # at higher levels onnxruntime merges the two quantizers


def test_scales_of_each_channel_behind_a_layer(tmp_path: Path) -> None:
    weight = np.random.default_rng(5).integers(-128, 128, (6, 5)).astype(np.int8)
    made = chain(
        ("MatMulInteger", weight), FLOAT, ("Mul", np.geomspace(1e-3, 1e-2, 5).astype(f32)),
        ("QuantizeLinear", np.linspace(0.5, 2, 5).astype(f32), np.arange(5, dtype=np.uint8), {"axis": 1}),
        source="int8", shape=["N", 6],
    )  # fmt: skip
    agrees(made, codes(made, 300), tmp_path)


@pytest.mark.parametrize("data", ["int8", "uint8"])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
def test_zero_points_of_layers(data: str, weights: str, tmp_path: Path) -> None:
    rng, low = np.random.default_rng(6), np.iinfo(weights).min
    weight = rng.integers(low, low + 256, (6, 5)).astype(weights)
    own = [np.array(9, weights), np.array([9], weights), np.arange(5).astype(weights),
           np.arange(90, 95).astype(weights).reshape(1, 5)]  # fmt: skip
    zeros: list[tuple[Any, ...]] = [(np.array(7, data),), (np.array([7], data),), (np.array(np.iinfo(data).min, data),)]
    for zero in [(), *zeros, *((np.array(3, data), z) for z in own)]:
        made = chain(
            ("MatMulInteger", weight, *zero), FLOAT, ("Mul", f32(0.0037)), ("QuantizeLinear", ONE, ZERO),
            source=data, shape=["N", 6],
        )  # fmt: skip
        agrees(made, codes(made, 100), tmp_path)


def test_matrices_of_more_axes(tmp_path: Path) -> None:
    """Data of three axes; weights of three axes for data of two, which makes the result one axis longer."""
    weight = np.random.default_rng(7).integers(-128, 128, (6, 5)).astype(np.int8)
    rest = FLOAT, ("Mul", f32(0.0037)), ("QuantizeLinear", ONE, ZERO)
    x = np.random.default_rng(8).integers(-128, 128, (1, 3, 6)).astype(np.int8)
    assert agrees(chain(("MatMulInteger", weight, np.int8(4)), *rest, source="int8", shape=[1, 3, 6]), x, tmp_path).size
    for form in ((1, 6, 5), (1, 1, 6, 5)):
        made = chain(("MatMulInteger", weight.reshape(form)), *rest, source="int8", shape=[3, 6])
        assert agrees(made, x[0], tmp_path).ndim == len(form)


def test_a_zero_point_for_each_row_is_refused(tmp_path: Path) -> None:
    """Which onnxruntime refuses as well."""
    weight = np.ones((6, 5), np.int8)
    made = chain(("MatMulInteger", weight, np.array([1, 2, 3], np.int8)), FLOAT, ("QuantizeLinear", ONE, ZERO),
                 source="int8", shape=[3, 6])  # fmt: skip
    refused(made, tmp_path, "HG024")
    with pytest.raises(Exception, match="MatMulInteger"):
        ort.run(made, {"x": np.ones((3, 6), np.int8)})


# --------------------------------------------------------------------------- float16


@pytest.mark.parametrize("opset", [19, 21, 23])
def test_quantizers_of_half_precision(opset: int, tmp_path: Path) -> None:
    """float16 data and scale: divided in float32. An infinity saturates, as ONNX says; onnxruntime 1.31 gives the
    lowest code for +infinity where the zero point is not negative."""
    x = np.clip(floats(), -6e4, 6e4).astype(f16)
    weight = np.random.default_rng(9).integers(-128, 128, (6, 5)).astype(np.int8)
    made = chain(
        ("QuantizeLinear", f16(0.3), np.int8(4)), ("MatMulInteger", weight, np.int8(4)), FLOAT, ("Mul", f32(0.0037)),
        ("QuantizeLinear", ONE, ZERO), source="float16", shape=["N", 6], opset=opset,
    )  # fmt: skip
    agrees(made, x, tmp_path)
    agrees(made, x, tmp_path, input="float32")
    alone = chain(("QuantizeLinear", f16(0.3), np.int8(4)), source="float16", shape=["N", 8], opset=opset)
    every = np.arange(1 << 16, dtype=np.uint16).view(f16)
    every = every[np.isfinite(every)].reshape(-1, 8)
    agrees(alone, every, tmp_path)
    inf = np.array([[np.inf, -np.inf, 0, 0, 0, 0, 0, 0]], f16)
    assert evaluated(alone, inf, tmp_path)[0, :2].tolist() == [127, -128]


def test_dequantizers_of_half_precision(tmp_path: Path) -> None:
    """The product is rounded to float16."""
    x = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)
    for after, scale, zero in product(((), (("Relu",),)), (0.03, 0.47, 11.3), (np.int8(4), np.int8(-128))):
        made = chain(
            ("DequantizeLinear", f16(scale), zero), *after, ("QuantizeLinear", f16(scale / 150), np.uint16(60)),
            source="int8", shape=["N", 1], opset=21,
        )  # fmt: skip
        assert len(np.unique(agrees(made, x, tmp_path))) > 100


def test_arithmetic_of_half_precision(tmp_path: Path) -> None:
    """Cast and Mul in float16, each rounded once. onnxruntime has no such Mul: it computes in float32 and leaves out
    the Casts in between."""
    weight = np.random.default_rng(10).integers(-20, 20, (6, 5)).astype(np.int8)
    made = chain(
        ("MatMulInteger", weight), ("Cast", {"to": TensorProto.FLOAT16}), ("Mul", f16(0.037)), FLOAT,
        ("QuantizeLinear", f32(0.7), np.int8(4)), source="int8", shape=["N", 6],
    )  # fmt: skip
    x = codes(made, 2000)
    y, z = evaluated(made, x, tmp_path), ort.run(made, {"x": x})[0]
    half = ort.matmul_integer(x, weight).astype(f16) * f16(0.037)
    assert same(y, ort.quantize_linear(half, f32(0.7), 4, -128, 127))
    assert 0 < (y != z).mean() < 0.01


# --------------------------------------------------------------------------- Clip, Cast, integer arithmetic

QUANTIZE = ("QuantizeLinear", ONE, ZERO)
CHAINS: dict[str, list[tuple[Any, ...]]] = {
    "int8 Clip": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(-100), np.int8(50))],
    "int8 Clip, one bound": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(-100))],
    "int8 Clip, bounds crossed": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(100), np.int8(50)),
                                  ("Cast", {"to": TensorProto.INT32}), ("Add", np.arange(5, dtype=np.int32))],
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
    "Cast, Add, Cast": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Cast", {"to": TensorProto.INT32}),
                        ("Add", np.int32(7)), ("Cast", {"to": TensorProto.INT8})],
    "Cast of float to int8": [FLOAT, ("Mul", f32(0.0037)), ("Clip", f32(-128), f32(127)),
                              ("Cast", {"to": TensorProto.INT8})],
    "Floor": [FLOAT, ("Mul", f32(0.0037)), ("Floor",), QUANTIZE],
    "Round": [FLOAT, ("Div", f32(301)), ("Round",), QUANTIZE],
    "float64": [("Cast", {"to": TensorProto.DOUBLE}), ("Mul", np.float64(0.0037)), FLOAT, QUANTIZE],
    "no quantizer": [("Add", np.arange(5, dtype=np.int32))],
    "float result": [FLOAT, ("Mul", f32(0.0037))],
    "int16 between layers": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Cast", {"to": TensorProto.INT16}),
                             ("Cast", {"to": TensorProto.INT8}), ("MatMulInteger", np.eye(5, 3, dtype=np.int8)),
                             FLOAT, QUANTIZE],
    "Clip between layers": [FLOAT, ("Mul", f32(0.0037)), QUANTIZE, ("Clip", np.int8(-5), np.int8(6)),
                            ("MatMulInteger", np.eye(5, 3, dtype=np.int8) * np.int8(9)), FLOAT, QUANTIZE],
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_chains_behind_a_layer(name: str, tmp_path: Path) -> None:
    weight = np.random.default_rng(11).integers(-128, 128, (6, 5)).astype(np.int8)
    made = chain(("MatMulInteger", weight), *CHAINS[name], source="int8", shape=["N", 6], opset=14)
    assert len(np.unique(agrees(made, codes(made, 300), tmp_path))) > 1


def test_a_clip_makes_the_codes_narrow(tmp_path: Path) -> None:
    """Codes that a Clip keeps within -5..6 have 4 bits in hardware."""
    made = chain(("MatMulInteger", np.ones((6, 5), np.int8)), *CHAINS["Clip between layers"], source="int8",
                 shape=["N", 6])  # fmt: skip
    stages = {stage.name: stage for stage in compiled(made, tmp_path).schedule.stages}
    assert stages["q1"].result.type.bits == 4


@pytest.mark.parametrize("source", ["int16", "uint16", "uint8"])
def test_short_integer_inputs(source: str, tmp_path: Path) -> None:
    x = np.arange(np.iinfo(source).min, np.iinfo(source).max + 1).astype(source).reshape(-1, 4)
    zero = np.array(9, source)
    for first in ((FLOAT, ("Mul", f32(0.0031))), (("DequantizeLinear", f32(0.0031), zero),)):
        made = chain(*first, ("QuantizeLinear", f32(0.3), np.int8(-9)), source=source, shape=["N", 4], opset=21)
        agrees(made, x, tmp_path)


# --------------------------------------------------------------------------- ConvInteger as a fully connected layer

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 6, 1, 1), (5, 6, 1, 1), {}),
    ((1, 6, 4, 3), (5, 6, 1, 1), {"kernel_shape": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}),
    ((1, 6, 3, 2), (5, 6, 3, 2), {}),
    ((1, 6, 3, 2), (5, 6, 3, 2), {"strides": [2, 2]}),
    ((1, 6, 7), (5, 6, 1), {}),
    ((1, 6, 7), (5, 6, 7), {}),
    ((1, 6, 3), (1, 6, 3), {}),
    ((1, 2, 2, 2, 2), (5, 2, 2, 2, 2), {"auto_pad": "VALID"}),
]


@pytest.mark.parametrize("shape, kernel, attributes", CONVOLUTIONS)
def test_convolutions_that_are_matrices(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(12)
    weight = rng.integers(-128, 128, kernel).astype(np.int8)
    bias = rng.integers(-999, 999, (1, kernel[0]) + (1,) * (len(shape) - 2)).astype(np.int32)
    for zeros in ((), (np.int8(5),), (np.int8(5), np.int8(-3))):
        made = chain(
            ("ConvInteger", weight, *zeros, attributes), ("Add", bias), FLOAT, ("Mul", f32(0.003)), QUANTIZE,
            source="int8", shape=shape,
        )  # fmt: skip
        build = compiled(made, tmp_path)
        for x in rng.integers(-128, 128, (5, *shape)).astype(np.int8):
            assert same(hlsgen.reference.evaluate(build.graph, x), ort.run(made, {"x": x})[0])


@pytest.mark.parametrize("kernel, attributes", [
    ((5, 6, 1, 1), {"strides": [2, 1]}), ((6, 1, 1, 1), {"group": 6}), ((5, 6, 3, 2), {"pads": [1, 1, 1, 1]}),
    ((5, 6, 2, 2), {}),
])  # fmt: skip
def test_other_convolutions_are_refused(kernel: tuple[int, ...], attributes: dict[str, Any], tmp_path: Path) -> None:
    made = chain(("ConvInteger", np.ones(kernel, np.int8), attributes), FLOAT, QUANTIZE, source="int8",
                 shape=(1, 6, 4, 3))  # fmt: skip
    refused(made, tmp_path, "HG010")
