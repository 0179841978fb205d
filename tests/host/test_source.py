"""Heads of integers equal onnxruntime on the numbers that they are, for every integer; ArgMax of codes equals ArgMax
of floats."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import ort
import pytest
from host_code import module_of, self_tested
from onnx.parser import parse_model

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen
from hlsgen.host.plan import plan_head, plan_tail

Array = npt.NDArray[Any]


def network(before: str = "q = QuantizeLinear(x, s, z)", constants: str = "") -> onnx.ModelProto:
    """Products of codes q of x [1, 3, 4]."""
    return parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> net (float[1, 3, 4] x) => (float[1, 3, 2] y) '
        f"<float s = {{0.0625}}, int8 z = {{-3}}, {constants} float ws = {{0.5}}, int8 wz = {{0}}, "
        f"int8[4, 2] w = {{1, -2, 3, 5, -7, 4, 2, 2}}> {{ {before} d = DequantizeLinear(q, s, z) "
        "v = DequantizeLinear(w, ws, wz) y = MatMul(d, v) }"
    )


#: By case: the model, --source, and the function that host code computes.
PIXELS = "p = Sub(x, mean) r = Div(p, std) q = QuantizeLinear(r, s, z)"
MEAN = "float[3, 1] mean = {0.48, 0.45, 0.41}, float[3, 1] std = {0.23, 0.22, 0.21},"
CASES: dict[str, tuple[onnx.ModelProto, str, str]] = {
    "the same step": (network(), "uint8:1/16", "Shift"),
    "a finer step": (network(), "int8:1/64", "Shift"),
    "a wider step": (network(), "uint8:0.5", "Shift"),
    "samples": (network(), "int16:1/2048", "Shift"),
    "pixels": (network(), "uint8:1/255", "Shift"),
    "another step": (network(), "uint8:1/100", "Entries"),
    "a mean for each row": (network(PIXELS, MEAN), "uint8:1/255", "Entries"),
    "samples of an odd scale": (network(), "int16:1/3000", "Thresholds"),
    "falling samples": (network("n = Neg(x) q = QuantizeLinear(n, s, z)"), "uint16:1/7000.5", "Thresholds"),
    "moves": (network("t = Transpose<perm = [0, 2, 1]>(x) t2 = Reshape(t, rs) q = QuantizeLinear(t2, s, z)",
                      "int64[3] rs = {1, 3, 4},"), "uint8:1/7", "Entries"),
}  # fmt: skip


def built(proto: onnx.ModelProto, folder: Path, **options: Any) -> Path:
    onnx.save(proto, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "build", hlsgen.Options(target="verilog", **options))
    return folder / "build"


@pytest.mark.sweep
@pytest.mark.cases(3)
@pytest.mark.parametrize("case", CASES)
def test_each_integer_equals_onnxruntime(tmp_path: Path, case: str) -> None:
    proto, source, function = CASES[case]
    folder = built(proto, tmp_path, source=source)
    head = plan_head(reopen(folder).graph)
    assert head.source is not None
    assert type(head.source.function).__name__ == function
    dtype = np.dtype(source.partition(":")[0])
    integers = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    frames = np.stack([np.roll(integers, shift) for shift in range(12)], axis=1).reshape(-1, 1, 3, 4)
    numerator, _, denominator = source.partition(":")[2].partition("/")
    numbers = (frames.astype(np.float64) * float(numerator) / float(denominator or 1)).astype(np.float32)
    session = ort.session(codes_of(proto))
    step = 1 if dtype.itemsize == 1 else 101
    expected = np.stack([session.run(None, {"x": frame})[0] for frame in numbers[::step]])
    host = module_of(folder, "m")
    assert np.array_equal(host.head(frames[::step]).reshape(expected.shape), expected)
    self_tested(folder, "m")
    assert host.self_test() == 0


def codes_of(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model up to its first codes."""
    part = onnx.ModelProto()
    part.CopyFrom(proto)
    del part.graph.output[:]
    part.graph.output.append(onnx.helper.make_tensor_value_info("q", onnx.TensorProto.INT8, [1, 3, 4]))
    return part


def test_a_wrong_code_fails_both_self_tests(tmp_path: Path) -> None:
    """One entry of the lookup table, which no vector needs to have."""
    folder = built(network(), tmp_path, source="uint8:1/100")
    for name, entry in (("m.c", "INT64_C(13)"), ("m.py", " 13,")):
        path = folder / "host" / name
        path.write_text(path.read_text().replace(entry, entry.replace("13", "12"), 1))
    with pytest.raises(subprocess.CalledProcessError):
        self_tested(folder, "m")
    assert module_of(folder, "m").self_test() == 1


def test_argmax_compares_codes(tmp_path: Path) -> None:
    """Constants that are no multiples of the step, and one that makes two codes equal numbers."""
    proto = parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> net (float[1, 4] x) => (int64[1] best) '
        "<float s = {0.0625}, int8 z = {0}, float ws = {0.5}, int8[4, 3] w = {1, -2, 3, 5, -7, 4, 2, 2, 1, 1, 4, -3}, "
        "float[3] b = {0.1, -0.25, 0.125}> { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
        "v = DequantizeLinear(w, ws, z) m = MatMul(d, v) y = Add(m, b) best = ArgMax<axis = 1, keepdims = 0>(y) }"
    )
    folder = built(proto, tmp_path)
    assert plan_tail(reopen(folder).graph).keys is not None
    text = (folder / "host/m.c").read_text()
    assert "float" not in text[text.index("m_tail_0") : text.index("m_head(")]
    x = (np.random.default_rng(1).integers(-140, 140, (400, 4)) / 16).astype(np.float32)
    session = ort.session(proto)
    expected = np.concatenate([session.run(None, {"x": frame[None]})[0] for frame in x])
    assert np.array_equal(hlsgen.run(folder, x).ravel(), expected)
    self_tested(folder, "m")
    assert module_of(folder, "m").self_test() == 0


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"y": "uint8"}, "--source y: is no input of the model"),
        ("uint9", "'uint9' is no integer source"),
        ("uint8:0", "'uint8:0' is no integer source"),
        ("uint8:1/3/5", "no integer source"),
    ],
)
def test_refused(tmp_path: Path, source: Any, text: str) -> None:
    with pytest.raises(HlsgenError, match="HG040") as error:
        built(network(), tmp_path, source=source)
    assert text in str(error.value)


def test_integers_that_are_no_codes_are_refused(tmp_path: Path) -> None:
    """A fixed-point port has no codes for multiples of 1/16."""
    with pytest.raises(HlsgenError, match="HG040 --source x: an integer is no code of the input"):
        built(network(), tmp_path, source="uint8:1/16", input="fixed:8,6")
