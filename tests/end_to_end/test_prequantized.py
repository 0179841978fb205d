"""Pre-quantized networks and int32 sums: hlsgen's integers are onnxruntime's, in the reference and in hardware."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import (
    EXAMPLE,
    FIGURES,
    FLOAT,
    ONE,
    QUANTIZE,
    agrees,
    chain,
    codes,
    evaluated,
    in_hardware,
    prequantized,
    refused,
    same,
)
from onnx import numpy_helper
from paths import needs_icarus

import hlsgen

Array = Any
f16, f32 = np.float16, np.float32
SIMULATORS = [pytest.param("icarus", marks=needs_icarus), "verilator"]
STACKS = [("F1", "F1"), ("F2", "F2", "F1"), ("F3", "F3"), ("F1", "F4"), ("F2", "F5", "F1"), ("F4", "F2", "F5", "F1")]


# --------------------------------------------------------------------------- the paper's constructions


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("figure", [f for f in FIGURES if f != "F6"])
def test_every_construction(figure: str, dtype: str, tmp_path: Path) -> None:
    """Sizes, scales (filling, saturating, of powers of two), one and two Mul, Relu on either side of them."""
    sizes = [(1, 1), (16, 8), (200, 12)]
    for k, (two_muls, relu_first) in enumerate(product([False, True], repeat=2)):
        ins, outs = sizes[k % 3]
        scale = [None, [1 / 3], [2.0**-8], [3e-3]][k]
        model = prequantized(
            figure,
            (ins, outs),
            dtype=dtype,
            output=["int8", "uint8"][k // 2],
            scales=scale,
            two_muls=two_muls,
            relu_first=relu_first,
            bias=k != 1,
            rows="N",
            seed=k,
        )
        assert len(np.unique(agrees(model, codes(model, 300), tmp_path))) > 5


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("figures", STACKS)
def test_networks_of_constructions(figures: Sequence[str], dtype: str, tmp_path: Path) -> None:
    model = prequantized(figures, (24, 16, 12, 12, 8)[: len(figures) + 1], dtype=dtype, rows="N", seed=3)
    assert len(np.unique(agrees(model, codes(model, 400), tmp_path))) > 20


@pytest.mark.sweep
def test_run_is_the_same_function(tmp_path: Path) -> None:
    model = prequantized(("F2", "F1"), (16, 8, 4), seed=5)
    onnx.save(model, tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "build")
    x = codes(model, 50)
    assert same(hlsgen.run(tmp_path / "build", x), np.concatenate([ort.run(model, {"x": row[None]})[0] for row in x]))


@pytest.mark.sweep
def test_the_script_writes_them(tmp_path: Path) -> None:
    """The command line of examples/prequantized."""

    def script(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(EXAMPLE), *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert (
        script("F2", "F4", "--sizes", "9", "8", "4", "--dtype", "uint8", "--relu-last", "-o", "a.onnx").returncode == 0
    )
    expected = prequantized(("F2", "F4"), (9, 8, 4), dtype="uint8", relu_first=False)
    assert (tmp_path / "a.onnx").read_bytes() == expected.SerializeToString()
    assert script("--all", "set").returncode == 0
    written = list((tmp_path / "set").glob("*.onnx"))
    assert len(written) == 118
    assert {path.name[:2] for path in written} == set(FIGURES)
    for wrong in (["F7"], ["F1", "F3"], ["F1", "--sizes", "4"], ["F1", "--one-mul", "--two-muls"]):
        assert script(*wrong).returncode == 2


def sigmoid_layer(model: onnx.ModelProto, x: Array, half: bool) -> Array:
    """F6 node by node in numpy; the sigmoid correctly rounded to float16, or all in float32."""
    weight, bias, scale, unit, zero, reach, _, step, _ = (numpy_helper.to_array(i) for i in model.graph.initializer)
    q = ort.quantize_linear((ort.matmul_integer(x, weight) + bias).astype(f32) * scale, unit, zero, -128, 127)
    real = ort.dequantize_linear(q, reach).astype(f16 if half else f32)
    sigmoid = (1 / (1 + np.exp(-real.astype(np.float64)))).astype(real.dtype)
    return ort.quantize_linear(sigmoid, step, 0, 0, 255)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sigmoid_in_half_precision(dtype: str, tmp_path: Path) -> None:
    """F6 as the model states it. onnxruntime omits the Casts around Sigmoid and computes in float32. This alone
    explains
    the codes that differ, always by one.
    """
    wrong = total = 0
    for seed, size in enumerate([8, 64, 200]):
        model = prequantized("F6", (size, 10), dtype=dtype, rows="N", seed=seed)
        x = codes(model, 500)
        y, z = evaluated(model, x, tmp_path), ort.run(model, {"x": x})[0]
        assert same(y, sigmoid_layer(model, x, half=True))
        assert same(z, sigmoid_layer(model, x, half=False))
        assert np.abs(y.astype(int) - z).max() == 1
        wrong, total = wrong + int((y != z).sum()), total + y.size
    assert 0.03 < wrong / total < 0.08


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("figures, dtype", [(("F1",), "int8"), (("F2", "F4"), "uint8")])
def test_hardware_gives_the_codes_of_onnxruntime(
    figures: Sequence[str], dtype: str, simulator: str, tmp_path: Path
) -> None:
    model = prequantized(figures, (12, 8, 4)[: len(figures) + 1], dtype=dtype, rows="N", seed=1)
    x = codes(model, 40)
    in_hardware(model, x, ort.run(model, {"x": x})[0], tmp_path, simulator, target_cycles=24)


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("figures", [("F3",), ("F6",), ("F2", "F5", "F1")])
def test_more_hardware(figures: Sequence[str], tmp_path: Path) -> None:
    model = prequantized(figures, (8, 6, 6, 4)[: len(figures) + 1], rows="N", seed=2)
    x = codes(model, 30)
    expected = sigmoid_layer(model, x, half=True) if figures == ("F6",) else ort.run(model, {"x": x})[0]
    in_hardware(model, x, expected, tmp_path, "icarus", target_cycles=24)


# --------------------------------------------------------------------------- sums beyond float32, sums that wrap


def beyond(x: Array, *edges: int) -> Array:
    """int32 samples, some of them ties of the Cast to float32."""
    ties = [e + d for e in (*edges, 2**24, 2**25, 2**27, 2**30) for d in (-65, -64, -33, -3, -1, 0, 1, 2, 3, 4, 63, 64)]
    special = np.array([*ties, *[-t for t in ties], -(2**31), 2**31 - 1])
    return np.concatenate([x.ravel(), np.resize(special, -(-len(special) // 4) * 4)]).reshape(-1, 4).astype(np.int32)


@pytest.mark.parametrize("scale", [2.0**-24, 1.1e-7, 3e-8])
def test_int32_input(scale: float, tmp_path: Path) -> None:
    """The graph's input is a sum of 32 bits: Cast rounds it."""
    model = chain(FLOAT, ("Mul", f32(scale)), ("QuantizeLinear", ONE, np.int8(-3)), source="int32", shape=["N", 4])
    x = beyond(np.random.default_rng(0).integers(-(2**31), 2**31, 2000), int(0.5 / scale), int(7.5 / scale))
    assert len(np.unique(agrees(model, x, tmp_path))) > 100


@pytest.mark.parametrize("scale", [2.0**-18, 3e-6])
def test_wide_layers(scale: float, tmp_path: Path) -> None:
    """Sums above 2^24, where Cast rounds: on both sides of the thresholds, which come after that rounding."""
    weight = np.repeat(np.array([[127, -127], [1, -1]], np.int8), [2990, 10], axis=0)
    model = chain(
        ("MatMulInteger", weight),
        FLOAT,
        ("Mul", f32(scale)),
        QUANTIZE,
        source="int8",
        shape=["N", 3000],
    )
    middle = np.round((np.arange(70, 127, 7) + 0.5) / scale).astype(np.int64)
    sums = np.concatenate([(middle[:, None] + np.arange(-6, 7)).ravel(), [2**24 + d for d in range(5)]])
    sums = np.concatenate([sums, -sums])
    x = np.zeros((len(sums), 3000), np.int64)
    x[:, :2990] = (sums // 127 + np.arange(2990)[:, None]).T // 2990
    x[:, 2990:] = (sums % 127 + np.arange(10)[:, None]).T // 10
    assert same(x @ weight[:, 0].astype(np.int64), sums)
    y = agrees(model, x.astype(np.int8), tmp_path)
    assert not same(y[:, 0], np.clip(np.rint(sums * np.float64(f32(scale))), -128, 127))


@pytest.mark.parametrize("bias", [2**31 - 1 - 1000, -(2**31) + 500, 2**30])
def test_sums_wrap(bias: int, tmp_path: Path) -> None:
    """int32 Add wraps, as in onnxruntime."""
    weight = np.random.default_rng(0).integers(-128, 128, (16, 4)).astype(np.int8)
    model = chain(
        ("MatMulInteger", weight),
        ("Add", np.full(4, bias, np.int32)),
        FLOAT,
        ("Mul", f32(2.0**-24)),
        QUANTIZE,
        source="int8",
        shape=["N", 16],
    )
    assert len(np.unique(agrees(model, codes(model, 300), tmp_path))) >= (2 if bias != 2**30 else 1)


@pytest.mark.sim
@needs_icarus
def test_wrapping_hardware(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).integers(-128, 128, (8, 3)).astype(np.int8)
    model = chain(
        ("MatMulInteger", weight),
        ("Add", np.full(3, 2**31 - 100, np.int32)),
        FLOAT,
        ("Mul", f32(2.0**-25)),
        QUANTIZE,
        source="int8",
        shape=["N", 8],
    )
    x = codes(model, 40)
    in_hardware(model, x, ort.run(model, {"x": x})[0], tmp_path, "icarus")


def test_a_product_that_wraps_is_refused(tmp_path: Path) -> None:
    """Too many wraps of too many inputs: a diagnostic, no hardware that is wrong."""
    model = chain(("Mul", np.int32(3)), FLOAT, QUANTIZE, source="int32", shape=["N", 4])
    refused(model, tmp_path, "HG037")
