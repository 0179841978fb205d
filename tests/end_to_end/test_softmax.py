"""Softmax between quantizers: the contract against executors, and its hardware in simulation."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import chain, compiled, in_hardware
from models import Net, newer, save

import hlsgen
from hlsgen.certify import second_reading
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import compare
from hlsgen.ir import QLinearSoftmax, Softmax, SoftmaxRows
from hlsgen.numerics.fixed import Array

SOFTMAX = (Softmax, QLinearSoftmax)
LENGTHS = (2, 3, 8, 10, 64, 100)
MODES = ("ROUND", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN")


def between(
    rows: int, length: int, bits: float, scale: float, out_bits: float, out_scale: float, mode: str = "ROUND"
) -> onnx.ModelProto:
    """Quantizer, Softmax, quantizer."""
    net = Net((1, rows, length)).quant(scale, bits=bits, name="q0").then("Softmax", axis=-1, name="soft")
    return newer(net.quant(out_scale, bits=out_bits, signed=0, rounding_mode=mode, name="q1").model())


def codes_of(rows: int, length: int, bits: int, seed: int) -> Array:
    """All rows of codes if these are few, else random ones of all kinds."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if (1 << bits) ** length <= rows:
        all_rows = np.array(list(itertools.product(range(low, high + 1), repeat=length)))
        return np.resize(all_rows, (rows, length))
    rng = np.random.default_rng(seed)
    spread = rng.choice([0.02, 0.1, 0.3, 1], (rows, 1)) * (high - low)
    return np.clip(np.rint(rng.normal(rng.uniform(low, high, (rows, 1)), spread, (rows, length))), low, high).astype(
        int
    )


def exact_share(row: Array, scale: float, place: int) -> Decimal:
    """The real Softmax of one element."""
    with localcontext() as context:
        context.prec = 60
        powers = [(Decimal(float(np.float32(scale))) * int(code - row.max())).exp() for code in row]
        return powers[place] / sum(powers)


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [8, 3, 5, 2, 4, 6, 7])
def test_against_onnxruntime(bits: int, tmp_path: Path) -> None:
    """Codes differ only where the real share lies nearer to a threshold than float32 operations tell apart."""
    different = 0
    for length, mode in zip(LENGTHS, MODES, strict=False):
        rows = 4096 if length <= 10 else 200
        scale = 3.1 / (1 << bits - 1) if length % 2 else 8 / (1 << bits)
        out_scale = 1.7 / length / (1 << bits) if length > 8 else 1 / ((1 << bits) - 1)
        proto = between(1, length, float(bits), scale, float(bits), out_scale, mode)
        build = compiled(proto, tmp_path)
        assert any(isinstance(layer, SoftmaxRows) for layer in build.graph.layers)
        codes = codes_of(rows, length, bits, length)
        x = codes.astype(np.float32) * np.float32(scale)
        real = reference.evaluate(build.graph, x[:, None])
        ours = np.rint(real.reshape(rows, length) / np.float32(out_scale)).astype(np.int64)
        theirs = share_codes(codes, scale, out_scale, bits, mode)
        for row, place in np.argwhere(ours != theirs):
            share = exact_share(codes[row], scale, place) / Decimal(float(np.float32(out_scale)))
            middle = Decimal(0) if mode in ("CEIL", "FLOOR", "UP", "DOWN") else Decimal("0.5")
            distance = (share - middle) - (share - middle).to_integral_value()
            assert abs(distance) < share * Decimal(2) ** -18, (
                length,
                mode,
                share,
                ours[row, place],
                theirs[row, place],
            )
            different += 1
        frames = reference.encode_input(build.graph, reference.frames_of(build.graph, x[:, None]))
        assert compare(build.model, build.graph, frames).ok
    assert different <= 20


def share_codes(codes: Array, scale: float, out_scale: float, bits: int, mode: str) -> Array:
    """onnxruntime's float32 Softmax, and the rounding of QONNX."""
    from qonnx.custom_op.general.quant import quant

    x = codes.astype(np.float32) * np.float32(scale)
    node = onnx.helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    share = ort.run(one_node(node), {"x": x})[0]
    step = np.float32(out_scale)
    real = quant(share, step, np.float32(0), np.float32(bits), False, False, rounding_mode=mode)
    return np.rint(real / step).astype(np.int64)


def one_node(node: onnx.NodeProto) -> onnx.ModelProto:
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "y")]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_qlinear_against_onnxruntime(dtype: str, tmp_path: Path) -> None:
    """DequantizeLinear, Softmax, QuantizeLinear of one type, as onnxruntime fuses them (int8 at the output on ARM)."""
    arm = dtype == "int8"
    for seed, length in enumerate(LENGTHS):
        rng = np.random.default_rng(seed)
        info, low = np.iinfo(dtype), np.array(np.iinfo(dtype).min, dtype)
        sx, sy = np.float32(rng.uniform(0.01, 0.3)), np.float32(1 / rng.uniform(200, 256))
        ops = [("DequantizeLinear", np.float32(0.1), low), ("LeakyRelu",), ("QuantizeLinear", sx, low)]
        ops += [("DequantizeLinear", sx, low), ("Softmax", {"axis": -1}), ("QuantizeLinear", sy, low)]
        proto = chain(*ops, source=dtype, shape=[300, length], opset=17)
        x = rng.integers(info.min, info.max, (300, length), dtype=dtype, endpoint=True)
        build = compiled(proto, tmp_path, runtime="onnxruntime-arm" if arm else "onnxruntime")
        assert any(isinstance(layer, SoftmaxRows) and layer.in_order for layer in build.graph.layers)
        assert np.array_equal(reference.evaluate(build.graph, x), ort.run(proto, {"x": x}, arm=arm)[0])


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("axis", [1, 2])
def test_hardware(axis: int, tmp_path: Path) -> None:
    """Both simulators under stalls, cycles as predicted; certified, and not with another word in a table."""
    net = Net((1, 6, 4)).quant(0.15, bits=8.0, name="q0").then("Softmax", axis=axis, name="soft")
    net.quant(1 / 200, bits=8.0, signed=0, name="q1")
    path = save(newer(net.model()), tmp_path / "model.onnx")
    hlsgen.build(path, tmp_path / "out")
    verdict = hlsgen.verify(tmp_path / "out")
    assert verdict.ok, verdict
    assert hlsgen.certify(tmp_path / "out").ok
    for table in ("power", "numerator"):
        damaged = tmp_path / table
        shutil.copytree(tmp_path / "out", damaged)
        (file,) = damaged.glob(f"rtl/*_{table}.mem")
        words = file.read_text().split()
        words[5] = f"{int(words[5], 16) + 1:0{len(words[5])}x}"
        file.write_text("\n".join(words) + "\n")
        certified = hlsgen.certify(damaged)
        assert not certified.ok
        assert any(f"the {table} at distance 5" in problem.message for problem in certified.problems)


@pytest.mark.sim
def test_qlinear_hardware(tmp_path: Path) -> None:
    low, sx, sy = np.array(0, np.uint8), np.float32(0.07), np.float32(1 / 250)
    ops: list[Any] = [("DequantizeLinear", np.float32(0.1), low), ("LeakyRelu",), ("QuantizeLinear", sx, low)]
    ops += [("DequantizeLinear", sx, low), ("Softmax", {"axis": -1}), ("QuantizeLinear", sy, low)]
    proto = chain(*ops, source="uint8", shape=[3, 7], opset=17)
    x = np.random.default_rng(1).integers(0, 256, (12, 3, 7)).astype(np.uint8)
    expected = np.stack([ort.run(proto, {"x": frame})[0] for frame in x])
    in_hardware(proto, x, expected, tmp_path, "verilator")
    assert hlsgen.certify(tmp_path / "build").ok


def test_second_reading(tmp_path: Path) -> None:
    """A wrong axis, a wrong power, a wrong factor: the file's own numbers tell."""
    low, sx, sy = np.array(0, np.uint8), np.float32(0.07), np.float32(1 / 250)
    ops: list[Any] = [("DequantizeLinear", np.float32(0.1), low), ("LeakyRelu",), ("QuantizeLinear", sx, low)]
    ops += [("DequantizeLinear", sx, low), ("Softmax", {"axis": -1}), ("QuantizeLinear", sy, low)]
    fused = chain(*ops, source="uint8", shape=[3, 7], opset=17)
    for proto, changes in (
        (between(3, 4, 4.0, 0.3, 4.0, 1 / 15), [lambda op: replace(op, axis=1)]),
        (
            fused,
            [lambda op: replace(op, powers=op.powers * np.float32(1.5)), lambda op: replace(op, factor=op.factor + 1)],
        ),
    ):
        model = compiled(proto, tmp_path).model
        path = save(proto, tmp_path / "file.onnx")
        reading = second_reading.compare(path, model)
        assert not reading.problems
        assert not reading.once
        for change in changes:
            steps = [replace(s, op=change(s.op)) if isinstance(s.op, SOFTMAX) else s for s in model.steps]
            assert second_reading.compare(path, replace(model, steps=tuple(steps))).problems


def test_stays_on_the_host(tmp_path: Path) -> None:
    """If no quantizer follows, or after the last layer if its scores are no codes of few bits."""
    head = Net((1, 4)).quant(bits=4.0).then("Softmax", axis=-1, name="soft")
    sums = Net((1, 4)).quant(bits=4.0).linear(4, 4).then("Softmax", axis=-1, name="soft").quant(bits=4.0)
    for net in (head, sums):
        graph = compiled(net.model(), tmp_path).graph
        assert [step.name for step in graph.tail if step.name == "soft"] == ["soft"]
