"""Two tensors joined after the last quantizers: both leave the core, and the host joins them as the file does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified_cpp import problems
from host_code import self_tested
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.diagnostics import HlsgenError

#: Nodes after a, codes of x, and after w, the sums of a layer; names of the outputs.
TAILS: dict[str, tuple[str, str]] = {
    "add": ("y = Add(a, w)", "y"),
    "sub, bias, factor": ("v = Add(w, bias)  s = Sub(v, a)  y = Mul(s, half)", "y"),
    "gated": ("g = Relu(w)  y = Mul(a, g)", "y"),
    "bounds": ("g = Max(w, a)  y = Min(g, bias)", "y"),
    "turned": ("s = Add(w, a)  t = Transpose <perm = [0, 2, 1]> (s)  y = Relu(t)", "y"),
    "normalized": ("s = Add(a, w)  y = LayerNormalization <axis = -1> (s, gamma, bias)", "y"),
    "chosen": ("s = Add(a, w)  y = ArgMax <axis = -1, keepdims = 0> (s)", "y"),
    "several": ("y = Add(a, w)  z = Relu(w)", "y z b"),
}

#: The same, of tails that are refused.
REFUSED: dict[str, tuple[str, str]] = {
    "three": ("r = Mul(a, half)  s = Add(r, w)  y = Add(s, b)", "y"),
    "of a norm": (
        "n = LayerNormalization <axis = -1> (a, gamma, bias)  q = QuantizeLinear(n, small, zero)"
        "  d = DequantizeLinear(q, small, zero)  v = MatMul(d, square)  y = Add(n, v)",
        "y",
    ),
}

SHAPES = {"y": {"turned": "float[1, 4, 3]", "chosen": "int64[1, 3]"}}


def model(name: str) -> onnx.ModelProto:
    nodes, outputs = (TAILS | REFUSED)[name]
    ends = [f"{SHAPES.get(n, {}).get(name, 'float[1, 3, 4]')} {n}" for n in outputs.split()]
    proto = parse_model(f"""
      <ir_version: 9, opset_import: ["" : 19]>
      joined (float[1, 3, 4] x) => ({", ".join(ends)})
      <float step = {{0.07}}, float other = {{0.031}}, float small = {{0.02}}, float fine = {{0.0113}},
       int8 zero = {{0}}, int8 shift = {{-3}}, float half = {{0.53}}>
      {{
        k = QuantizeLinear(x, step, zero)
        a = DequantizeLinear(k, step, zero)
        m = DequantizeLinear(weight, fine, zero)
        square = DequantizeLinear(weight2, fine, zero)
        w = MatMul(a, m)
        l = QuantizeLinear(w, other, shift)
        b = DequantizeLinear(l, other, shift)
        {nodes}
      }}""")
    rng = np.random.default_rng(3)
    constants = {
        "weight": rng.integers(-128, 128, (4, 4)).astype(np.int8),
        "weight2": rng.integers(-128, 128, (4, 4)).astype(np.int8),
        "bias": rng.normal(0, 0.3, 4).astype(np.float32),
        "gamma": rng.normal(1, 0.2, 4).astype(np.float32),
    }
    proto.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
    for number, node in enumerate(proto.graph.node):
        node.name = f"{node.op_type.lower()}{number}"
    del proto.graph.value_info[:]
    return proto


def frames(count: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(1)
    return (rng.integers(-140, 140, (count, 3, 4)) * np.float32(0.07)).astype(np.float32)


def built(name: str, folder: Path, **options: Any) -> Path:
    folder.mkdir(exist_ok=True)
    onnx.save(model(name), folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "core", hlsgen.Options(**options))
    return folder / "core"


@pytest.mark.sweep
@pytest.mark.parametrize("name", TAILS)
def test_against_the_file(name: str, tmp_path: Path) -> None:
    """Numbers of the core equal the file's, except for roundings in float sums of products; all of it is proven."""
    core, x = built(name, tmp_path), frames(8)
    results: Any = hlsgen.run(core, x)
    runs = ReferenceEvaluator(model(name))
    outputs = TAILS[name][1].split()
    for output in outputs:
        numbers = results[output] if len(outputs) > 1 else results
        expected = np.concatenate([runs.run([output], {"x": frame[None]})[0] for frame in x])
        assert numbers.dtype == expected.dtype
        assert np.allclose(numbers, expected, rtol=2e-6, atol=2e-6)
    verdict = hlsgen.verify(core, [], frames=4)
    assert verdict.ok, verdict
    certified = hlsgen.certify(core)
    assert certified.ok, [str(problem) for problem in certified.problems]
    self_tested(core, "m")


@pytest.mark.parametrize("name", REFUSED)
def test_float32_does_not_leave_the_core(name: str, tmp_path: Path) -> None:
    """Numbers that exist only in hardware, as float32, need a quantizer before the output."""
    with pytest.raises(HlsgenError) as error:
        built(name, tmp_path)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "HG042"
    assert diagnostic.hint.startswith("Put a quantizer after them, or end the hardware before them: --outputs")


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["several", "normalized"])
def test_in_hardware(name: str, tmp_path: Path) -> None:
    """In simulation, in C++, and with a port for each part."""
    core = built(name, tmp_path, target="verilog,hls")
    assert_verified(core, "icarus", 3)
    assert hlsgen.verify(core, ["ap_types"], 2, oracle="none").ok
    separate = built(name, tmp_path / "apart", ports="separate")
    assert hlsgen.certify(separate).ok
    x = frames(2)
    joined_results, separate_results = hlsgen.run(core, x), hlsgen.run(separate, x, "icarus")
    for key in joined_results if isinstance(joined_results, dict) else [""]:
        assert ((joined_results[key] == separate_results[key]) if key else (joined_results == separate_results)).all()
    assert not problems(core)
    self_tested(separate, "m")
