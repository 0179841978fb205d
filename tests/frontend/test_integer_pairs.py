"""Arithmetic, comparisons and tables of declared integers, of one tensor and of two: as onnx's reference evaluator has them."""

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


def network(kind: str, body: str, inputs: str = "ab", given: str = "", out: str = "") -> onnx.ModelProto:
    """`body`: nodes that make y of a and b, `given`: declarations of constants, `out`: the type of y."""
    ends = ", ".join(f"{kind}[1, {SIZE}] {name}" for name in inputs)
    text = (
        f'<ir_version: 9, opset_import: ["" : 18]> net ({ends}) => ({out or kind}[1, {SIZE}] y) <{given}> {{ {body} }}'
    )
    return parse_model(text)


def frames(model: onnx.ModelProto, kind: str, count: int = 60) -> list[dict[str, Array]]:
    """Random numbers, the ends of the type, and equal ones."""
    info, rng = np.iinfo(kind), np.random.default_rng(0)
    found = []
    for n in range(count):
        x = rng.integers(info.min, info.max, (2, 1, SIZE), endpoint=True)
        x[:, 0, 0], x[:, 0, 1] = (info.min, info.max) if n % 2 else (info.max, info.min), x[0, 0, 1]
        found.append({end.name: part.astype(kind) for end, part in zip(model.graph.input, x, strict=False)})
    return found


def wanted(model: onnx.ModelProto, given: list[dict[str, Array]]) -> Array:
    return np.concatenate([ReferenceEvaluator(model).run(None, one)[0] for one in given])


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
    given = frames(model, kind)
    if name == "BitShift":
        given = [{"a": one["a"], "b": one["b"] & 7} for one in given]
    x = {k: np.concatenate([one[k] for one in given]) for k in "ab"}
    got = through(hlsgen.check(tmp_path / "m.onnx").graph, x)
    expected = wanted(model, given)
    assert got.dtype == expected.dtype
    assert (got == expected).all()
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
    """Nothing but the meaning of its codes is left to the host."""
    kind, body, constants = ONES[name]
    model = network(kind, body, "a", constants, "bool" if name == "And" else "")
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx")
    given = frames(model, kind, 200)
    got = reference.evaluate(build.graph, np.concatenate([one["a"] for one in given]))
    assert (got == wanted(model, given)).all()
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
    """In hardware, and of the data's type."""
    model = network(kind, f"y = {op}(a, axes)", "a", "int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    graph, given = hlsgen.check(tmp_path / "m.onnx").graph, frames(model, kind)
    got = reference.evaluate(graph, np.concatenate([one["a"] for one in given]))
    assert got.dtype == kind
    assert (got == wanted(model, given)).all()
    assert not graph.head


def test_extreme_that_the_host_finds(tmp_path: Path) -> None:
    """The smallest of sums of 32 bits: an integer, in a column of which float32 has not all."""
    model = network("int32", "s = Add(a, b) y = ReduceMin(s, axes)", given="int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    given = frames(model, "int32")
    x = {k: np.concatenate([one[k] for one in given]) for k in "ab"}
    got = through(hlsgen.check(tmp_path / "m.onnx").graph, x)
    assert got.dtype == np.int32
    assert (got == wanted(model, given)).all()


def test_functions_with_an_output_each(tmp_path: Path) -> None:
    """Hardware, as a single one is."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> net (int16[1, 6] a, int8[1, 6] b) => (int16[1, 6] r, bool[1, 6] g, int8[1, 6] b2) '
        "<int8 low = {-5}> { r = Relu(a) g = Greater(b, low) b2 = Identity(b) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    graph = hlsgen.check(tmp_path / "m.onnx").graph
    given = [
        {k: v.astype(t) for (k, v), t in zip(one.items(), ("int16", "int8"), strict=True)}
        for one in frames(model, "int8")
    ]
    x = {k: np.concatenate([one[k] for one in given]) for k in "ab"}
    codes = reference.run_output(graph, reference.encode_input(graph, reference.pack_inputs(graph, x)))
    for n, got in enumerate(reference.named_outputs(graph, codes).values()):
        expected = np.concatenate([ReferenceEvaluator(model).run(None, one)[n] for one in given])
        assert got.dtype == expected.dtype
        assert (got == expected).all()
    assert {type(step.op).__name__ for end in graph.outputs for step in end.steps} <= {"Cast"}


@pytest.mark.parametrize(("kind", "low"), [("int16", True), ("uint8", False), ("int8", True)])
def test_division(kind: str, low: bool, tmp_path: Path) -> None:
    """Towards 0, where onnx's reference evaluator of older versions rounds down: by Python's own numbers."""
    divisors = (
        [-7000, 200, 99, -100, 300, 127]
        if kind == "int16"
        else [-7, 2, 3, -1, 100, 127]
        if low
        else [7, 2, 3, 1, 100, 255]
    )
    model = network(kind, "y = Div(a, c)", "a", f"{kind}[6] c = {{{', '.join(map(str, divisors))}}}")
    onnx.save(model, tmp_path / "m.onnx")
    x = np.concatenate([one["a"] for one in frames(model, kind, 200)])
    exact = np.array(
        [
            [int(abs(v) // abs(d)) * (-1 if (v < 0) != (d < 0) else 1) for v, d in zip(row, divisors, strict=True)]
            for row in x.tolist()
        ]
    )
    assert (reference.evaluate(hlsgen.check(tmp_path / "m.onnx").graph, x) == exact.astype(kind)).all()


def test_casts(tmp_path: Path) -> None:
    """CastLike takes its type from the file; BitCast keeps the bits."""
    text = "c = CastLike(a, like) y = Less(c, b)"
    model = network("int8", text, given="int16 like = {0}", out="bool")
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT16
    onnx.save(model, tmp_path / "m.onnx")
    given = [{"a": one["a"], "b": one["b"].astype(np.int16) * 2} for one in frames(model, "int8")]
    x = {k: np.concatenate([one[k] for one in given]) for k in "ab"}
    assert (through(hlsgen.check(tmp_path / "m.onnx").graph, x) == wanted(model, given)).all()


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
    """Sums of 33 bits, and one bit of a comparison; certified."""
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> net (uint32[1, {SIZE}] a, uint32[1, {SIZE}] b) => '
        f"(uint32[1, {SIZE}] s, bool[1, {SIZE}] c) {{ s = Add(a, b) c = Less(a, b) }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build")
    assert hlsgen.certify(tmp_path / "build").ok
    given = frames(model, "uint32", 8)
    got = hlsgen.run(tmp_path / "build", {k: np.concatenate([one[k] for one in given]) for k in "ab"}, "icarus")
    for n, name in enumerate("sc"):
        expected = np.concatenate([ReferenceEvaluator(model).run(None, one)[n] for one in given])
        assert got[name].dtype == expected.dtype
        assert (got[name] == expected).all()


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


def test_the_larger_of_a_sum_that_wraps(tmp_path: Path) -> None:
    """Its codes are those of the exact sum, whose order is another one: the host has it."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 19]> g (int16[1,2] a, int16[1,2] b) => (int16[1,2] y) { s = Add(a, b) y = Max(s, a) }'
    )
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    feeds = {"a": np.array([[32767, -5]], np.int16), "b": np.array([[32767, 3]], np.int16)}
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    assert np.array_equal(hlsgen.run(tmp_path / "out", feeds), wanted)


def test_extreme_of_an_input_that_only_hosts_have(tmp_path: Path) -> None:
    """Beside hardware its number of 32 bits would go through the core's port as a float."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> net (int32[1, 6] a, int32[1, 6] b) => (int32[1, 1] m, bool[1, 6] g) '
        "<int64[1] axes = {1}> { m = ReduceMin(a, axes) c = Add(b, b) g = Greater(c, b) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG042 .*ReduceMin of int32 data, which only the host supports"):
        hlsgen.check(tmp_path / "m.onnx")


BEHIND_A_HOST_STEP = [
    "c = Mul(m, k) y = Sub(c, b)", "c = Mul(m, b) y = Max(c, b)", "c = Add(b, m) e = Mul(c, k) y = Add(e, m)",
    "c = Mul(m, k) e = Relu(c) y = Mul(e, b)",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("body", BEHIND_A_HOST_STEP)
def test_numbers_behind_a_step_of_the_host(kind: str, body: str, tmp_path: Path) -> None:
    """They enter as float32, which has the exact products of bytes, and none of those of 16 bits."""
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> net ({kind}[1, 6] a, {kind}[1, 6] b) => ({kind}[1, 6] y) '
        f"<int64[1] axes = {{1}}, {kind}[1] k = {{100}}> {{ m = ReduceMin(a, axes) {body} }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    if "16" in kind:
        with pytest.raises(HlsgenError, match=f"HG042 .*ReduceMin of {kind} data, which only the host supports"):
            hlsgen.check(tmp_path / "m.onnx")
        return
    given = frames(model, kind, 24)
    for frame in given[::2]:
        frame["a"] = np.clip(frame["a"], 90, None)  # products that wrap
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build")
    got = hlsgen.run(tmp_path / "build", {name: np.concatenate([one[name] for one in given]) for name in "ab"})
    assert (got == wanted(model, given)).all()


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_a_sum_of_sums_that_wrap(target: str, tmp_path: Path) -> None:
    """In hardware 36 bits, in the file 32; certified."""
    model = network("int32", "s = Add(a, b) y = ReduceSum(s, axes)", given="int64[1] axes = {1}")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(target=target))
    assert hlsgen.certify(tmp_path / "build").ok
    given = frames(model, "int32", 8)
    x = {k: np.concatenate([one[k] for one in given]) for k in "ab"}
    assert (hlsgen.run(tmp_path / "build", x, "cpp" if target == "hls" else "icarus") == wanted(model, given)).all()
    if target == "verilog":
        assert hlsgen.verify(tmp_path / "build", ["icarus"], 3).ok
