"""Div of two computed tensors, and of two functions of one: against onnxruntime, and proven for all pairs of codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.parser import parse_model

import hlsgen


def between(body: str, inputs: str, names: str, low: int = -128) -> onnx.ModelProto:
    """c of `body`, quantized; dx and dw are codes of the inputs, of the second from `low` on."""
    quantized = (f"q{n} = QuantizeLinear({n}, s{n}, z{n}) d{n} = DequantizeLinear(q{n}, s{n}, z{n})" for n in names)
    codes = " ".join(quantized)
    return parse_model(f"""<ir_version: 9, opset_import: ["" : 19]> quotient ({inputs}) => (float[1, 3, 8] y)
      <float sx = {{0.03}}, int8 zx = {{5}}, float sw = {{0.05}}, int8 zw = {{{low}}},
       float sy = {{0.04}}, int8 zy = {{2}}>
      {{ {codes} {body} r = QuantizeLinear(c, sy, zy) y = DequantizeLinear(r, sy, zy) }}""")


def assert_compared(model: onnx.ModelProto, folder: Path) -> None:
    """Certified, and every code equals onnxruntime's, or is explained."""
    onnx.save(model, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out")
    assert hlsgen.certify(folder / "out").ok
    verdict = hlsgen.verify(folder / "out", [], 40, oracle="onnxruntime")
    assert verdict.ok, verdict.oracle
    assert verdict.oracle is not None
    assert verdict.oracle.compared


@pytest.mark.sweep
@pytest.mark.parametrize("low", [-128, 3])
@pytest.mark.parametrize("divisors", [8, 1])
def test_two_tensors(divisors: int, low: int, tmp_path: Path) -> None:
    """For each element, and for each row as in an expanded normalization; divisors of one sign, of both signs, and
    0."""
    assert_compared(between("c = Div(dx, dw)", f"float[1, 3, 8] x, float[1, 3, {divisors}] w", "xw", low), tmp_path)


#: Quotients of two functions of x.
FUNCTIONS = {
    "silu": "n = Neg(dx) e = Exp(n) p = Add(e, one) c = Div(dx, p)",
    "softsign": "a = Abs(dx) p = Add(a, one) c = Div(dx, p)",
    "itself": "c = Div(dx, dx)",
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one(name: str, tmp_path: Path) -> None:
    """They are one function of one tensor, without a table of pairs."""
    body = f"one = Constant <value = float[1] {{1.0}}> () {FUNCTIONS[name]}"
    assert_compared(between(body, "float[1, 3, 8] x", "x"), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "divisor", ["e = Exp(n) p = Add(e, one) c = Div(m, p)", "p = Add(n, one) d = Div(m, p) c = Mul(d, scale)"]
)
def test_functions_of_a_sum(divisor: str, tmp_path: Path) -> None:
    """For some hundred thousand inputs: intervals with a divisor of one sign are bounded, the others are tried."""
    weights = ", ".join(map(str, np.random.default_rng(2).integers(-127, 128, 64)))
    body = f"""one = Constant <value = float[1] {{1.0}}> () scale = Constant <value = float {{0.0005}}> ()
      zero = Constant <value = int8 {{0}}> () codes = Constant <value = int8[8, 8] {{{weights}}}> ()
      dm = DequantizeLinear(codes, scale, zero) m = MatMul(dx, dm) n = Neg(m) {divisor}"""
    assert_compared(between(body, "float[1, 3, 8] x", "x"), tmp_path)


@pytest.mark.sweep
def test_what_0_gives(tmp_path: Path) -> None:
    """Infinity saturates, 0 / 0 gives the lowest code, -0.0 and 0.0 have no other sign than in the executor."""
    onnx.save(between("c = Div(dx, dw)", "float[1, 3, 8] x, float[1, 3, 8] w", "xw", 0), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    x: NDArray[np.float32] = np.resize(np.float32([0, 3, -3]), (1, 3, 8))
    outputs = hlsgen.run(tmp_path / "out", {"x": x, "w": np.zeros_like(x)})
    lowest, highest = np.float32(-130) * np.float32(0.04), np.float32(125) * np.float32(0.04)
    assert (outputs.ravel()[:3] == [lowest, highest, lowest]).all()
