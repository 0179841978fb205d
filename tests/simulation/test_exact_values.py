"""Float differences between sums in a file and in its executors are explained; other differences are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from residual_nets import Branchy, blocks, channels, u_net

from hlsgen import ir
from hlsgen.diagnostics import Collector
from hlsgen.driver.options import parse_input
from hlsgen.frontend import import_model
from hlsgen.interpreter.equivalence import compare
from hlsgen.ir.ops import Requantize
from hlsgen.passes import lower
from hlsgen.simulation.defined_operators import requant_shift
from hlsgen.simulation.directed import directed
from hlsgen.simulation.exact_values import rounded_sum
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict

Array = NDArray[Any]


def compared(
    proto: onnx.ModelProto, folder: Path, change: Callable[[ir.Op], ir.Op] = lambda op: op, count: int = 16
) -> OracleVerdict:
    """The verdict on a file with operators that are imported with a change; Model and Graph agree on them."""
    onnx.save(proto, folder / "m.onnx")
    model = import_model(folder / "m.onnx", Collector())
    assert model is not None
    model = replace(model, steps=tuple(replace(s, op=change(s.op)) for s in model.steps))
    graph = lower(model, parse_input(None), Collector())
    value, rng = graph.input, np.random.default_rng(5)
    random_codes = rng.integers(value.type.lo, value.type.hi + 1, (count, *value.shape))
    codes = np.concatenate([directed(graph, count // 2, 1), random_codes])
    equivalence = compare(model, graph, codes)
    assert equivalence.ok, equivalence.difference
    return compare_file(folder / "m.onnx", model, graph, codes)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "make, seeds", [(blocks, (0, 7)), (u_net, (3, 5, 6)), (channels, (1, 6))], ids=["blocks", "u-nets", "channels"]
)
def test_differences_of_float_sums_are_explained(
    make: Callable[[int], onnx.ModelProto], seeds: tuple[int, ...], tmp_path: Path
) -> None:
    """Float executors round sums of these networks."""
    explained = 0
    for seed in seeds:
        verdict = compared(make(seed), tmp_path)
        assert verdict.ok, (seed, verdict.diagnostics)
        assert not verdict.left
        explained += sum(verdict.explained.values())
    assert explained > 10


def ties() -> onnx.ModelProto:
    """A sum of equal scales, limited to 0, into a layer and into a sum, before a quantizer of twice the scale."""
    g = Branchy(2)
    g.bits, scale = 8, np.float32(0.137)
    x = g.quant("x", scale)
    x = g.add("Relu", [g.add("Add", [x, g.quant(g.conv(x, 3, 3, 1), scale)])])
    x = g.add("Add", [x, g.quant(g.conv(x, 3, 3, 1), scale)])
    return g.model(g.quant(x, 2 * scale), [1, 3, 4, 5])


@pytest.mark.sweep
def test_a_wrong_weight_among_float_sums_is_found(tmp_path: Path) -> None:
    """A wrong weight is not hidden by differences that rounding explains."""
    assert compared(ties(), tmp_path).explained.keys() == {"sum of tensors rounded more than once"}
    is_first = True

    def wrong(op: ir.Op) -> ir.Op:
        nonlocal is_first
        if not isinstance(op, ir.Conv) or not is_first:
            return op
        is_first = False
        weight = op.weight.copy()
        weight.flat[1] += 1
        return replace(op, weight=weight)

    verdict = compared(ties(), tmp_path, wrong)
    assert verdict.unexplained
    assert verdict.diagnostics[0].code == "HG058"


def test_weights_that_the_runtime_folds_are_known(tmp_path: Path) -> None:
    """Weights quantized by arithmetic; onnxruntime computes them before it runs the file. No code is 1."""
    g = Branchy(0)
    codes = np.random.default_rng(1).choice([-6, -4, 2, 5, 9], (5, 4)).astype(np.float32)
    x = [g.const(0.05, np.float32), g.const(3, np.uint8)]
    data = g.add("DequantizeLinear", [g.add("QuantizeLinear", ["x", *x]), *x])
    weight = g.add("Mul", [g.add("Round", [g.const(codes + 0.1, np.float32)]), g.const(0.02, np.float32)])
    verdict = compared(g.model(g.add("MatMul", [data, weight]), [1, 3, 5]), tmp_path)
    assert verdict.ran.startswith("onnxruntime")
    assert verdict.ok, verdict.diagnostics
    assert verdict.floats_differ


def test_parts_of_a_split_have_their_own_numbers(tmp_path: Path) -> None:
    """The second output, into a layer, of channels with a scale each."""
    g = Branchy(0)
    x = g.quant("x", np.float32([0.1, 0.3, 0.07, 0.21]))
    parts = ["first", "second"]
    g.nodes.append(helper.make_node("Split", [x, g.const(np.array([2, 2]), np.int64)], parts, axis=1, name="split"))
    verdict = compared(g.model(g.conv(parts[1], 2, 3), [1, 4, 4, 4]), tmp_path)
    assert verdict.ok, verdict.diagnostics
    assert verdict.explained


def test_sums_are_rounded_once() -> None:
    """Compared with fractions, for products that no float represents."""
    rng = np.random.default_rng(0)
    integers, scales = rng.integers(-(2**40), 2**40, (4, 50)).astype(np.float64), rng.uniform(0.1, 0.2, (4, 1))
    sums = rounded_sum(*((row, scale, np.float64(0.3)) for row, scale in zip(integers, scales, strict=True)))
    for place in range(50):
        exact = sum(
            Fraction(row[place]) * Fraction(scale[0]) * Fraction(0.3)
            for row, scale in zip(integers, scales, strict=True)
        )
        neighbours = [np.nextafter(sums[place], np.float32(end)) for end in (-np.inf, np.inf)]
        assert all(abs(Fraction(float(sums[place])) - exact) <= abs(Fraction(float(x)) - exact) for x in neighbours)


# --------------------------------------------------------------------------- RequantShift


def rescaling(**attributes: int) -> onnx.ModelProto:
    """A layer of integers in float32, and a RequantShift by channels, in a domain of its exporter."""
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.integers(-9, 10, (4, 3)),
        "mul": rng.integers(-50, 50, 3),
        "add": rng.integers(-999, 999, 3),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"], name="layer"),
        helper.make_node("RequantShift", ["t", "mul", "add"], ["y"], name="rescale", domain="PACTOps", **attributes),
    ]
    graph = helper.make_graph(
        nodes,
        "rescaling",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.float32(v), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("PACTOps", 1)]
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT, name="cast"))
    graph.node[1].input[0] = "f"
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("wrong", ["", "add", "shift", "type"])
def test_a_misread_requant_shift_is_found(wrong: str, tmp_path: Path) -> None:
    """A misread addend, shift or range of codes is found."""

    def change(op: ir.Op) -> ir.Op:
        if not isinstance(op, Requantize) or not wrong:
            return op
        narrower = replace(op.type, lo=op.type.lo + 1)
        return replace(op, **{wrong: {"add": op.add + 40, "shift": op.shift + 1, "type": narrower}[wrong]})  # type: ignore[arg-type]

    verdict = compared(rescaling(div=64, n_levels=100, n_levels_out=50), tmp_path, change)
    assert verdict.ran.startswith("onnx ")
    assert not verdict.left
    assert verdict.ok == (not wrong)
    assert not wrong or verdict.diagnostics[0].node == "rescale"


@pytest.mark.parametrize(
    "attributes, low, high",
    [({"div": 16, "signed": 1}, -128, 127), ({"div": np.array([1.0]), "signed": 0, "n_levels_out": 21}, 0, 20)],
)
def test_requant_shift_follows_its_definition(attributes: dict[str, Any], low: int, high: int) -> None:
    """Compared with integers; the second input has fractions, as averages do."""
    rng, div = np.random.default_rng(0), int(np.ravel(attributes["div"])[0])
    x, mul, add = rng.integers(-99, 99, (3, 40)), rng.integers(-20, 20, (3, 1)), rng.integers(-99, 99, (3, 1))
    expected = np.clip((x * mul + add + (div >> 1)) // div, low, high)
    assert np.array_equal(requant_shift([x.astype(np.int32), mul, add], attributes), expected)
    expected_for_fractions = np.clip((x * mul + 4 * add + 4 * (div >> 1)) // (4 * div), low, high)
    assert np.array_equal(
        requant_shift([np.float32(x / 4), np.float32(mul), np.float32(add)], attributes), expected_for_fractions
    )
