"""The second reading detects misreadings of the frontend. Nodes that are read only once are listed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import certified_images
import dialects
import numpy as np
import onnx
import pytest
import random_graphs
from certified import messages, pair, quantizer
from integer_models import Graph, chain, dequantized, finished, prequantized
from onnx import helper
from paths import DATA, ROOT

import hlsgen
import hlsgen.frontend.ops_standard
import hlsgen.frontend.two_inputs
from hlsgen.certify.second_reading import activations, compare
from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.diagnostics import Collector
from hlsgen.frontend import (
    channels_last,
    constants,
    dialect_integer,
    dialect_qlinear,
    dialect_qonnx,
    dialect_qonnx_floatquant,
    import_model,
    ops_compare_select,
    ops_conv,
    ops_conv_transpose,
    ops_image,
    ops_linear,
    ops_multi_operand,
    ops_pool,
    quantizer_parameters,
)
from hlsgen.ir import Model, Step
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Rounding

Make = Callable[[], onnx.ModelProto]


def linear(spread: float = 0.3, **attributes: Any) -> onnx.ModelProto:
    """A quantizer, a square matrix with its own quantizer by rows, a bias, a quantizer."""
    graph, rng, rows = Graph(), np.random.default_rng(3), 4
    quant_attributes = {"domain": dialects.DOMAIN, "signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
    graph.then("Quant", np.float32(0.5), np.float32(0), np.float32(4), **quant_attributes)
    weight = graph.const(rng.normal(0, 1, (rows, rows)).astype(np.float32))
    parts = [
        graph.const(x) for x in (np.linspace(0.2, 0.2 + spread, rows, dtype=np.float32), np.float32(0), np.float32(4))
    ]
    graph.nodes.append(helper.make_node("Quant", [weight, *parts], ["codes"], **quant_attributes))
    graph.nodes.append(helper.make_node("MatMul", [graph.last, "codes"], ["sums"]))
    graph.last = "sums"
    graph.then("Add", np.linspace(-1, 1, rows, dtype=np.float32))
    graph.then("Quant", np.float32(0.7), np.float32(0), np.float32(3), **quant_attributes)
    model = finished(graph, "float32", [1, rows])
    model.opset_import.append(helper.make_opsetid(dialects.DOMAIN, 1))
    return model


def qdq(axis: int = 1) -> onnx.ModelProto:
    """A layer of int8 between QuantizeLinear and DequantizeLinear, with an int32 bias."""
    graph, rng = Graph(), np.random.default_rng(4)
    graph.then("DequantizeLinear", np.float32(0.1), np.int8(3))
    scale = np.linspace(0.01, 0.02, 4, dtype=np.float32)
    weight = dequantized(graph, rng.integers(-9, 9, (4, 4)).astype(np.int8), scale, np.zeros(4, np.int8), axis=axis)
    product = np.float32(0.1) * scale
    bias = dequantized(graph, rng.integers(-99, 99, 4).astype(np.int32), product, axis=0)
    graph.nodes.append(helper.make_node("Gemm", [graph.last, weight, bias], ["sums"]))
    graph.last = "sums"
    graph.then("QuantizeLinear", np.float32(0.05), np.int8(-4))
    return finished(graph, np.int8, [1, 4])


def qlinear(conv: bool = False) -> onnx.ModelProto:
    """QLinearMatMul, QLinearConv with a bias."""
    rng, scale = np.random.default_rng(5), np.linspace(0.01, 0.02, 4, dtype=np.float32)
    weight = rng.integers(-9, 9, (4, 4, 3, 3) if conv else (4, 4)).astype(np.int8)
    constants = [np.float32(0.1), np.int8(2), weight, scale, np.zeros(4, np.int8), np.float32(0.07), np.int8(1)]
    conv_inputs = [rng.integers(-99, 99, 4).astype(np.int32), {"strides": [1, 2], "pads": [0, 1, 2, 0]}] if conv else []
    shape = [1, 4, 5, 5] if conv else [1, 4]
    return chain(("QLinearConv" if conv else "QLinearMatMul", *constants, *conv_inputs), source=np.int8, shape=shape)


def by_axis() -> onnx.ModelProto:
    """A quantizer with a scale for each index of axis 1, of data with as many at axis 2."""
    parts = (np.linspace(0.1, 0.4, 4, dtype=np.float32), np.zeros(4, np.int8), {"axis": 1})
    return chain(("QuantizeLinear", *parts), ("DequantizeLinear", *parts), source=np.float32, shape=[1, 4, 4])


def bordered() -> onnx.ModelProto:
    """A border of a number that is not zero."""
    g = certified_images.Images(2, 4, 4).codes()
    g.last = g.node("Pad", g.last, g.const(np.array([0, 0, 1, 2, 0, 0, 0, 1]), np.int64), g.const(np.float32(1.5)))
    return g.codes(3.0).model()


def images(*shape: int) -> certified_images.Images:
    return certified_images.Images(*(shape or (2, 4, 4))).codes()


def transposed(**attributes: Any) -> onnx.ModelProto:
    """Two groups, scales by outputs."""
    g, rng = images(4, 3, 4), np.random.default_rng(6)
    quant_attributes = {"domain": dialects.DOMAIN, "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    scale = np.float32([0.3, 0.2, 0.7]).reshape(1, 3, 1, 1)
    weight = [g.const(v) for v in (np.float32(rng.normal(0, 1, (4, 3, 3, 2))), scale, 0.0, 4.0)]
    g.last = g.node("ConvTranspose", g.last, g.node("IntQuant", *weight, **quant_attributes), group=2, **attributes)
    return g.codes(9.0).model()


def selected() -> onnx.ModelProto:
    """x above a limit of each channel, else another number."""
    g = images()
    limits = g.const(np.linspace(-1, 1, 2, dtype=np.float32).reshape(1, 2, 1, 1))
    condition = g.node("Greater", g.last, limits)
    g.last = g.node("Where", condition, g.last, g.const(np.float32(-1.5)))
    return g.codes(4.0, 0.25).model()


def masked() -> onnx.ModelProto:
    """Another number at some places."""
    g = images()
    mask = g.const(np.eye(4, dtype=bool), np.bool_)
    g.last = g.node("Where", mask, g.const(np.float32(0.5)), g.last)
    return g.codes(4.0, 0.25).model()


def minifloat() -> onnx.ModelProto:
    g = random_graphs.Graph((1, 3))
    parts = [g.const(np.float32(v)) for v in (0.5, 3, 2, 3, 12)]
    g.last = g.node("FloatQuant", g.last, *parts, domain=dialects.DOMAIN, rounding_mode="ROUND")
    return g.model()


def with_constant(op: str, first: bool = False, shape: tuple[int, ...] = (1, 4)) -> onnx.ModelProto:
    """QLinearAdd or QLinearMul of the data and codes, in either order."""
    graph = Graph()
    codes = np.random.default_rng(7).integers(-99, 99, shape).astype(np.int8)
    data_parameters = [graph.const(v) for v in (np.float32(0.1), np.int8(3))]
    constant_parameters = [graph.const(v) for v in (codes, np.float32(0.23), np.int8(-5))]
    ends = [graph.const(v) for v in (np.float32(0.31), np.int8(1))]
    inputs = (
        [*constant_parameters, graph.last, *data_parameters, *ends]
        if first
        else [graph.last, *data_parameters, *constant_parameters, *ends]
    )
    graph.nodes.append(helper.make_node(op, inputs, ["both"], domain="com.microsoft"))
    graph.last = "both"
    model = finished(graph, np.int8, [1, 4])
    if not any(o.domain == "com.microsoft" for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def parted(op: str) -> onnx.ModelProto:
    """The second half of the columns, or both halves of the rows one below the other."""
    g = images(2, 4, 4)
    if op == "Slice":
        return g.whole("Slice", [2], [4], [3]).codes().model()
    halves = ["upper", "lower"]
    g.nodes.append(helper.make_node("Split", [g.last, g.const([2, 2], np.int64)], halves, axis=2, name="split"))
    return g.join("Concat", "lower", "upper", axis=2).codes().model()


def padded_average() -> onnx.ModelProto:
    return images(3, 5, 5).pool("AveragePool", 2, pads=[1, 0, 0, 1], ceil_mode=1).codes().model()


def row_maximum() -> onnx.ModelProto:
    """The maximum over a single spatial axis, which onnx's evaluator takes for two axes."""
    g = random_graphs.Graph((1, 3, 5))
    parts = [g.const(np.float32(v)) for v in (0.5, 0, 4)]
    g.last = g.node("IntQuant", g.last, *parts, domain=dialects.DOMAIN, signed=1, narrow=0, rounding_mode="ROUND")
    g.last = g.node("GlobalMaxPool", g.last)
    return g.model()


#: Models of operators that the second reading runs, or checks by their formulas.
EXECUTED_MODELS: dict[str, Make] = {
    "ConvTranspose": lambda: transposed(strides=[2, 3], pads=[1, 0, 2, 1], dilations=[1, 2], output_padding=[1, 0]),
    "ConvTranspose SAME": lambda: transposed(strides=[2, 1], auto_pad="SAME_UPPER"),
    "AveragePool": padded_average,
    "AveragePool with pads": lambda: (
        images(2, 5, 6).pool("AveragePool", 3, pads=[1, 1, 1, 0], count_include_pad=1).codes().model()
    ),
    "MaxPool SAME": lambda: (
        images(2, 5, 6).pool("MaxPool", 2, strides=[1, 2], auto_pad="SAME_LOWER").codes(2.0).model()
    ),
    "Conv SAME": lambda: images(2, 5, 6).conv(3, 2, (2, 3), strides=[2, 1], auto_pad="SAME_UPPER").codes(9.0).model(),
    "Where": selected,
    "Where of a mask": masked,
    "FloatQuant": minifloat,
    "Slice": lambda: parted("Slice"),
    "Split": lambda: parted("Split"),
    "DepthToSpace": lambda: images(8, 2, 2).whole("DepthToSpace", blocksize=2, mode="CRD").codes().model(),
    "GlobalMaxPool of rows": row_maximum,
    "GlobalAveragePool": lambda: images().whole("GlobalAveragePool").codes().model(),
    "QLinearAdd": lambda: with_constant("QLinearAdd"),
    "QLinearAdd, first": lambda: with_constant("QLinearAdd", True),
    "QLinearAdd, one code": lambda: with_constant("QLinearAdd", True, (1, 1)),
    "QLinearMul": lambda: with_constant("QLinearMul"),
    "QLinearMul, first": lambda: with_constant("QLinearMul", True),
}


def earlier(old: Any) -> Any:
    """Ranges that begin one earlier if possible."""
    return lambda shape, ranges: old(shape, [(a - 1, b - 1, c) if a else (a, b, c) for a, b, c in ranges])


def joined_along_columns(axis_and_shape: tuple[int, tuple[int, ...]]) -> tuple[int, tuple[int, ...]]:
    axis, (n, c, h, w) = axis_and_shape
    return 5 - axis, (n, c, w, h)


def wrapped(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Turn a function into one that returns the changed result."""
    return lambda original: lambda *args, **kwargs: change(original(*args, **kwargs))


def first_number_changed(array: Any) -> Any:
    """The array with its first number increased by one."""
    result = array.copy()
    result.flat[0] += 1
    return result


def by_columns(original: Any) -> Any:
    """Square weights by columns instead of rows."""

    def weights(name: str, const: Any) -> Any:
        return original(name, const.map(np.transpose))

    return weights


#: Name of a bug -> (module and function with the bug, the change, a model that contains it).
BUGS: dict[str, tuple[Any, str, Callable[[Any], Any], Make]] = {
    "rounding": (quantizer_parameters, "parse_rounding", wrapped(lambda mode: Rounding.FLOOR), linear),
    "rounding of Trunc": (quantizer_parameters, "parse_rounding", wrapped(lambda mode: Rounding.CEIL), lambda: trunc()),
    "weight axes": (ops_linear, "integer_weights", by_columns, lambda: linear(spread=0)),
    "axis of a scale": (
        dialect_integer,
        "placed",
        lambda old: lambda n, v, s, axis, role: old(n, v, s, 3 - axis, role),
        by_axis,
    ),
    "narrow": (
        dialect_qonnx,
        "int_type",
        lambda old: lambda bits, signed, narrow=False: old(bits, signed),
        lambda: linear(narrow=1),
    ),
    "signed": (
        dialect_qonnx,
        "int_type",
        lambda old: lambda bits, signed, narrow=False: old(bits, False, narrow),
        linear,
    ),
    "bit width": (
        dialect_qonnx,
        "int_type",
        lambda old: lambda bits, signed, narrow=False: old(bits + 1, signed, narrow),
        linear,
    ),
    "weight off by one": (
        ops_linear,
        "integer_weights",
        wrapped(lambda pair_: (first_number_changed(pair_[0]), pair_[1])),
        linear,
    ),
    "scale of a row": (
        ops_linear,
        "integer_weights",
        wrapped(lambda pair_: (pair_[0], pair_[1] * np.float32(2))),
        linear,
    ),
    "code of the border": (ops_image, "_fill_value", wrapped(lambda value: value + 0.5), bordered),
    "pads": (
        ops_image,
        "border",
        lambda old: lambda n, s, around, v: old(n, s, [*around[:2], *around[:1:-1]], v),
        bordered,
    ),
    "scale of the output": (
        dialect_integer,
        "quantizer_of",
        wrapped(lambda q: replace(q, scale=q.scale * np.float32(2))),
        lambda: prequantized("F1", (16, 6)),
    ),
    "zero point of the output": (
        dialect_integer,
        "quantizer_of",
        wrapped(lambda q: replace(q, zero_point=q.zero_point + 1)),
        qdq,
    ),
    "type of the output": (
        dialect_integer,
        "quantizer_of",
        wrapped(lambda q: replace(q, type=hlsgen.numerics.fixed.IntType(-127, 127))),
        qdq,
    ),
    "scale of the data": (
        dialect_integer,
        "dequantizer_of",
        wrapped(lambda d: replace(d, scale=d.scale * np.float32(2))),
        lambda: prequantized("F4", (16, 6)),
    ),
    "zero point of the data": (
        dialect_integer,
        "dequantizer_of",
        wrapped(lambda d: replace(d, zero_point=d.zero_point + 1)),
        lambda: prequantized("F4", (16, 6)),
    ),
    "bias of a group": (
        dialect_qlinear,
        "integers",
        wrapped(lambda pair_: (first_number_changed(pair_[0]), pair_[1])),
        qdq,
    ),
    "bias": (hlsgen.frontend.ops_standard, "operand", wrapped(first_number_changed), linear),
    "factor of QLinear": (dialect_qlinear, "scale_product", wrapped(lambda x: x * np.float32(1.5)), qlinear),
    "weight of QLinear": (dialect_integer, "integer_tensor", wrapped(first_number_changed), qlinear),
    "zero point of QLinear": (dialect_integer, "zero_of", wrapped(lambda zero: zero + 1), qlinear),
    "bias of QLinearConv": (ops_conv, "placed", wrapped(first_number_changed), lambda: qlinear(conv=True)),
    "strides": (
        ops_conv,
        "window",
        wrapped(lambda w: replace(w, strides=w.strides[::-1], pads=w.pads)),
        lambda: qlinear(conv=True),
    ),
    "pads of a window": (
        ops_conv,
        "window",
        wrapped(lambda w: replace(w, pads=(*w.pads[2:], *w.pads[:2]))),
        lambda: qlinear(conv=True),
    ),
    "order of weights": (ops_conv, "integer_tensor", wrapped(lambda w: w.swapaxes(2, 3)), lambda: qlinear(conv=True)),
    "a constant's code": (
        constants,
        "quantized",
        lambda old: lambda name, op, data: old(name, op, replace(data, array=-data.array)),
        linear,
    ),
    "QLinearMul": (
        hlsgen.frontend.two_inputs,
        "scale_of",
        wrapped(lambda s: s * np.float32(2)),
        lambda: pair("QLinearMul"),
    ),
    "taps of a transposed kernel": (
        ops_conv_transpose,
        "phases",
        wrapped(lambda w: w[:, ::-1]),
        EXECUTED_MODELS["ConvTranspose"],
    ),
    "scales of a transposed kernel": (
        ops_conv_transpose,
        "integer_weights",
        wrapped(lambda pair_: (pair_[0], pair_[1][::-1])),
        EXECUTED_MODELS["ConvTranspose"],
    ),
    "pads of a transposed kernel": (
        channels_last,
        "pad_split",
        wrapped(lambda ends: ends[::-1]),
        EXECUTED_MODELS["ConvTranspose SAME"],
    ),
    "counts of an average": (
        ops_pool,
        "window_counts",
        wrapped(lambda counts: np.full_like(counts, counts.max())),
        padded_average,
    ),
    "padding that counts": (
        ops_pool,
        "window_counts",
        lambda old: lambda image, place, margin=((0, 0), (0, 0)): old(image, place),
        EXECUTED_MODELS["AveragePool with pads"],
    ),
    "pads of a pool": (channels_last, "pad_split", wrapped(lambda ends: ends[::-1]), EXECUTED_MODELS["MaxPool SAME"]),
    "pads of a convolution": (
        channels_last,
        "pad_split",
        wrapped(lambda ends: ends[::-1]),
        EXECUTED_MODELS["Conv SAME"],
    ),
    "sides of a choice": (
        ops_multi_operand,
        "Select",
        wrapped(lambda op: replace(op, fixed=(op.fixed[0], op.fixed[2], op.fixed[1]))),
        selected,
    ),
    "sides of a mask": (
        ops_compare_select,
        "choice",
        wrapped(lambda op: replace(op, ways=(op.ways[0], op.ways[2], op.ways[1]))),
        EXECUTED_MODELS["Where of a mask"],
    ),
    "limits of a comparison": (ops_compare_select, "_constant_operand", wrapped(first_number_changed), selected),
    "exponent of a minifloat": (
        dialect_qonnx_floatquant,
        "FloatQuant",
        wrapped(lambda q: replace(q, minimum_exponent=q.minimum_exponent + 1)),
        minifloat,
    ),
    "largest minifloat": (dialect_qonnx_floatquant, "_limit", wrapped(lambda limit: limit / 2), minifloat),
    "start of a slice": (ops_image, "_slice_ops", earlier, EXECUTED_MODELS["Slice"]),
    "parts of a split": (ops_image, "_slice_ops", earlier, EXECUTED_MODELS["Split"]),
    "two tensors": (
        ops_multi_operand,
        "Binary",
        wrapped(lambda op: replace(op, kind=BinaryKind.SUB)),
        certified_images.residual,
    ),
    "axis of a join": (
        ops_multi_operand,
        "_concatenated_shape",
        wrapped(joined_along_columns),
        EXECUTED_MODELS["Split"],
    ),
    "mode of blocks": (
        ops_image,
        "_block_size",
        wrapped(lambda pair_: (pair_[0], "DCR")),
        EXECUTED_MODELS["DepthToSpace"],
    ),
    "taps of a maximum": (
        ops_pool,
        "channels_last",
        lambda old: SimpleNamespace(
            **vars(old) | {"pair": lambda points, unit: (max(1, old.pair(points, unit)[0] - 1), unit)}
        ),
        EXECUTED_MODELS["GlobalMaxPool of rows"],
    ),
    "count of a mean": (
        ops_pool,
        "window_counts",
        wrapped(lambda counts: counts + 1),
        EXECUTED_MODELS["GlobalAveragePool"],
    ),
    "ratio of QLinearAdd": (
        dialect_qlinear,
        "_ratio",
        wrapped(lambda pair_: (pair_[0] * np.float32(2), pair_[1])),
        EXECUTED_MODELS["QLinearAdd"],
    ),
    "operand of QLinearAdd": (
        dialect_qlinear,
        "_broadcast",
        wrapped(first_number_changed),
        EXECUTED_MODELS["QLinearAdd, first"],
    ),
    "operand of QLinearMul": (
        dialect_qlinear,
        "_broadcast",
        wrapped(first_number_changed),
        EXECUTED_MODELS["QLinearMul"],
    ),
    "type of QLinearMul": (
        dialect_qlinear,
        "_without_scale",
        wrapped(lambda q: replace(q, type=hlsgen.numerics.fixed.IntType(-127, 127))),
        EXECUTED_MODELS["QLinearMul, first"],
    ),
    "parameters of batches": (
        hlsgen.frontend.ops_standard,
        "operand",
        wrapped(first_number_changed),
        lambda: random_graphs.perceptron(1),
    ),
}


def trunc() -> onnx.ModelProto:
    graph = random_graphs.Graph((1, 3))
    graph.quant(0.5, 0.0, 8.0, signed=1, narrow=0)
    names = [graph.const(np.float32(x)) for x in (0.5, 0, 8, 4)]
    graph.last = graph.node("Trunc", graph.last, *names, domain=dialects.DOMAIN, rounding_mode="FLOOR")
    return graph.model()


@pytest.mark.parametrize("name", list(BUGS))
def test_a_bug_of_the_frontend(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build and certificate are made with the bug; the second reading detects it."""
    module, function, bug, make = BUGS[name]
    onnx.save(make(), tmp_path / "m.onnx")
    assert read(tmp_path / "m.onnx").problems == ()
    monkeypatch.setattr(module, function, bug(getattr(module, function)))
    for importer in (dialect_integer, dialect_qlinear, ops_conv, ops_linear):  # modules that import the function
        if function in vars(importer) and importer is not module and function != "integer_weights":
            monkeypatch.setattr(importer, function, getattr(module, function))
    reading = read(tmp_path / "m.onnx")
    assert reading.problems, reading.once


@pytest.mark.parametrize(
    "name", ["rounding", "weight axes", "narrow", "weight off by one", "code of the border", "scale of the output"]
)
def test_certify_reports_a_bug_of_the_frontend(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, bug, make = BUGS[name]
    onnx.save(make(), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "right")
    assert messages(tmp_path / "right") == []
    monkeypatch.setattr(module, function, bug(getattr(module, function)))
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "wrong")
    assert any("read a second time" in text for text in messages(tmp_path / "wrong"))


def read(path: Path, change: Callable[[Model], Model] = lambda model: model) -> Any:
    model = import_model(path, Collector())
    assert model is not None
    return compare(path, change(model))


# --------------------------------------------------------------------------- models without bugs


NUMBERS = (np.ndarray, int, float, tuple)


def models_of_all_dialects() -> dict[str, Make]:
    """Models in all dialects."""
    models: dict[str, Make] = {
        form: lambda f=form: dialects.write(dialects.random_network(2, 4, (6, 5, 3)), f) for form in dialects.FORMS
    }  # type: ignore[misc]
    models |= {f"figure {f}": lambda f=f: prequantized(f, (6, 4)) for f in ("F1", "F2", "F3", "F4", "F6")}  # type: ignore[misc]
    return models | {
        "qonnx linear": linear,
        "qdq": qdq,
        "qlinear": qlinear,
        "qlinear conv": lambda: qlinear(conv=True),
        "trunc": trunc,
        "border": bordered,
        "path": lambda: random_graphs.datapath(3),
        "net": lambda: random_graphs.perceptron(4),
        "abs": lambda: quantizer("Abs"),
        **EXECUTED_MODELS,
    }


@pytest.mark.parametrize("name", list(models_of_all_dialects()))
def test_all_dialects_are_read_twice(name: str, tmp_path: Path) -> None:
    onnx.save(models_of_all_dialects()[name](), tmp_path / "m.onnx")
    reading = read(tmp_path / "m.onnx")
    assert reading.problems == ()
    allowed = ("Clip",) if name == "qcdq" else ()
    file = ModelFile(tmp_path / "m.onnx")
    kinds = {n: node.op_type for n, node in zip(file.names, file.nodes, strict=True)}
    assert {kinds[n] for n in reading.once} <= set(allowed)


def test_forms_that_onnxruntime_gives_a_group(tmp_path: Path) -> None:
    """A border that becomes a code, because the quantizer moves before it; a sign that wraps."""
    graph = Graph()
    graph.then("DequantizeLinear", np.float32(0.5), np.uint8(7))
    ends = [graph.const(np.array([0, 0, 1, 0, 0, 0, 1, 0])), graph.const(np.float32(1.5))]
    graph.nodes.append(helper.make_node("Pad", [graph.last, *ends], ["wide"]))
    graph.last = "wide"
    graph.then("QuantizeLinear", np.float32(0.25), np.uint8(9))
    onnx.save(finished(graph, np.uint8, [1, 2, 3, 3]), tmp_path / "m.onnx")
    assert read(tmp_path / "m.onnx").problems == ()
    graph = Graph()
    graph.nodes.append(helper.make_node("Sub", [graph.const(np.uint8([3, 4])), graph.last], ["less"]))
    graph.last = "less"
    onnx.save(finished(graph, np.uint8, [1, 2]), tmp_path / "m.onnx")
    reading = read(tmp_path / "m.onnx")
    assert (reading.problems, reading.once) == ((), ())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.onnx")), ids=lambda path: path.stem)
def test_networks_agree(path: Path) -> None:
    assert read(path).problems == ()


@pytest.mark.parametrize("name", list(certified_images.IMAGES))
def test_images_agree(name: str, tmp_path: Path) -> None:
    onnx.save(certified_images.IMAGES[name][0].model(), tmp_path / "m.onnx")  # type: ignore[operator]
    assert read(tmp_path / "m.onnx").problems == ()


@pytest.mark.parametrize(
    "name", ["qonnx linear", "qdq", "qlinear", "qlinear conv", "trunc", "border", "integer", "net", "path"]
)
def test_every_number_of_the_model(name: str, tmp_path: Path) -> None:
    """Each number of each step is changed in turn: it is detected, or the node is listed."""
    onnx.save(models_of_all_dialects()[name](), tmp_path / "m.onnx")
    model = import_model(tmp_path / "m.onnx", Collector())
    assert model is not None
    for i, step in enumerate(model.steps):
        for field, value in vars(step.op).items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and value.size:
                changed = replace(step, op=replace(step.op, **{field: first_number_changed(value)}))
                steps = (*model.steps[:i], changed, *model.steps[i + 1 :])
                reading = compare(tmp_path / "m.onnx", replace(model, steps=steps))
                assert reading.problems or step.name in reading.once, (step.name, field)


@pytest.mark.parametrize(
    "kind", "Tanh Sigmoid Erf Exp Softplus Mish Elu Selu Celu Softsign HardSwish LeakyRelu".split()
)
def test_a_function_that_is_one_place_off(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has only the operator's name; values of its function are compared with onnx's evaluator."""
    bounds = np.float32(0.5), np.float32(0), np.float32(8)
    attributes = {"domain": dialects.DOMAIN, "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    graph = Graph()
    graph.then("Quant", *bounds, **attributes)
    graph.then(kind)
    graph.then("Quant", *bounds, **attributes)
    model = finished(graph, "float32", [1, 4])
    model.opset_import[0].version = 22
    model.opset_import.append(helper.make_opsetid(dialects.DOMAIN, 1))
    onnx.save(model, tmp_path / "m.onnx")
    reading = read(tmp_path / "m.onnx")
    assert not reading.problems
    assert not reading.once

    def one_place_up(op: Any, x: Any) -> Any:
        return np.nextafter(apply(op, x), np.float32(np.inf))

    monkeypatch.setattr(activations, "apply", one_place_up)
    activations.differences_of_values.cache_clear()
    assert any(kind in text for _, text in read(tmp_path / "m.onnx").problems)
    activations.differences_of_values.cache_clear()


def test_nodes_that_are_read_once_are_listed(tmp_path: Path) -> None:
    """Their misreadings are not detected."""
    g = images(2, 2, 3)
    g.then("PRelu", np.float32([0.25, 0.5]).reshape(2, 1, 1))
    onnx.save(g.codes(4.0, 0.3).model(), tmp_path / "m.onnx")
    model = import_model(tmp_path / "m.onnx", Collector())
    assert model is not None
    (name,) = compare(tmp_path / "m.onnx", model).once

    def wrong(step: Step) -> Step:
        return replace(step, op=replace(step.op, value=step.op.value * 2)) if step.name == name else step  # type: ignore[union-attr, type-var]

    changed = replace(model, steps=tuple(map(wrong, model.steps)))
    assert any(a is not b for a, b in zip(changed.steps, model.steps, strict=True))
    assert compare(tmp_path / "m.onnx", changed).problems == ()
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    listed = {x.name: x.where for x in hlsgen.certify(tmp_path / "out").assumed}
    assert name in listed["read-once"]


def test_it_shares_nothing_with_the_frontend() -> None:
    frontend = ("hlsgen.frontend", "hlsgen.passes", "hlsgen.numerics.tflite")
    for path in (ROOT / "hlsgen" / "certify" / "second_reading").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            shared = [name for name in names if name.startswith(frontend)]
            assert set(shared) <= {"hlsgen.frontend.load"}, path  # reads the file, and inlines its functions


def test_names_as_the_frontend_has_them(tmp_path: Path) -> None:
    """Also for nodes without names, or with equal names."""
    model = onnx.load(DATA / "floor_ceil.onnx")
    for n, node in enumerate(model.graph.node):
        node.name = ["", "same", "with\nline", "with\\slash"][n % 4]
    onnx.save(model, tmp_path / "m.onnx")
    once = read(tmp_path / "m.onnx").once
    assert once == ()


def test_negative_scales_of_weights_are_read_alike(tmp_path: Path) -> None:
    """In a layer of integers the codes have the opposite sign in both readings."""
    graph, rng = Graph(), np.random.default_rng(5)
    unit, zero = np.float32(0.25), np.uint8(128)
    graph.then("QuantizeLinear", unit, zero).then("DequantizeLinear", unit, zero)
    scales = np.array([0.5, -0.125, -0.25, 1], np.float32)
    weights = dequantized(graph, rng.integers(-128, 128, (4, 4)).astype(np.int8), scales, np.arange(4).astype(np.int8))
    graph.then("MatMul", weights).then("QuantizeLinear", np.float32(8), zero)
    path = tmp_path / "model.onnx"
    onnx.save(finished(graph, np.float32, [1, 4]), path)
    model = import_model(path, Collector(), runtime="onnx")
    assert model is not None
    reading = compare(path, model)
    assert (reading.problems, reading.once) == ((), ())
