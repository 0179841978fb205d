"""Legality of Model and Graph: each rule is broken once, on a form that is legal without that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_models import chain_of, const, model_of, quant

from hlsgen import ir
from hlsgen.diagnostics import Collector
from hlsgen.ir import ops
from hlsgen.ir.verify import verify_graph, verify_model
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.passes import InputMode, lower

V, IMG = (1, 4), (1, 4, 4, 2)  # a vector, an image
INT8 = IntType(-128, 127)
F32, I64 = np.float32, np.int64
ADD = Parameters(0, 0, 0, 1, 1, 1, 8)


def _linear(rows: int = 3, columns: int = 4, scale: Any = None) -> ir.MatMul:
    weight = np.arange(rows * columns, dtype=I64).reshape(rows, columns) - 5
    return ir.MatMul(weight, np.full(rows, 0.5, F32) if scale is None else scale)


def _conv(window: ir.Window | None = None, **changes: Any) -> ir.Conv:
    weight = np.arange(36, dtype=I64).reshape(2, 3, 3, 2) - 17
    return replace(ir.Conv(weight, np.full(2, 0.5, F32), window or ir.Window((3, 3)), 1), **changes)


def _quantize_linear(**changes: Any) -> ops.QuantizeLinear:
    return replace(ops.QuantizeLinear(const(0.25, 2), const(0, 2, I64), INT8, "int8"), **changes)


def _requantize(**changes: Any) -> ops.Requantize:
    ones = const(1, 2, I64)
    return replace(ops.Requantize(ops.Convention.FLOOR, ones, ones, ones, ones, INT8, "int8"), **changes)


def _trunc(**changes: Any) -> ops.Trunc:
    ones = const(1, 2)
    return replace(ops.Trunc(ones, ones, ones, ones, ones, INT8, Rounding.FLOOR), **changes)


PAIR = ops.Pair(ops.PairOp.ADD, INT8, "int8", (1.0, 1.0, 2.0), (0, 0, 0))
TWO = replace(model_of(V, (PAIR, V, (0,)), dtype="int8", out="int8"), second_input="z")
INTEGERS = chain_of(V, _quantize_linear(), ops.Dequantize(const(0.5, 2), const(0, 2, I64)))

#: Legal models. Those that are broken below start from these.
LEGAL: dict[str, ir.Model] = {
    "linear": chain_of(V, quant(2), (_linear(), (1, 3)), quant(2)),
    "conv": chain_of(IMG, quant(4), (_conv(), (1, 2, 2, 2)), quant(4)),
    "pool": chain_of(IMG, quant(4), (ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2))), (1, 2, 2, 2))),
    "moves": chain_of(IMG, quant(4), (ir.Transpose((0, 3, 1, 2)), (1, 2, 4, 4)), (ir.Reshape(), (1, 32))),
    "concat": model_of(V, (quant(2), V, (0,)), (quant(2), V, (0,)), (ir.Concat(1), (1, 8), (1, 2))),
    "binary": model_of(V, (quant(2), V, (0,)), (quant(2), V, (0,)), (ir.Binary(ops.BinaryKind.ADD), V, (1, 2))),
    "select": model_of(
        V,
        (ops.Compare(ops.Relation.LESS, const(0, 2)), V, (0,)),
        (ir.Select((None, const(1, 2), None)), V, (1, 0)),
        (quant(2), V, (2,)),
    ),
    "pair": TWO,
    "integers": INTEGERS,
    "fixed add": chain_of(V, ops.FixedAdd(const(3, 2, I64), True, ADD), dtype="int8", out="int8"),
    "requantize": chain_of(V, _requantize(), dtype="int32", out="int8"),
    "argmax": chain_of(V, quant(2), (ir.ArgMax(True), (1, 1)), out="int64"),
    "where": chain_of(
        V,
        ops.Where(
            ((ops.Compare(ops.Relation.LESS, const(0, 2)),), (ops.Constant(const(2, 2)),), (ops.Activation("Tanh"),))
        ),
        quant(2),
    ),
    "minifloat": chain_of(V, ops.FloatQuant(const(1, 2), 3, -2, 7.5, True, Rounding.ROUND)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_models(name: str) -> None:
    assert not verify_model(LEGAL[name])


def _with_op(name: str, number: int, op: Any, **changes: Any) -> ir.Model:
    """A legal model with another operator in a step (counted from 1), or other fields of the step."""
    model = LEGAL[name]
    steps = list(model.steps)
    steps[number - 1] = replace(steps[number - 1], **({} if op is None else {"op": op}), **changes)
    return replace(model, steps=tuple(steps))


#: (an illegal model, the field that is named)
BROKEN: dict[str, tuple[ir.Model, str]] = {
    # steps and values
    "later value": (_with_op("linear", 2, None, inputs=(2,)), "inputs"),
    "too few values": (_with_op("binary", 3, None, inputs=(1,)), "inputs"),
    "unused value": (_with_op("linear", 3, None, inputs=(1,), shape=V), "result"),
    "no steps": (replace(LEGAL["linear"], steps=()), "steps"),
    "input shape": (replace(LEGAL["linear"], input_shape=(0, 4)), "shape"),
    "input dtype": (replace(LEGAL["linear"], input_dtype="complex64"), "input_dtype"),
    "output dtype": (replace(LEGAL["linear"], output_dtype="int8"), "output_dtype"),
    # shapes
    "elementwise shape": (_with_op("linear", 3, None, shape=(1, 4)), "shape"),
    "linear shape": (_with_op("linear", 2, None, shape=(1, 4)), "shape"),
    "image shape": (_with_op("conv", 2, None, shape=(1, 2, 3, 2)), "shape"),
    "reshape size": (_with_op("moves", 3, None, shape=(1, 31)), "Reshape"),
    "permutation": (_with_op("moves", 2, ir.Transpose((0, 3, 1, 1))), "Transpose.perm"),
    "transposed shape": (_with_op("moves", 2, None, shape=(1, 4, 4, 2)), "shape"),
    "concat axis": (_with_op("concat", 3, ir.Concat(2)), "axis"),
    "concat shapes": (_with_op("concat", 3, ir.Concat(0)), "shape"),
    "concat of two forms": (
        model_of(IMG, (quant(4), IMG, (0,)), (ir.Reshape(), (1, 32), (1,)), (ir.Concat(0), IMG, (1, 2))),
        "shapes",
    ),
    "binary shapes": (
        model_of(V, (quant(2), V, (0,)), (ir.Reshape(), (4, 1), (1,)), (ir.Binary(ops.BinaryKind.ADD), V, (1, 2))),
        "shapes",
    ),
    "argmax shape": (_with_op("argmax", 2, ir.ArgMax(False)), "shape"),
    # weights
    "weight columns": (_with_op("linear", 2, _linear(3, 5)), "weight"),
    "weight dtype": (_with_op("linear", 2, replace(_linear(), weight=np.zeros((3, 4), F32))), "weight"),
    "scale rows": (_with_op("linear", 2, _linear(scale=np.ones(4, F32))), "scale"),
    "scale dtype": (_with_op("linear", 2, _linear(scale=np.ones(3))), "scale"),
    "scale 0": (_with_op("linear", 2, _linear(scale=np.zeros(3, F32))), "scale"),
    "kernel": (_with_op("conv", 2, _conv(weight=np.ones((2, 3, 2, 2), I64))), "weight"),
    "groups": (_with_op("conv", 2, _conv(groups=3)), "groups"),
    "zero point of a convolution": (
        chain_of(
            IMG,
            (ir.ConvInteger(_conv().weight, np.zeros(3, I64), ir.Window((3, 3)), 1), (1, 2, 2, 2)),
            dtype="int8",
            out="int32",
        ),
        "zero_point",
    ),
    "integers for a convolution": (
        chain_of(
            IMG, (ir.ConvInteger(_conv().weight, np.zeros(2, I64), ir.Window((3, 3)), 1), (1, 2, 2, 2)), out="int32"
        ),
        "dtype of the input",
    ),
    # windows
    "not an image": (chain_of(V, (ir.Pool(ir.Reduction.MAX, ir.Window((1, 1))), V)), "shape of an image"),
    "strides": (_with_op("pool", 2, ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (0, 2)))), "strides"),
    "kernel of 0": (_with_op("pool", 2, ir.Pool(ir.Reduction.MAX, ir.Window((0, 2)))), "kernel"),
    "dilations": (_with_op("pool", 2, ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2), (0, 1)))), "dilations"),
    "pads": (_with_op("pool", 2, ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2), pads=(-1, 0, 0, 0)))), "pads"),
    "window too large": (_with_op("conv", 2, _conv(ir.Window((3, 3), dilations=(2, 1)))), "window"),
    "a window of pads": (
        chain_of(
            IMG, (ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2), pads=(2, 0, 0, 0))), (1, 3, 2, 2)), quant(4)
        ),
        "pads",
    ),
    "border": (chain_of(IMG, (ir.Pad((-1, 0, 0, 0), 0.0), (1, 3, 4, 2)), quant(4)), "Pad.pads"),
    "border value": (chain_of(IMG, (ir.Pad((1, 0, 0, 0), float("nan")), (1, 5, 4, 2)), quant(4)), "Pad.value"),
    "repeat": (chain_of(IMG, (ir.Repeat(0, 1), IMG), quant(4)), "Repeat"),
    "slice outside": (chain_of(V, (ir.Slice(((0, 1, 1), (1, 5, 1))), V), quant(2)), "Slice.ranges"),
    "slice backwards": (chain_of(V, (ir.Slice(((0, 1, 1), (0, 4, -1))), V), quant(2)), "Slice.ranges"),
    "slice of too few axes": (chain_of(V, (ir.Slice(((0, 4, 1),)), V), quant(2)), "Slice.ranges"),
    # dtypes
    "constant of another dtype": (chain_of(V, ops.Mul(const(2, 2, np.float64)), quant(2)), "dtype of Mul"),
    "fused in float16": (chain_of(V, ops.Fma(const(2, 2), const(2, 2, np.float16)), quant(2)), "dtype of Fma"),
    "cast": (chain_of(V, ops.Cast("complex64")), "Cast.dtype"),
    "dequantized floats": (chain_of(V, INTEGERS.steps[1].op), "Dequantize input"),
    "quantized integers": (chain_of(V, quant(2), dtype="int8"), "IntQuant input"),
    "bipolar integers": (chain_of(V, ops.Bipolar(const(1, 2), const(1, 2)), dtype="int8"), "Bipolar input"),
    "function of integers": (chain_of(V, ops.Activation("Tanh"), quant(2), dtype="int8"), "Activation input"),
    "function": (chain_of(V, ops.Activation("Nothing"), quant(2)), "Activation.kind"),
    "parameter": (chain_of(V, ops.Activation("HardSigmoid", float("inf")), quant(2)), "Activation"),
    "joined dtypes": (
        model_of(V, (quant(2), V, (0,)), (_quantize_linear(), V, (0,)), (ir.Binary(ops.BinaryKind.ADD), V, (1, 2))),
        "dtypes",
    ),
    "packed floats": (model_of(V, (quant(2), V, (0,)), (ir.Pack(), V, (1, 1)), out="uint16"), "dtype of a Pack"),
    "condition": (_with_op("select", 1, ops.Add(const(1, 2))), "Select condition"),
    "select dtypes": (_with_op("select", 2, ir.Select((None, const(1, 2, I64), None))), "dtypes of a Select"),
    "select constant": (_with_op("select", 2, ir.Select((None, const([1, 2, 3], 2), None))), "Select yes"),
    "where condition": (chain_of(V, ops.Where(((), (), ())), quant(2)), "Where condition"),
    "where dtypes": (
        chain_of(V, ops.Where(((ops.Compare(ops.Relation.LESS, const(0, 2)),), (ops.Cast("int8"),), ())), quant(2)),
        "dtypes of Where",
    ),
    "chains": (chain_of(V, ops.BinaryOf(ops.BinaryKind.ADD, ((),)), quant(2)), "BinaryOf.ways"),
    "dtypes of both": (
        chain_of(V, ops.BinaryOf(ops.BinaryKind.ADD, ((ops.Cast("int8"),), ())), quant(2)),
        "dtypes of BinaryOf",
    ),
    "host op": (chain_of(V, ir.HostOp("Softmax", b""), quant(2)), "HostOp.model"),
    # constants and quantizers
    "constant too large": (chain_of(V, ops.Add(const([1, 2, 3], 2)), quant(2)), "Add.value"),
    "constant of higher rank": (chain_of(V, ops.Add(const(1, 3)), quant(2)), "Add.value"),
    "not a number": (chain_of(V, ops.Add(const(float("nan"), 2)), quant(2)), "Add.value"),
    "scale of 0": (_with_op("linear", 1, quant(2, scale=0)), "IntQuant.scale"),
    "negative scale": (_with_op("linear", 1, quant(2, scale=-1)), "IntQuant.scale"),
    "infinite zero point": (_with_op("linear", 1, quant(2, zero=np.inf)), "IntQuant.zero_point"),
    "divisor": (chain_of(V, _trunc(divisor=const(0, 2))), "Trunc.divisor"),
    "zero point of a trunc": (chain_of(V, _trunc(out_zero_point=const(np.inf, 2))), "Trunc zero point"),
    "no thresholds": (chain_of(V, ops.MultiThreshold(np.zeros((0, 1, 1), F32), 1.0, 0.0)), "MultiThreshold.thresholds"),
    "threshold scale": (chain_of(V, ops.MultiThreshold(np.zeros((1, 1, 1), F32), 0.0, 0.0)), "MultiThreshold output"),
    "zero point dtype": (
        chain_of(V, _quantize_linear(zero_point=const(0, 2)), out="int8"),
        "QuantizeLinear.zero_point",
    ),
    "type of codes": (chain_of(V, _quantize_linear(type=IntType(0, 255)), out="int8"), "type of codes"),
    "dtype of codes": (chain_of(V, _quantize_linear(dtype="bool")), "dtype of codes"),
    "shift": (chain_of(V, _requantize(shift=const(63, 2, I64)), dtype="int32", out="int8"), "Requantize.shift"),
    "shift of a float64 product": (
        chain_of(
            V, _requantize(convention=ops.Convention.FLOAT64, shift=const(1025, 2, I64)), dtype="int32", out="int8"
        ),
        "Requantize.shift",
    ),
    "multiplier": (
        chain_of(V, _requantize(multiplier=const(1, 2)), dtype="int32", out="int8"),
        "Requantize.multiplier",
    ),
    "largest": (
        _with_op("minifloat", 1, ops.FloatQuant(const(1, 2), 3, -2, 7.51, True, Rounding.ROUND)),
        "FloatQuant.largest",
    ),
    "mantissa": (
        _with_op("minifloat", 1, ops.FloatQuant(const(1, 2), -1, -2, 8.0, True, Rounding.ROUND)),
        "FloatQuant.mantissa",
    ),
    "fixed add of int32": (replace(LEGAL["fixed add"], input_dtype="int32"), "FixedAdd input"),
    "fixed add constant": (_with_op("fixed add", 1, ops.FixedAdd(const(200, 2, I64), True, ADD)), "FixedAdd.other"),
    # pairs
    "pair of one input": (replace(TWO, second_input=None), "input of a Pair"),
    "two inputs without a pair": (
        replace(chain_of(V, ops.Dequantize(const(1, 2), const(0, 2, I64)), dtype="int8"), second_input="z"),
        "first step",
    ),
    "pair scales": (
        replace(TWO, steps=(replace(TWO.steps[0], op=replace(PAIR, scales=(1.0, 0.0, 1.0))),)),
        "Pair.scales",
    ),
    "pair parameters": (
        replace(TWO, steps=(replace(TWO.steps[0], op=replace(PAIR, kind=ops.PairOp.FIXED)),)),
        "Pair.fixed",
    ),
    "pair dtype": (
        replace(TWO, steps=(replace(TWO.steps[0], op=replace(PAIR, dtype="int16")),), output_dtype="int16"),
        "Pair.dtype",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_named(name: str) -> None:
    model, field = BROKEN[name]
    assert field in {v.field for v in verify_model(model)}


def test_every_violation_is_reported() -> None:
    model = _with_op("linear", 1, quant(2, scale=0))
    model = replace(model, steps=(*model.steps[:2], replace(model.steps[2], op=quant(2, scale=-1))))
    violations = verify_model(model)
    assert [v.location for v in violations] == ["step 1 's1' (IntQuant)", "step 3 's3' (IntQuant)"]
    assert str(violations[0]) == "step 1 's1' (IntQuant): IntQuant.scale is [[0.]]; expected finite and greater than 0."


# --------------------------------------------------------------------------- graphs


def graph_of(model: ir.Model, kind: str = "codes", bits: int = 8) -> ir.Graph:
    return lower(model, InputMode(kind, IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1), 2), Collector())


def _int8_pack() -> ir.Model:
    quantizer = ops.QuantizeLinear(const(1, 2), const(0, 2, I64), INT8, "int8")
    steps = (
        (quantizer, V, (0,)),
        (replace(quantizer, scale=const(2, 2)), V, (0,)),
        (ir.Pack(), V, (1, 2)),
        (PAIR, V, (3,)),
    )
    return model_of(V, *steps, out="int8")


def _padded(window: ir.Window) -> ir.Model:
    return chain_of(IMG, quant(4), (_conv(window), (1, 4, 4, 2)), quant(4))


CHANNEL = quant(4, scale=[0.25, 0.5])
GRAPHS: dict[str, ir.Graph] = {
    "linear": graph_of(LEGAL["linear"]),
    "fixed": graph_of(LEGAL["linear"], "fixed"),
    "float": graph_of(chain_of(V, ops.Mul(const(2, 2)), quant(2), ops.Mul(const(3, 2))), "float32"),
    "conv": graph_of(_padded(ir.Window((3, 3), pads=(1, 1, 1, 1)))),
    "max": graph_of(
        chain_of(IMG, CHANNEL, (ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2))), (1, 2, 2, 2)), quant(4))
    ),
    "sum": graph_of(
        chain_of(
            IMG,
            quant(4),
            (ir.Pool(ir.Reduction.SUM, ir.Window((2, 2), (2, 2), pads=(1, 1, 1, 1))), (1, 3, 3, 2)),
            quant(4),
        )
    ),
    "slice": graph_of(
        chain_of(IMG, CHANNEL, (ir.Slice(((0, 1, 1), (0, 4, 1), (0, 4, 1), (1, 2, 1))), (1, 4, 4, 1)), quant(4))
    ),
    "repeat": graph_of(chain_of(IMG, quant(4), (ir.Repeat(2, 1), (1, 8, 4, 2)), quant(4))),
    "border": graph_of(chain_of(IMG, quant(4), (ir.Pad((1, 0, 0, 0), 0.0), (1, 5, 4, 2)), quant(4))),
    "view": graph_of(chain_of(IMG, CHANNEL, (ir.Transpose((0, 3, 1, 2)), (1, 2, 4, 4)), quant(4))),
    "concat": graph_of(
        model_of(
            V, (quant(2), V, (0,)), (quant(2, 0.5), V, (1,)), (ir.Concat(1), (1, 8), (1, 2)), (quant(2), (1, 8), (3,))
        )
    ),
    "binary": graph_of(
        model_of(
            V,
            (quant(2), V, (0,)),
            (quant(2, 0.5), V, (0,)),
            (ir.Binary(ops.BinaryKind.ADD), V, (1, 2)),
            (quant(2), V, (3,)),
        ),
        "fixed",
    ),
    "pack": graph_of(_int8_pack(), "float32"),
    "argmax": graph_of(LEGAL["argmax"]),
    "trunc": graph_of(chain_of(V, quant(2), _trunc(type=None, divisor=const(4, 2))), "float32"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_legal_graphs(name: str) -> None:
    graph = GRAPHS[name]
    assert not verify_graph(graph)
    kinds = {
        "conv": ir.Convolution,
        "max": ir.Pooling,
        "slice": ir.Rearrange,
        "view": ir.View,
        "pack": ir.PackBytes,
        "sum": ir.Pooling,
    }
    assert name not in kinds or any(isinstance(layer, kinds[name]) for layer in graph.layers)


def _with(name: str, kind: type, **changes: Any) -> Callable[[], ir.Graph]:
    """A legal graph with other fields in its first layer of that kind; `result_` changes the result's fields, and what
    reads it, so that the layer alone is wrong."""

    def broken() -> ir.Graph:
        graph = GRAPHS[name]
        at = next(n for n, layer in enumerate(graph.layers) if isinstance(layer, kind))
        layer: Any = graph.layers[at]
        result_changes = {
            key.removeprefix("result_"): value for key, value in changes.items() if key.startswith("result_")
        }
        layer_changes = {key: value for key, value in changes.items() if not key.startswith("result_")}
        layer = replace(layer, **layer_changes, result=replace(layer.result, **result_changes))
        layers = [*graph.layers[:at], layer, *graph.layers[at + 1 :]]
        output = layer.result if at == len(layers) - 1 else graph.output
        return replace(graph, layers=tuple(layers), output=output)

    return broken


def _source(name: str, kind: type, **changes: Any) -> Callable[[], ir.Graph]:
    graph = GRAPHS[name]
    layer: Any = next(layer for layer in graph.layers if isinstance(layer, kind))
    return _with(name, kind, source=replace(layer.source, **changes))


def _changed(name: str, **changes: Any) -> Callable[[], ir.Graph]:
    return lambda: replace(GRAPHS[name], **changes)


def _with_layer_after(name: str) -> Callable[[], ir.Graph]:
    """A second layer of the last one's name."""

    def broken() -> ir.Graph:
        graph = GRAPHS[name]
        last: Any = graph.layers[-1]
        added_layer = ir.Map(
            last.name,
            (),
            quant(2),
            last.result,
            replace(last.result, encoding=ir.Affine(const(0.25, 2), const(0, 2))),
            (len(graph.layers),),
        )
        return replace(graph, layers=(*graph.layers, added_layer), output=added_layer.result)

    return broken


def _dead() -> ir.Graph:
    """The last layer twice: nothing uses the first of both."""
    graph = GRAPHS["linear"]
    return replace(graph, layers=(*graph.layers, replace(graph.layers[-1], name="more")))


FLOAT = ir.Accumulator(1, np.zeros((1, 1), I64), np.full((1, 1), 0.1))
BROKEN_GRAPHS: dict[str, tuple[Callable[[], ir.Graph], str]] = {
    # how layers read values
    "later value": (_with("linear", ir.Map, inputs=(2,)), "inputs"),
    "two values": (_with("linear", ir.Map, inputs=(1, 0)), "inputs"),
    "unused value": (_dead, "value 2"),
    "source shape": (_source("linear", ir.Linear, shape=(4,)), "source.shape"),
    "source type": (_source("linear", ir.Linear, type=IntType(-8, 7)), "source.type"),
    "source encoding": (
        _source("linear", ir.Linear, encoding=ir.Affine(const(0.3, 2), const(0, 2))),
        "source.encoding",
    ),
    "output": (_changed("linear", output=GRAPHS["linear"].input), "output.shape"),
    "names": (_with_layer_after("linear"), "names of layers"),
    # values
    "scale of 0": (_with("linear", ir.Map, result_encoding=ir.Affine(const(0, 2), const(0, 2))), "Affine.scale"),
    "infinite scale": (
        _with("linear", ir.Map, result_encoding=ir.Affine(const(np.inf, 2), const(0, 2))),
        "Affine.scale",
    ),
    "constants too large": (
        _with("linear", ir.Map, result_encoding=ir.Affine(const([1, 2], 2), const(0, 2))),
        "Affine.scale",
    ),
    "long scale": (_with("linear", ir.Linear, result_encoding=FLOAT), "Accumulator.scale"),
    "factor": (_with("linear", ir.Linear, result_encoding=replace(FLOAT, factor=0)), "Accumulator.factor"),
    "offset": (
        _with("linear", ir.Linear, result_encoding=replace(FLOAT, offset=np.zeros((1, 1)))),
        "Accumulator.offset",
    ),
    "inexact": (_with("linear", ir.Linear, result_encoding=replace(FLOAT, factor=1 << 50)), "code * factor + offset"),
    "dtype of numbers": (
        _with("linear", ir.Linear, result_encoding=ir.IntegerEncoding("bool", np.zeros((1, 1), I64))),
        "IntegerEncoding.dtype",
    ),
    "integer offset": (
        _with("linear", ir.Linear, result_encoding=ir.IntegerEncoding("int32", np.zeros((1, 1)))),
        "IntegerEncoding.offset",
    ),
    "wide fixed point": (_changed("fixed", input=replace(GRAPHS["fixed"].input, type=IntType(0, 1 << 53))), "type"),
    "keys": (_changed("float", input=replace(GRAPHS["float"].input, type=IntType(-1, 5))), "type"),
    # maps
    "map shape": (_with("linear", ir.Map, result_shape=(3, 1)), "shape"),
    "map type": (_with("linear", ir.Map, result_type=IntType(-128, 126)), "result.type"),
    "map encoding": (_with("linear", ir.Map, result_encoding=ir.Affine(const(0.3, 2), const(0, 2))), "result.encoding"),
    "map dtype": (_with("linear", ir.Map, ops=(ops.Add(const(1, 2, np.float64)),)), "dtype of Add"),
    "trunc type": (_with("trunc", ir.Map, result_type=IntType(-(1 << 40), 1)), "result.type"),
    "binary dtypes": (_with("binary", ir.BinaryMap, branches=((ops.Cast("float64"),), ())), "dtypes of the operands"),
    "binary shape": (_with("binary", ir.BinaryMap, result_shape=(4, 1)), "source.shape"),
    # sums
    "lo": (_with("linear", ir.Linear, lo=GRAPHS["linear"].layers[0].lo + 1), "lo"),  # type: ignore[union-attr]
    "hi": (_with("linear", ir.Linear, hi=GRAPHS["linear"].layers[0].hi - 1), "hi"),  # type: ignore[union-attr]
    "sums type": (_with("linear", ir.Linear, result_type=IntType(-9, 9)), "result.type"),
    "weight": (_with("linear", ir.Linear, weight=np.zeros((3, 3), I64)), "weight"),
    "weight dtype": (_with("linear", ir.Linear, weight=np.zeros((3, 4))), "weight"),
    "not binary": (_with("linear", ir.Linear, binary=True), "binary"),
    "sums encoding": (_with("linear", ir.Linear, result_encoding=ir.Fixed(2)), "result.encoding"),
    "kernel": (_with("conv", ir.Convolution, weight=np.zeros((2, 3, 3, 1), I64)), "weight"),
    "groups": (_with("conv", ir.Convolution, groups=3), "groups"),
    "window": (_with("conv", ir.Convolution, window=ir.Window((3, 3))), "shape"),
    "pad outside": (_with("conv", ir.Convolution, pad=200), "pad"),
    "pad not 0": (_with("conv", ir.Convolution, pad=1), "pad"),
    # windows and moves
    "max pad": (_with("max", ir.Pooling, pad=0), "pad"),
    "max type": (_with("max", ir.Pooling, result_type=IntType(-128, 128)), "result.type"),
    "max encoding": (
        _with("max", ir.Pooling, result_encoding=ir.Affine(const([0.5, 0.25], 4), const(0, 4))),
        "result.encoding",
    ),
    "max shape": (_with("max", ir.Pooling, result_shape=(1, 2, 3, 2)), "shape"),
    "sum type": (_with("sum", ir.Pooling, result_type=IntType(-128, 127)), "result.type"),
    "sum pad": (_with("sum", ir.Pooling, pad=3), "pad"),
    "sum encoding": (_with("sum", ir.Pooling, result_encoding=ir.Fixed(2)), "result.encoding"),
    "slice encoding": (
        _with("slice", ir.Rearrange, result_encoding=ir.Affine(const(0.25, 4), const(0, 4))),
        "result.encoding",
    ),
    "slice type": (_with("slice", ir.Rearrange, result_type=IntType(0, 1)), "result.type"),
    "repeat shape": (_with("repeat", ir.Rearrange, result_shape=(1, 4, 8, 2)), "shape"),
    "repeat encoding": (
        _with("repeat", ir.Rearrange, result_encoding=ir.Affine(const(0.3, 4), const(0, 4))),
        "result.encoding",
    ),
    "border code": (_with("border", ir.Rearrange, pad=7), "pad"),
    "concat type": (_with("concat", ir.Concatenation, result_type=IntType(-128, 126)), "result.type"),
    "concat encoding": (
        _with("concat", ir.Concatenation, result_encoding=ir.Affine(const(0.25, 2), const(0, 2))),
        "result.encoding",
    ),
    "concat axis": (_with("concat", ir.Concatenation, axis=0), "shape"),
    "view permutation": (_with("view", ir.View, op=ir.Transpose((0, 1, 1, 2))), "Transpose.perm"),
    "view size": (_with("view", ir.View, op=ir.Reshape(), result_shape=(1, 2, 4, 5)), "Reshape"),
    "view encoding": (
        _with("view", ir.View, result_encoding=ir.Affine(np.full((1, 1, 1, 1), 0.25, F32), const(0, 4))),
        "result.encoding",
    ),
    "packed type": (_with("pack", ir.PackBytes, result_type=IntType(0, 255)), "result.type"),
    "packed encoding": (
        _with("pack", ir.PackBytes, result_encoding=ir.IntegerEncoding("int32", np.zeros((1, 1), I64))),
        "result.encoding",
    ),
    # the host
    "encode": (_changed("linear", encode=quant(2, 0.5)), "result.encoding"),
    "input port": (_changed("linear", encode=None), "encoding"),
    "head": (_changed("float", head=(replace(GRAPHS["float"].tail[0], shape=(4, 1)),)), "shape"),
    "tail dtype": (
        _changed("float", tail=(replace(GRAPHS["float"].tail[0], op=ops.Mul(const(2, 2, np.float64))),)),
        "dtype of Mul",
    ),
    "tail shape": (_changed("argmax", tail=(replace(LEGAL["moves"].steps[2], shape=(1,)),)), "shape after the tail"),
    "index": (_changed("argmax", output_is_index=False), "output_is_index"),
}


@pytest.mark.parametrize("name", BROKEN_GRAPHS)
def test_a_broken_graph_is_named(name: str) -> None:
    make_graph, field = BROKEN_GRAPHS[name]
    assert field in {v.field for v in verify_graph(make_graph())}
