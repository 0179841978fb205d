"""Models with two inputs: QuantizedAdd, and onnxruntime's QLinearAdd and QLinearMul, also as QDQ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import helper, numpy_helper

import hlsgen
from hlsgen.frontend import domain_hlsgen
from hlsgen.numerics.quantized_add import Parameters

pytestmark = pytest.mark.sim

Array = Any
SHAPE = [1, 12]
WILD = Parameters(-32768, 32767, 5, 65535, 40000, 255, 20)


def model(nodes: list[onnx.NodeProto], dtype: Any, constants: dict[str, Any], inputs: str = "ab") -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    sources = [helper.make_tensor_value_info(name, kind, SHAPE) for name in inputs]
    graph = helper.make_graph(
        nodes,
        "pair",
        sources,
        [helper.make_tensor_value_info("c", kind, SHAPE)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1), domain_hlsgen.opset_import()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def operands(dtype: Any, frames: int, seed: int = 0) -> tuple[Array, Array]:
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    a, b = rng.integers(limits.min, limits.max + 1, (2, frames, SHAPE[1]))
    a[0], b[0], a[1], b[1] = limits.min, limits.min, limits.max, limits.max
    return a.astype(dtype), b.astype(dtype)


def built(proto: onnx.ModelProto, folder: Path, **options: Any) -> Path:
    onnx.save(proto, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "build", hlsgen.Options(**options))
    return folder / "build"


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("parameters", [Parameters(-3, 7, 2, 300, 250, 3, 13), WILD, Parameters(0, 0, 0, 9, 9, 1, -3)])
def test_quantized_add(tmp_path: Path, parameters: Parameters) -> None:
    """QuantizedAdd of the hlsgen domain, with sums that wrap, in hardware."""
    build = built(model([domain_hlsgen.make_quantized_add("a", "b", "c", parameters)], np.int8, {}), tmp_path)
    a, b = operands(np.int8, 400)
    simulators = ["verilator"] if parameters != WILD else ["verilator", "icarus"]
    for backend in ("reference", *simulators):
        assert (hlsgen.run(build, {"a": a, "b": b}, backend) == parameters.apply(a, b)).all()
    assert hlsgen.verify(build, simulators, oracle="none").ok


@pytest.mark.slow
def test_quantized_add_of_a_constant(tmp_path: Path) -> None:
    constant = np.arange(-6, 6, dtype=np.int8).reshape(SHAPE)
    a, _ = operands(np.int8, 300)
    for inputs, node in (("a", ("a", "b", "c")), ("b", ("a", "b", "c"))):
        constants = {"b" if inputs == "a" else "a": constant}
        proto = model([domain_hlsgen.make_quantized_add(*node, WILD)], np.int8, constants, inputs)
        build = built(proto, tmp_path)
        expected = WILD.apply(a, constant) if inputs == "a" else WILD.apply(constant, a)
        for backend in ("reference", "icarus"):
            assert (hlsgen.run(build, a, backend) == expected).all()


def parameters(rng: np.random.Generator, dtype: Any, op: str) -> dict[str, Any]:
    sa, sb = np.exp2(rng.uniform(-8, 0, 2)).astype(np.float32)
    result = np.float32(sa + sb if op == "Add" else sa * sb * 90)
    limits = np.iinfo(dtype)
    zeros = rng.integers(limits.min, limits.max + 1, 3).astype(dtype)
    return {"sa": sa, "sb": sb, "sc": result, **dict(zip(("za", "zb", "zc"), zeros, strict=True))}


CASES = [(op, dtype, seed) for op in ("Add", "Mul") for dtype in (np.int8, np.uint8) for seed in range(4)]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("op", "dtype", "seed"), CASES)
def test_qlinear_equals_onnxruntime(tmp_path: Path, op: str, dtype: Any, seed: int) -> None:
    """Odd seeds use QDQ. Decimal scales have ties that float32 rounds both ways."""
    rng = np.random.default_rng(seed)
    constants = parameters(rng, dtype, op)
    if seed == 2:
        constants |= {
            "sa": np.float32(0.013),
            "sb": np.float32(0.021),
            "sc": np.float32(0.03 if op == "Add" else 0.011),
        }
    if seed % 2:
        nodes = [
            helper.make_node("DequantizeLinear", ["a", "sa", "za"], ["ra"]),
            helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["rb"]),
            helper.make_node(op, ["ra", "rb"], ["rc"]),
            helper.make_node("QuantizeLinear", ["rc", "sc", "zc"], ["c"]),
        ]
    else:
        names = ["a", "sa", "za", "b", "sb", "zb", "sc", "zc"]
        nodes = [helper.make_node(f"QLinear{op}", names, ["c"], domain="com.microsoft")]
    proto = model(nodes, dtype, constants)
    build = built(proto, tmp_path)
    a, b = operands(dtype, 300, seed)
    session = ort.session(proto)
    expected = np.concatenate([session.run(None, {"a": x[None], "b": y[None]})[0] for x, y in zip(a, b, strict=True)])
    for backend in ("reference", "verilator") if seed < 2 else ("reference",):
        assert (hlsgen.run(build, {"a": a, "b": b}, backend) == expected).all()


def test_fixed_point_add(tmp_path: Path) -> None:
    """--add fixed-point: multipliers and a shift, at most one code away from the float chain."""
    constants = parameters(np.random.default_rng(7), np.int8, "Add")
    names = ["a", "sa", "za", "b", "sb", "zb", "sc", "zc"]
    proto = model([helper.make_node("QLinearAdd", names, ["c"], domain="com.microsoft")], np.int8, constants)
    build = built(proto, tmp_path, add="fixed-point")
    assert "m_hg_pair_add #(" in (build / "rtl" / "m.v").read_text()
    a, b = operands(np.int8, 400)
    session = ort.session(proto)
    expected = np.concatenate([session.run(None, {"a": x[None], "b": y[None]})[0] for x, y in zip(a, b, strict=True)])
    y = hlsgen.run(build, {"a": a, "b": b}, "verilator")
    assert np.abs(y.astype(int) - expected).max() <= 1


def test_wrong_inputs_are_refused(tmp_path: Path) -> None:
    build = built(model([domain_hlsgen.make_quantized_add("a", "b", "c", WILD)], np.int8, {}), tmp_path)
    a, b = operands(np.int8, 3)
    for wrong in ({"a": a}, {"a": a, "x": b}, {"a": a, "b": b[:2]}):
        with pytest.raises(hlsgen.HlsgenError, match="HG054"):
            hlsgen.run(build, wrong)
