"""Arithmetic, comparisons and lookup tables of one or two integer tensors equal onnx's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.interpreter import graph as reference

Array = Any
SIZE = 6


def network(kind: str, body: str, inputs: str = "ab", constants: str = "", out: str = "") -> onnx.ModelProto:
    """`body`: nodes from a and b to y, `constants`: declarations of constants, `out`: the type of y."""
    ends = ", ".join(f"{kind}[1, {SIZE}] {name}" for name in inputs)
    signature = f"net ({ends}) => ({out or kind}[1, {SIZE}] y)"
    return parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {signature} <{constants}> {{ {body} }}')


def frames(model: onnx.ModelProto, kind: str, count: int = 60) -> list[dict[str, Array]]:
    """Random numbers, the ends of the type, and equal ones."""
    info, rng = np.iinfo(kind), np.random.default_rng(0)
    samples = []
    for n in range(count):
        x = rng.integers(info.min, info.max, (2, 1, SIZE), endpoint=True)
        x[:, 0, 0], x[:, 0, 1] = (info.min, info.max) if n % 2 else (info.max, info.min), x[0, 0, 1]
        samples.append({end.name: part.astype(kind) for end, part in zip(model.graph.input, x, strict=False)})
    return samples


def executed(model: onnx.ModelProto, samples: list[dict[str, Array]]) -> Array:
    return np.concatenate([ReferenceEvaluator(model).run(None, frame)[0] for frame in samples])


def through(graph: Any, x: dict[str, Array]) -> Array:
    return reference.decode_output(
        graph, reference.run_output(graph, reference.encode_input(graph, reference.pack_inputs(graph, x)))
    )


PAIRS = {
    "Less": ("uint16", "y = Less(a, b)", "bool"),
    "GreaterOrEqual": ("int32", "y = GreaterOrEqual(a, b)", "bool"),
    "Equal": ("int8", "y = Equal(a, b)", "bool"),
    "logic": ("int16", "g = Greater(a, b) l = LessOrEqual(a, b) x = Xor(g, l) n = Not(g) y = And(x, n)", "bool"),
    "Add": ("uint32", "y = Add(a, b)", ""),
    "Sub": ("int16", "y = Sub(a, b)", ""),
    "Mul": ("uint16", "y = Mul(a, b)", ""),
    "sums": ("int8", "s = Add(a, b) t = Mul(a, b) y = Sub(s, t)", ""),
    "Max": ("int16", "y = Max(a, b)", ""),
    "Min": ("uint16", "y = Min(a, b)", ""),
    "BitwiseXor": ("int8", "y = BitwiseXor(a, b)", ""),
    "BitShift": ("uint8", 'y = BitShift<direction="RIGHT">(a, b)', ""),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_tensors(name: str, tmp_path: Path) -> None:
    kind, body, out = PAIRS[name]
    model = network(kind, body, out=out)
    onnx.save(model, tmp_path / "m.onnx")
    samples = frames(model, kind)
    if name == "BitShift":
        samples = [{"a": frame["a"], "b": frame["b"] & 7} for frame in samples]
    x = {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}
    outputs = through(hlsgen.check(tmp_path / "m.onnx").graph, x)
    expected = executed(model, samples)
    assert outputs.dtype == expected.dtype
    assert (outputs == expected).all()
    assert len(np.unique(expected)) > 1 + (out != "bool") * 5


ONES = {
    "Clip": ("int16", "y = Clip(a, low, high)", "int16 low = {-300}, int16 high = {5}"),
    "Min": ("int16", "y = Min(low, a)", "int16 low = {-300}"),
    "Neg": ("int8", "n = Abs(a) y = Neg(n)", ""),
    "BitwiseNot": ("uint8", "y = BitwiseNot(a)", ""),
    "BitwiseAnd": ("int8", "y = BitwiseAnd(c, a)", "int8[6] c = {-127, 1, 2, -4, 85, 127}"),
    "Mod": ("int8", "y = Mod(a, c)", "int8[6] c = {-3, 1, 2, -128, 5, 127}"),
    "fmod": ("int8", "y = Mod<fmod=1>(a, c)", "int8[6] c = {-3, 1, 2, -128, 5, 127}"),
    "BitShift": ("uint8", 'y = BitShift<direction="LEFT">(a, c)', "uint8[6] c = {0, 1, 3, 7, 2, 4}"),
    "table": ("int8", "m = Mod(a, c) y = Add(m, a)", "int8[6] c = {-3, 1, 2, -128, 5, 127}"),
    "And": ("int8", "g = Greater(a, low) l = Less(a, high) y = And(g, l)", "int8 low = {-30}, int8 high = {5}"),
}


@pytest.mark.parametrize("name", ONES)
def test_one_tensor_is_hardware(name: str, tmp_path: Path) -> None:
    """The host only decodes the result."""
    kind, body, constants = ONES[name]
    model = network(kind, body, "a", constants, "bool" if name == "And" else "")
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx")
    samples = frames(model, kind, 200)
    outputs = reference.evaluate(build.graph, np.concatenate([frame["a"] for frame in samples]))
    assert (outputs == executed(model, samples)).all()
    assert len(build.graph.layers) == 1
    assert {type(step.op).__name__ for step in build.graph.tail} <= {"Cast"}


@pytest.mark.parametrize(
    ("kind", "op"),
    [
        ("int8", "ReduceMin"),
        ("uint8", "ReduceMin"),
        ("int32", "ReduceMax"),
        ("int32", "ReduceSum"),
        ("uint8", "ReduceSum"),
    ],
)
def test_extreme_of_a_row(kind: str, op: str, tmp_path: Path) -> None:
    """Hardware computes it in the data's type."""
    model = network(kind, f"y = {op}(a, axes)", "a", "int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    graph, samples = hlsgen.check(tmp_path / "m.onnx").graph, frames(model, kind)
    outputs = reference.evaluate(graph, np.concatenate([frame["a"] for frame in samples]))
    assert outputs.dtype == kind
    assert (outputs == executed(model, samples)).all()
    assert not graph.head


def test_minimum_by_the_host(tmp_path: Path) -> None:
    """The minimum of 32-bit sums, not all of which float32 represents, is an integer."""
    model = network("int32", "s = Add(a, b) y = ReduceMin(s, axes)", constants="int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    samples = frames(model, "int32")
    x = {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}
    outputs = through(hlsgen.check(tmp_path / "m.onnx").graph, x)
    assert outputs.dtype == np.int32
    assert (outputs == executed(model, samples)).all()


def test_functions_with_an_output_each(tmp_path: Path) -> None:
    """Hardware computes several functions with an output each."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> net (int16[1, 6] a, int8[1, 6] b) => '
        "(int16[1, 6] r, bool[1, 6] g, int8[1, 6] b2) "
        "<int8 low = {-5}> { r = Relu(a) g = Greater(b, low) b2 = Identity(b) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    graph = hlsgen.check(tmp_path / "m.onnx").graph
    samples = [
        {k: v.astype(t) for (k, v), t in zip(frame.items(), ("int16", "int8"), strict=True)}
        for frame in frames(model, "int8")
    ]
    x = {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}
    codes = reference.run_output(graph, reference.encode_input(graph, reference.pack_inputs(graph, x)))
    for n, outputs in enumerate(reference.named_outputs(graph, codes).values()):
        expected = np.concatenate([ReferenceEvaluator(model).run(None, frame)[n] for frame in samples])
        assert outputs.dtype == expected.dtype
        assert (outputs == expected).all()
    assert {type(step.op).__name__ for end in graph.outputs for step in end.steps} <= {"Cast"}


@pytest.mark.parametrize(("kind", "low"), [("int16", True), ("uint8", False), ("int8", True)])
def test_division(kind: str, low: bool, tmp_path: Path) -> None:
    """Division rounds towards 0, compared with Python's integers, as older versions of onnx's evaluator round down."""
    divisors = (
        [-7000, 200, 99, -100, 300, 127]
        if kind == "int16"
        else [-7, 2, 3, -1, 100, 127]
        if low
        else [7, 2, 3, 1, 100, 255]
    )
    model = network(kind, "y = Div(a, c)", "a", f"{kind}[6] c = {{{', '.join(map(str, divisors))}}}")
    onnx.save(model, tmp_path / "m.onnx")
    x = np.concatenate([frame["a"] for frame in frames(model, kind, 200)])
    exact = np.array(
        [
            [int(abs(v) // abs(d)) * (-1 if (v < 0) != (d < 0) else 1) for v, d in zip(row, divisors, strict=True)]
            for row in x.tolist()
        ]
    )
    assert (reference.evaluate(hlsgen.check(tmp_path / "m.onnx").graph, x) == exact.astype(kind)).all()


def test_casts(tmp_path: Path) -> None:
    """CastLike has the type that the file declares."""
    text = "c = CastLike(a, like) y = Less(c, b)"
    model = network("int8", text, constants="int16 like = {0}", out="bool")
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT16
    onnx.save(model, tmp_path / "m.onnx")
    samples = [{"a": frame["a"], "b": frame["b"].astype(np.int16) * 2} for frame in frames(model, "int8")]
    x = {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}
    assert (through(hlsgen.check(tmp_path / "m.onnx").graph, x) == executed(model, samples)).all()


@pytest.mark.parametrize(
    ("kind", "body", "code", "part"),
    [
        ("int32", "y = Max(a, b)", "HG033", "two integers of 32 bits"),
        ("uint32", "y = Mul(a, b)", "HG033", "64 bits"),
        ("int16", "y = BitwiseAnd(a, b)", "HG026", "int8 or uint8"),
        ("int8", "g = Greater(a, b) y = Greater(g, g)", "HG026", "booleans"),
        ("int8", "y = Xor(a, b)", "HG026", "Xor of int8 data"),
    ],
)
def test_refused(kind: str, body: str, code: str, part: str, tmp_path: Path) -> None:
    onnx.save(network(kind, body), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(tmp_path / "m.onnx")
    assert code in {d.code for d in caught.value.diagnostics}
    assert part in str(caught.value)


@pytest.mark.sim
def test_in_hardware(tmp_path: Path) -> None:
    """Sums of 33 bits and one bit of a comparison, certified."""
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> net (uint32[1, {SIZE}] a, uint32[1, {SIZE}] b) => '
        f"(uint32[1, {SIZE}] s, bool[1, {SIZE}] c) {{ s = Add(a, b) c = Less(a, b) }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build")
    assert hlsgen.certify(tmp_path / "build").ok
    samples = frames(model, "uint32", 8)
    outputs = hlsgen.run(
        tmp_path / "build", {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}, "icarus"
    )
    for n, name in enumerate("sc"):
        expected = np.concatenate([ReferenceEvaluator(model).run(None, frame)[n] for frame in samples])
        assert outputs[name].dtype == expected.dtype
        assert (outputs[name] == expected).all()


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("name", ["Add", "Less", "Mul", "Max", "logic", "BitwiseXor"])
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_verified(name: str, target: str, tmp_path: Path) -> None:
    kind, body, out = PAIRS[name]
    onnx.save(network(kind, body, out=out), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(target=target))
    assert hlsgen.certify(tmp_path / "build").ok
    assert hlsgen.verify(tmp_path / "build", frames=4).ok


def test_maximum_of_a_sum_that_wraps(tmp_path: Path) -> None:
    """Hardware has the codes of the exact sum, whose order differs; therefore the host computes the maximum."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 19]> g (int16[1,2] a, int16[1,2] b) => (int16[1,2] y) '
        "{ s = Add(a, b) y = Max(s, a) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    feeds = {"a": np.array([[32767, -5]], np.int16), "b": np.array([[32767, 3]], np.int16)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    assert np.array_equal(hlsgen.run(tmp_path / "out", feeds), expected)


def test_minimum_of_a_wide_input_is_refused(tmp_path: Path) -> None:
    """Its 32-bit number would enter the core as a float."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> net (int32[1, 6] a, int32[1, 6] b) => (int32[1, 1] m, bool[1, 6] g) '
        "<int64[1] axes = {1}> { m = ReduceMin(a, axes) c = Add(b, b) g = Greater(c, b) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG042 .*ReduceMin of int32 data, which only the host supports"):
        hlsgen.check(tmp_path / "m.onnx")


AFTER_A_HOST_STEP = [
    "c = Mul(m, k) y = Sub(c, b)",
    "c = Mul(m, b) y = Max(c, b)",
    "c = Add(b, m) e = Mul(c, k) y = Add(e, m)",
    "c = Mul(m, k) e = Relu(c) y = Mul(e, b)",
]


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("body", AFTER_A_HOST_STEP)
def test_integers_after_a_step_of_the_host(kind: str, body: str, tmp_path: Path) -> None:
    """They enter as float32, which represents the products of bytes exactly, and not the products of 16 bits."""
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> net ({kind}[1, 6] a, {kind}[1, 6] b) => ({kind}[1, 6] y) '
        f"<int64[1] axes = {{1}}, {kind}[1] k = {{100}}> {{ m = ReduceMin(a, axes) {body} }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    if "16" in kind:
        with pytest.raises(HlsgenError, match=f"HG042 .*ReduceMin of {kind} data, which only the host supports"):
            hlsgen.check(tmp_path / "m.onnx")
        return
    samples = frames(model, kind, 24)
    for frame in samples[::2]:
        frame["a"] = np.clip(frame["a"], 90, None)  # products that wrap
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build")
    outputs = hlsgen.run(
        tmp_path / "build", {name: np.concatenate([frame[name] for frame in samples]) for name in "ab"}
    )
    assert (outputs == executed(model, samples)).all()


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_a_sum_of_sums_that_wrap(target: str, tmp_path: Path) -> None:
    """The sum has 36 bits in hardware and 32 in the file."""
    model = network("int32", "s = Add(a, b) y = ReduceSum(s, axes)", constants="int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(target=target))
    assert hlsgen.certify(tmp_path / "build").ok
    samples = frames(model, "int32", 8)
    x = {k: np.concatenate([frame[k] for frame in samples]) for k in "ab"}
    assert (hlsgen.run(tmp_path / "build", x, "cpp" if target == "hls" else "icarus") == executed(model, samples)).all()
    if target == "verilog":
        assert hlsgen.verify(tmp_path / "build", ["icarus"], 3).ok
