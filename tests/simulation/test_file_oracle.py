"""The file in an independent executor: wrong imports are found, float rounding is explained, nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Net, newer
from numpy.typing import NDArray
from onnx import TensorProto
from qdq_graphs import QdqGraph
from typer.testing import CliRunner

import hlsgen
import hlsgen.driver.compile
from hlsgen import ir
from hlsgen.cli import app
from hlsgen.cli.verdict_text import print_oracle
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.options import parse_input
from hlsgen.frontend import import_model
from hlsgen.installation import install_command
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import compare, model_inputs
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.ops import Div, IntQuant
from hlsgen.numerics.fixed import Rounding
from hlsgen.passes import lower
from hlsgen.simulation import file_oracle, host_rounding, oracles
from hlsgen.simulation.directed import directed
from hlsgen.simulation.explanation import REASONS
from hlsgen.simulation.file_inputs import between_codes
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.oracles import Unable
from hlsgen.simulation.whole_file import open_file

Array = NDArray[Any]
SUM, BIAS = REASONS["sum"], REASONS["bias"]


def imported(proto: onnx.ModelProto, folder: Path, runtime: str = "auto") -> tuple[Path, ir.Model]:
    path, problems = folder / "model.onnx", Collector()
    onnx.save(proto, path)
    model = import_model(path, problems, runtime=runtime)
    problems.finish()
    assert model is not None
    return path, model


def lowered(model: ir.Model) -> ir.Graph:
    return lower(model, parse_input(None), Collector())


def frames_for(graph: ir.Graph, count: int = 12) -> Array:
    value, rng = graph.input, np.random.default_rng(5)
    drawn = rng.integers(value.type.lo, value.type.hi + 1, (count, *value.shape))
    return np.concatenate([directed(graph, count // 2, 1), drawn])


def compared(
    proto: onnx.ModelProto, folder: Path, oracle: str = "auto", codes: Array | None = None, runtime: str = "auto"
) -> OracleVerdict:
    path, model = imported(proto, folder, runtime)
    graph = lowered(model)
    return compare_file(path, model, graph, frames_for(graph) if codes is None else codes, oracle)


# --------------------------------------------------------------------------- wrong imports


def network() -> onnx.ModelProto:
    """One of each operator that is seeded below. All scales are powers of two, so that floats are exact."""
    n = Net((1, 2, 5, 5)).quant(0.25, 0.0, 4.0, name="q0")
    n.then("Pad", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), 0.75, name="pad").quant(0.25, 0.0, 4.0, name="q1")
    weight = (np.arange(36).reshape(2, 2, 3, 3) % 7 - 3).astype(np.float32) / 4
    data = n.last
    n.node("IntQuant", weight, 0.25, 0.0, 4.0, domain="qonnx.custom_op.general", name="weights")
    n.node("Conv", data, n.last, name="conv", kernel_shape=[3, 3]).quant(0.25, 1.0, 6.0, name="q2")
    return n.then("Mul", 0.25, name="mul").then("Sub", np.float32(0.5), name="end").model()


def wrong(model: ir.Model, name: str, change: Callable[[Any], Any]) -> ir.Model:
    """The model with a changed operator in the steps of this name."""
    steps = tuple(replace(s, op=change(s.op)) if s.name == name else s for s in model.steps)
    assert any(new.op is not old.op for new, old in zip(steps, model.steps, strict=True))
    return replace(model, steps=steps)


def changing(kind: type[Any], **changes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that changes fields of operators of one kind."""
    return lambda op: (
        replace(op, **{name: change(getattr(op, name)) for name, change in changes.items()})
        if isinstance(op, kind)
        else op
    )


def one_more(weight: Array) -> Array:
    changed = weight.copy()
    changed.flat[7] += 1
    return changed


#: Seeded errors of the import: (node whose tensor shows it, seeded node, change).
SEEDS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "rounding mode": ("q2", "q2", changing(IntQuant, mode=lambda _: Rounding.FLOOR)),
    "rounding mode of the first quantizer": ("q0", "q0", changing(IntQuant, mode=lambda _: Rounding.HALF_UP)),
    "axes of weights": ("q2", "conv", changing(ir.Conv, weight=lambda w: w.transpose(0, 2, 1, 3).copy())),
    "narrow": ("q0", "q0", changing(IntQuant, type=lambda t: replace(t, lo=t.lo + 1))),
    "a weight off by one": ("q2", "conv", changing(ir.Conv, weight=one_more)),
    "value of the border": ("q1", "pad", changing(ir.Pad, value=lambda v: v + 0.25)),
    "scale of the output": ("end", "mul", changing(ir.ops.Mul, value=lambda v: v * 2)),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_import_is_found(seed: str, tmp_path: Path) -> None:
    """Model and Graph agree: only the file shows the error. The first node that shows it is named."""
    shown, name, change = SEEDS[seed]
    path, model = imported(network(), tmp_path)
    bad = wrong(model, name, change)
    graph = lowered(bad)
    codes = frames_for(graph)
    assert compare(bad, graph, codes).ok
    verdict = compare_file(path, bad, graph, codes)
    assert not verdict.ok
    assert verdict.ran.startswith("qonnx ")
    assert verdict.diagnostics[0].code == "HG058"
    assert verdict.diagnostics[0].node == shown
    assert not verdict.explained


def test_the_right_import_is_equal(tmp_path: Path) -> None:
    verdict = compared(network(), tmp_path)
    assert verdict.ok
    assert not verdict.explained
    assert not verdict.left
    assert verdict.compared == 4  # q0, q1, q2, the output


def test_a_graph_that_differs_from_its_model_is_found(tmp_path: Path) -> None:
    """The Graph's output is compared, not only the Model's: after the last layer only the Graph is wrong."""
    path, model = imported(network(), tmp_path)
    bad = lowered(wrong(model, "mul", changing(ir.ops.Mul, value=lambda v: v * 2)))
    verdict = compare_file(path, model, bad, frames_for(bad))
    assert [d.node for d in verdict.diagnostics] == ["end"]


def test_a_wrong_weight_among_float_scales_is_found(tmp_path: Path) -> None:
    """Floats round, too, but the exact sums of the file do not give the wrong codes."""
    path, model = imported(ties("ROUND"), tmp_path)
    bad = wrong(model, "fc", changing(ir.MatMul, weight=one_more))
    graph = lowered(bad)
    verdict = compare_file(path, bad, graph, frames_for(graph))
    assert verdict.unexplained
    assert "exact sums" in verdict.diagnostics[0].message


# --------------------------------------------------------------------------- explanations


def ties(mode: str) -> onnx.ModelProto:
    """Sums of multiples of 0.1 in steps of a half: every second sum is a tie, but float32 sums are not."""
    weight = (np.random.default_rng(0).integers(-7, 8, (32, 4)) / 2).astype(np.float32)
    n = Net((1, 32)).quant(0.1, 0.0, 4.0, name="q0").linear(4, 32, weight=weight, scale=0.5, name="fc")
    return n.quant(0.1, 0.0, 8.0, rounding_mode=mode, name="q1").model()


def test_an_exact_tie_is_explained(tmp_path: Path) -> None:
    verdict = compared(ties("ROUND"), tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {SUM}
    for case in verdict.cases[SUM]:
        exact, ours = Fraction(case.exact), np.round(float(case.ours) / 0.1)
        assert exact.denominator == 2
        assert ours == np.round(float(exact))  # of two codes the even one
        assert 0 < abs(Fraction(case.rounded) - exact) < 1e-4
        assert np.float32(case.ours) != np.float32(case.executor)


def test_a_product_of_two_tensors_is_explained(tmp_path: Path) -> None:
    """Both factors are computed. Sums are multiples of 0.01 in steps of 0.02: every second one is nearly a tie."""
    n = Net((1, 4, 8)).quant(0.1, 0.0, 4.0, name="q0")
    left_factor = n.last
    n.then("Transpose", perm=[0, 2, 1], name="turn")
    n.node("MatMul", left_factor, n.last, name="product").quant(0.02, 0.0, 8.0, name="q1")
    verdict = compared(n.model(), tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {SUM}
    assert all(abs(Fraction(c.exact) % 1 - Fraction(1, 2)) < 1e-4 for c in verdict.cases[SUM])


def test_an_order_of_additions_is_explained(tmp_path: Path) -> None:
    """The thresholds are next to the exact sum, on the executor's side of it."""
    weight = (np.random.default_rng(0).integers(-7, 8, (32, 1)) / 2).astype(np.float32)
    n = Net((1, 32)).quant(0.1, 0.0, 4.0, name="q0").linear(1, 32, weight=weight, scale=0.5, name="fc")
    path, model = imported(n.model(), tmp_path)
    graph = lowered(model)
    codes = frames_for(graph)
    without_thresholds = compare_file(path, model, graph, codes)
    assert without_thresholds.explained.keys() == {SUM}
    pairs = [(float(case.ours), float(case.executor)) for case in without_thresholds.cases[SUM]]
    steps = np.float32(sorted({max(pair) for pair in pairs}))
    n.then("MultiThreshold", steps.reshape(1, -1), domain="qonnx.custom_op.general", name="q1", out_dtype="UINT4")
    verdict = compared(n.model(), tmp_path, codes=codes)
    assert verdict.ok
    assert verdict.explained.get(SUM, 0) > 0
    for case in verdict.cases[SUM]:
        ours, theirs = np.float32(float(Fraction(case.exact))), np.float32(case.rounded)
        assert ours != theirs
        assert (steps <= ours).sum() == float(case.ours)
        assert (steps <= theirs).sum() == float(case.executor)


def test_sums_of_counts_are_explained(tmp_path: Path) -> None:
    """The exact numbers after MultiThreshold are counts times a scale, and a bias."""
    weight = (np.random.default_rng(0).integers(-7, 8, (32, 4)) / 2).astype(np.float32)
    n = Net((1, 32)).quant(0.5, 0.0, 4.0, name="q0")
    steps = np.float32([[-2, -0.5, 0.25, 1, 3]])
    n.then("MultiThreshold", steps, domain="qonnx.custom_op.general", out_dtype="INT4", out_scale=0.1, out_bias=-0.1)
    verdict = compared(n.linear(4, 32, weight=weight, scale=0.5, name="fc").model(), tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {SUM}


def averages_of_codes() -> onnx.ModelProto:
    """Averages of four codes with the scale of the result: every fourth one is a tie, where onnxruntime sums floats."""
    g = QdqGraph(np.random.default_rng(4))
    meaning = (0.0033505924, 7, "uint8")
    average = g.node("AveragePool", g.pair("x", meaning), kernel_shape=[2, 2], strides=[2, 2])
    return g.model(g.pair(average, meaning), (1, 2, 12, 12), "float32", "float32")


def test_an_average_of_codes_is_explained(tmp_path: Path) -> None:
    verdict = compared(averages_of_codes(), tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {SUM}
    assert verdict.integers_differ == verdict.explained[SUM]
    assert not verdict.floats


def test_a_wrong_average_of_codes_is_not_explained(tmp_path: Path) -> None:
    path, model = imported(averages_of_codes(), tmp_path)
    codes = frames_for(lowered(model))
    shifted = tuple(
        replace(s, op=replace(s.op, value=s.op.value * np.float32(0.99)))
        if isinstance(s.op, Div) and s.op.value.max() == 4
        else s
        for s in model.steps
    )
    bad = replace(model, steps=shifted)
    assert not compare_file(path, bad, lowered(bad), codes).ok


def test_sums_of_16_bit_images_are_explained(tmp_path: Path) -> None:
    """Their integers exceed those that a float32 convolution computes without rounding."""
    g, rng = QdqGraph(np.random.default_rng(4)), np.random.default_rng(5)
    data = g.pair("x", (0.0001, 32000, "uint16"))
    weights = g.const(rng.integers(-127, 128, (3, 8, 3, 3)), "int8")
    weights = g.node("DequantizeLinear", weights, g.const(0.013), g.const(0, "int8"))
    sums = g.node("Conv", data, weights, g.const(rng.normal(0, 1, 3)), kernel_shape=[3, 3])
    model = g.model(g.pair(sums, (0.001, 32000, "uint16")), (1, 8, 8, 8), "float32", "float32")
    model.opset_import[0].version = 21
    verdict = compared(model, tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {BIAS}


def test_sums_of_numbers_quantized_by_arithmetic_are_explained(tmp_path: Path) -> None:
    """Whole numbers times a scale are known exactly, without a quantizer in the file."""
    g, rng = QdqGraph(np.random.default_rng(4)), np.random.default_rng(5)
    scale = g.const(0.031)
    codes = g.node("Clip", g.node("Round", g.node("Div", "x", scale)), g.const(-128), g.const(127))
    weights = g.node("Mul", g.const(rng.integers(-127, 128, (16, 5))), g.const(0.013))
    model = g.model(g.node("MatMul", g.node("Mul", codes, scale), weights), (1, 16), "float32", "float32")
    verdict = compared(model, tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {SUM}


def test_functions_are_explained(tmp_path: Path) -> None:
    """A library's Sigmoid is 0 where the real function, rounded once, is not yet."""
    n = Net((1, 40)).quant(0.25, 0.0, 8.0, name="q0").then("Sigmoid", name="sigmoid")
    verdict = compared(n.model(), tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {"last place of Sigmoid"}


def test_a_sum_beyond_rounding_is_not_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor loses a product: hlsgen is right, but float32 rounding does not explain the difference."""
    real = oracles.by_onnxruntime

    def loses(node: onnx.NodeProto, arrays: list[Array], opsets: dict[str, int]) -> list[Array]:
        results = real(node, arrays, opsets)
        return [results[0] + np.float32(0.05)] if node.op_type == "MatMul" else results

    monkeypatch.setattr(oracles, "by_onnxruntime", loses)
    verdict = compared(ties("ROUND"), tmp_path)
    assert not verdict.ok
    assert not verdict.explained
    assert "rounding explains at most" in verdict.diagnostics[0].message


def test_changes_by_the_optimizer_are_no_explanation(tmp_path: Path) -> None:
    """onnxruntime's integer layer adds the codes of an int32 bias to the sums, for any scale that the file gives them.

    A build for that runtime computes the same. A build for a runtime that evaluates the nodes of the file differs.
    """
    rng = np.random.default_rng(2)
    n = Net((1, 8), TensorProto.UINT8)
    data = n.then("DequantizeLinear", np.float32(0.02), np.array(128, np.uint8)).last
    n.node("DequantizeLinear", rng.integers(-99, 99, (8, 4)).astype(np.int8), np.float32(0.03), np.array(0, np.int8))
    sums = n.node("MatMul", data, n.last).last
    bias = rng.integers(200, 900, 4).astype(np.int32)
    n.node("DequantizeLinear", bias, np.float32(0.02) * np.float32(0.03) * np.float32(2), np.array(0, np.int32), axis=0)
    proto = n.node("Add", sums, n.last).then("QuantizeLinear", np.float32(0.25), np.array(100, np.uint8)).model()
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    assert compared(proto, tmp_path).outputs_differ == 0
    verdict = compared(proto, tmp_path, "onnxruntime", runtime="onnx")
    assert not verdict.ok
    assert verdict.unexplained > 0
    assert verdict.ran.startswith("onnxruntime ")
    assert not verdict.explained


@pytest.mark.parametrize("terms", [2, 3])
@pytest.mark.parametrize(
    "op, factors",
    [("SkipLayerNormalization", ["gamma", "beta"]), ("SkipSimplifiedLayerNormalization", ["gamma"])],
)
def test_normalized_sums_are_near_the_exact_one(op: str, factors: list[str], terms: int) -> None:
    """Also if a third term cancels the others. Another epsilon is noticed."""
    rng = np.random.default_rng(4)
    names = ["a", "b", *factors, *(["bias"] if terms == 3 else [])]
    node = onnx.helper.make_node(op, names, ["y"], domain="com.microsoft", epsilon=1e-5)
    arrays = [rng.normal(0, 1, (1, 6, 16) if name in "ab" else 16).astype(np.float32) for name in names]
    if terms == 3:
        arrays[1][0, :3] = arrays[-1] * np.float32(-0.9999) - arrays[0][0, :3]
    opsets = {"": 17, "com.microsoft": 1}
    exact, reach = host_rounding.exact_result(node, arrays, opsets)
    executed = oracles.run_node("onnxruntime", node, arrays, opsets)[0]
    assert (np.abs(executed - exact) <= reach).all()
    assert reach[0, 3:].max() < 1e-3
    del node.attribute[:]
    node.attribute.append(onnx.helper.make_attribute("epsilon", 1e-3))
    other_epsilon = oracles.run_node("onnxruntime", node, arrays, opsets)[0]
    assert (np.abs(other_epsilon - exact) > reach).any()


# --------------------------------------------------------------------------- inputs, outputs, executors


def test_stimuli_lie_between_codes(tmp_path: Path) -> None:
    """Otherwise the first quantizer would have nothing to round."""
    graph = lowered(imported(network(), tmp_path)[1])
    x = np.zeros((4, *graph.model.input_shape), np.float32)
    moved = between_codes(x, graph, 1)
    assert not moved[::2].any()
    distances = np.abs(moved[1::2]).ravel()
    sides = {np.nextafter(np.float32(d), np.float32(side)) for d in (0.0625, 0.125) for side in (0, 1)}
    assert sides | {0.0625, 0.125} <= set(distances)
    assert (distances[np.abs(distances) < 0.06] < 2e-38).all()


def test_codes_of_integers_come_back(tmp_path: Path) -> None:
    """Numbers for a file whose first quantizer produces integers are numbers that quantize to the codes, not the
    codes."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 19]> net (float[1, 9] x) => (float[1, 9] y) '
        "<float s = {0.02}, int8 z = {-3}, float t = {0.5}> "
        "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) r = Relu(d) "
        "p = QuantizeLinear(r, t, z) y = DequantizeLinear(p, t, z) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="codes"))
    codes = np.arange(-128, 124).reshape(28, *build.graph.input.shape)
    x = model_inputs(build.model, build.graph, codes)
    assert (reference.encode_input(build.graph, x) == codes).all()
    moved = between_codes(x, build.graph, 1)
    assert (moved[::2] == x[::2]).all()
    off = (np.round(np.abs(moved - x) / 0.02, 2)[1::2])[np.abs(moved[1::2]) > 1e-37]
    assert set(off.ravel()) == {0.25, 0.5}


def test_host_functions_are_near_the_exact_result(tmp_path: Path) -> None:
    """Softmax after the last layer: both results are near the exact one. A different function is not."""
    net = Net((1, 8)).quant(0.3, name="q0").then("Softmax", axis=-1, name="soft").model()
    verdict = compared(net, tmp_path)
    assert verdict.ok
    assert verdict.explained.keys() == {"last place of Softmax"}
    case = verdict.cases["last place of Softmax"][0]
    assert abs(float(case.exact) - float(case.ours)) < 1e-7
    path, model = imported(net, tmp_path)
    net.graph.node[-1].op_type = "LogSoftmax"
    onnx.save(net, path)
    graph = lowered(model)
    verdict = compare_file(path, model, graph, frames_for(graph))
    assert not verdict.ok
    assert verdict.diagnostics[0].node == "soft"


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_models_with_two_inputs_are_compared(op: str, tmp_path: Path) -> None:
    n = Net((1, 40), TensorProto.INT8)
    n.inputs.append(onnx.helper.make_tensor_value_info("y", TensorProto.INT8, (1, 40)))
    scales = [np.float32(0.1), np.array(1, np.int8)]
    n.node(op, "x", *scales, "y", *scales, np.float32(0.2), np.array(0, np.int8), domain="com.microsoft", name="both")
    n.opsets["com.microsoft"] = 1
    proto = n.model()
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT8
    verdict = compared(proto, tmp_path)
    assert verdict.ok
    assert verdict.ran
    assert verdict.elements > 40


def test_float32_ports_are_compared(tmp_path: Path) -> None:
    path, model = imported(Net((1, 16)).quant(0.3, 1.0, 5.0, name="q").model(), tmp_path)
    graph = lower(model, parse_input("float32"), Collector())
    values = np.random.default_rng(0).standard_normal((8, 1, 16)) * 3
    codes = ir.evaluate.float_to_key(np.float32(values))
    codes[0, 0, :2] = ir.evaluate.float_to_key(np.float32([np.inf, -np.inf]))
    assert compare_file(path, model, graph, codes).ok
    bad = wrong(model, "q", changing(IntQuant, mode=lambda _: Rounding.FLOOR))
    assert not compare_file(path, bad, lower(bad, parse_input("float32"), Collector()), codes).ok


def test_an_operator_that_no_executor_has() -> None:
    """The reason is one line, without the executor's own advice."""
    node = onnx.helper.make_node("RequantizedGemm", ["x", "m", "a"], ["y"], div=4)
    for name in ("onnx", "onnxruntime", "qonnx"):
        with pytest.raises(oracles.Unable, match=r"^RequantizedGemm: no operator of this executor$"):
            oracles.run_node(name, node, [np.zeros((1, 4), np.int32)] * 3, {"": 13})


def test_reasons_name_no_source_of_the_executor() -> None:
    place = (
        "/onnxruntime_src/onnxruntime/core/graph/load.h:46 void onnxruntime::check(const std::map<int (*)(), int>&) "
    )
    error = RuntimeError(f"[ONNXRuntimeError] : 1 : FAIL : failed:{place}The opset (99) is too new.\n")
    assert oracles.one_line(error) == "RuntimeError: failed:The opset (99) is too new."


def test_domains_of_a_file_are_not_imported() -> None:
    """qonnx would import the module that a domain names."""
    node = onnx.helper.make_node("IntQuant", ["x", "s", "z", "b"], ["y"], domain="this.module.is.not.there")
    arrays = [np.float32([0.3]), np.float32(0.25), np.float32(0), np.float32(4)]
    assert oracles.run_node("qonnx", node, arrays, {})[0] == 0.25
    node = onnx.helper.make_node("Other", ["x"], ["y"], domain="antigravity")
    with pytest.raises(oracles.Unable):
        oracles.run_node("qonnx", node, arrays[:1], {})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of one quantizer, half of the time with a scale that the import must not lose."""
    folder = tmp_path_factory.mktemp("small")
    onnx.save(quantizer(), folder / "model.onnx")
    hlsgen.build(folder / "model.onnx", folder / "out")
    return folder / "out"


@pytest.mark.parametrize("failing", ["not finite", "finite"])
@pytest.mark.parametrize("good", [True, False])
def test_frames_with_nan_or_infinities_are_left_out(
    failing: str, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A runtime may fail on them, but on no other frame. The others are compared, and keep their numbers."""
    proto = Net((1, 16)).then("Log").quant(0.03, 1.0, 5.0, name="q").model()
    path, model = imported(proto, tmp_path)
    if not good:
        model = wrong(model, "q", changing(IntQuant, mode=lambda _: Rounding.FLOOR))
    graph = lower(model, parse_input("float32"), Collector())
    values = np.random.default_rng(0).uniform(0.8, 1.2, (8, 1, 16)).astype(np.float32)
    values[0, 0, 3], values[5, 0, 1] = 0, -1

    class Strict(type(open_file(proto, "qonnx", {}))):  # type: ignore[misc]
        def run(self, feeds: Any) -> Any:
            if all((x > 0).all() for x in feeds.values()) == (failing == "finite"):
                raise Unable("Cast: cannot convert float NaN to integer")
            return super().run(feeds)

    monkeypatch.setattr(file_oracle, "open_file", Strict)
    verdict = compare_file(path, model, graph, float_to_key(values))
    if failing == "finite":
        assert (verdict.ran, verdict.frames, verdict.ok) == ("", 0, False)
        assert "could not run it: Cast" in verdict.reason
        return
    assert (verdict.frames, verdict.left_out, verdict.ok) == (6, 2, good)
    assert verdict.outputs == 6 * 16
    assert verdict.left_out_because == "Cast: cannot convert float NaN to integer"
    assert {0, 5}.isdisjoint(case.frame for case in verdict.cases.get("unexplained", []))
    assert good or verdict.cases["unexplained"][0].frame == 1
    print_oracle(verdict)
    line = "  not compared: 2 frames with NaN or infinities: Cast: cannot convert float NaN to integer"
    assert line in capsys.readouterr().out


def quantizer() -> onnx.ModelProto:
    return (
        Net((1, 4))
        .quant(0.25, 0.0, 4.0, name="q0")
        .then("Mul", 0.5, name="mul")
        .quant(0.25, 1.0, 3.0, name="q1")
        .model()
    )


@pytest.mark.sweep
def test_a_missing_executor_fails_the_verification(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build is verified without a comparison only if --oracle none requests that."""
    monkeypatch.setitem(oracles.PACKAGES, "qonnx", ("no_such_package",))
    assert hlsgen.verify(small, [], oracle="none").ok
    verdict = hlsgen.verify(small, [])
    assert not verdict.ok
    assert [d.code for d in verdict.diagnostics] == ["HG059"]
    assert verdict.oracle.reason == f"qonnx is not installed; {install_command('oracle')}"
    with pytest.raises(HlsgenError, match=r"HG059 qonnx: is not installed\. pip install .*\[oracle\]'"):
        hlsgen.verify(small, [], oracle="qonnx")
    with pytest.raises(HlsgenError, match="HG040 --oracle: 'brevitas'"):
        hlsgen.verify(small, [], oracle="brevitas")


def test_an_executor_that_cannot_run_the_file_fails_the_verification(small: Path) -> None:
    """If an executor is requested by name, this is a failure; the other checks are made."""
    verdict = hlsgen.verify(small, [], oracle="onnx")
    assert not verdict.ok
    assert verdict.model.ok
    assert verdict.oracle.reason.startswith("onnx could not run")
    assert [d.code for d in verdict.diagnostics] == ["HG059"]


@pytest.mark.sweep
@pytest.mark.parametrize("good", [True, False])
def test_verify_prints_the_comparison_with_the_file(
    good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text and as JSON; a wrong import in both build and verify is found."""
    real = hlsgen.driver.compile.import_model

    def seeded(*arguments: Any, **options: Any) -> ir.Model | None:
        model = real(*arguments, **options)
        assert model is not None
        return model if good else wrong(model, "q1", changing(IntQuant, mode=lambda _: Rounding.FLOOR))

    monkeypatch.setattr(hlsgen.driver.compile, "import_model", seeded)
    monkeypatch.setattr("hlsgen.simulation.simulators.simulators_of", lambda build: [])
    onnx.save(quantizer(), tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out")
    words = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    data = json.loads(CliRunner().invoke(app, ["verify", str(tmp_path / "out"), "--json"]).stdout)
    assert words.exit_code == (0 if good else 1)
    assert data["ok"] is good
    assert data["oracle"]["ok"] is good
    assert data["oracle"]["compared"] == 2
    assert data["model"]["ok"]
    if good:
        assert f"file: equal, {data['oracle']['frames']} frames in qonnx" in words.output
        assert "2 tensors, 0 differences" in words.output
        none = CliRunner().invoke(app, ["verify", str(tmp_path / "out"), "--oracle", "none"])
        assert none.exit_code == 0
        assert "file:" not in none.output
    else:
        assert "HG058 q1: element" in words.output
        assert data["diagnostics"][0]["code"] == "HG058"
        assert "file: different" in words.output
        assert data["oracle"]["cases"]["unexplained"][0]["node"] == "q1"


#: Rows of codes with scale 0.05. onnxruntime's float32 Softmax rounds some elements to the other side of a tie.
SOFTMAX_ROWS = [
    [31, -6, 14, -9, -11, 17, 18, 18, -6, -7, -7, 15, -14, 10, 9, -26],
    [-7, -51, -11, -23, -37, -7, -13, 15, 33, -3, 26, 12, 10, -11, 29, -6],
    [50, 18, -10, 29, 1, -17, 31, 29, -4, 15, -13, 0, -5, -50, -19, 22],
]


@pytest.mark.parametrize("factor", [None, 0.5])
def test_softmax_is_explained(factor: float | None, tmp_path: Path) -> None:
    """By its exact scores. A factor of 1/2 and codes of twice the scale give the same scores."""
    net = Net((1, 3, 16)).quant(0.05 if factor is None else 0.1, bits=8.0, name="q0")
    net = net if factor is None else net.then("Mul", np.float32(factor), name="half")
    model = newer(net.then("Softmax", axis=-1, name="soft").quant(1 / 300, bits=8.0, signed=0, name="q1").model())
    x = np.array(SOFTMAX_ROWS, np.float32).reshape(1, 1, 3, 16) * np.float32(0.05 if factor is None else 0.1)
    verdict = compared(model, tmp_path, "qonnx", float_to_key(x))
    assert verdict.explained.keys() == {"last place of Softmax"}
    assert verdict.explained["last place of Softmax"] >= 3
    assert not verdict.unexplained
    case = verdict.cases["last place of Softmax"][0]
    assert case.node == "q1"
    assert abs(Fraction(case.exact) % 1 - Fraction(1, 2)) < 1e-4
