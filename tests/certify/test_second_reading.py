"""A misreading of the frontend does not pass: numbers are read twice. What is read once is listed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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
from hlsgen.certify.second_reading import compare
from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.diagnostics import Collector
from hlsgen.frontend import (
    constants,
    dialect_integer,
    dialect_qlinear,
    dialect_qonnx,
    import_model,
    ops_conv,
    ops_image,
    ops_linear,
    qdq_fusion,
    quantizer_parameters,
)
from hlsgen.ir import Model, Step
from hlsgen.numerics.fixed import Rounding

Make = Callable[[], onnx.ModelProto]


def linear(spread: float = 0.3, **attributes: Any) -> onnx.ModelProto:
    """A quantizer, a square matrix behind a quantizer of its own by rows, a bias, a quantizer."""
    graph, rng, rows = Graph(), np.random.default_rng(3), 4
    more = {"domain": dialects.DOMAIN, "signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
    graph.then("Quant", np.float32(0.5), np.float32(0), np.float32(4), **more)
    weight = graph.const(rng.normal(0, 1, (rows, rows)).astype(np.float32))
    parts = [
        graph.const(x) for x in (np.linspace(0.2, 0.2 + spread, rows, dtype=np.float32), np.float32(0), np.float32(4))
    ]
    graph.nodes.append(helper.make_node("Quant", [weight, *parts], ["codes"], **more))
    graph.nodes.append(helper.make_node("MatMul", [graph.last, "codes"], ["sums"]))
    graph.last = "sums"
    graph.then("Add", np.linspace(-1, 1, rows, dtype=np.float32))
    graph.then("Quant", np.float32(0.7), np.float32(0), np.float32(3), **more)
    made = finished(graph, "float32", [1, rows])
    made.opset_import.append(helper.make_opsetid(dialects.DOMAIN, 1))
    return made


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
    rest = [rng.integers(-99, 99, 4).astype(np.int32), {"strides": [1, 2], "pads": [0, 1, 2, 0]}] if conv else []
    shape = [1, 4, 5, 5] if conv else [1, 4]
    return chain(("QLinearConv" if conv else "QLinearMatMul", *constants, *rest), source=np.int8, shape=shape)


def by_axis() -> onnx.ModelProto:
    """A quantizer with a scale for each index of axis 1, of data with as many at axis 2."""
    parts = (np.linspace(0.1, 0.4, 4, dtype=np.float32), np.zeros(4, np.int8), {"axis": 1})
    return chain(("QuantizeLinear", *parts), ("DequantizeLinear", *parts), source=np.float32, shape=[1, 4, 4])


def bordered() -> onnx.ModelProto:
    """A border of a number that is not zero."""
    g = certified_images.Images(2, 4, 4).codes()
    g.last = g.node("Pad", g.last, g.const(np.array([0, 0, 1, 2, 0, 0, 0, 1]), np.int64), g.const(np.float32(1.5)))
    return g.codes(3.0).model()


def wrapped(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes a function of one that gives the changed result."""
    return lambda original: lambda *given, **named: change(original(*given, **named))


def other(array: Any) -> Any:
    """The first number one more."""
    result = array.copy()
    result.flat[0] += 1
    return result


def flipped(original: Any) -> Any:
    """Square weights by columns in place of rows."""

    def weights(name: str, const: Any) -> Any:
        return original(name, const.map(np.transpose))

    return weights


#: What is wrong, where, and a model that has it.
BUGS: dict[str, tuple[Any, str, Callable[[Any], Any], Make]] = {
    "rounding": (quantizer_parameters, "parse_rounding", wrapped(lambda mode: Rounding.FLOOR), linear),
    "rounding of Trunc": (quantizer_parameters, "parse_rounding", wrapped(lambda mode: Rounding.CEIL), lambda: trunc()),
    "weight axes": (ops_linear, "integer_weights", flipped, lambda: linear(spread=0)),
    "axis of a scale": (dialect_integer, "placed", lambda old: lambda n, v, s, axis, what: old(n, v, s, 3 - axis, what), by_axis),
    "narrow": (dialect_qonnx, "int_type", lambda old: lambda bits, signed, narrow=False: old(bits, signed), lambda: linear(narrow=1)),
    "signed": (dialect_qonnx, "int_type", lambda old: lambda bits, signed, narrow=False: old(bits, False, narrow), linear),
    "bit width": (dialect_qonnx, "int_type", lambda old: lambda bits, signed, narrow=False: old(bits + 1, signed, narrow), linear),
    "weight off by one": (ops_linear, "integer_weights", wrapped(lambda found: (other(found[0]), found[1])), linear),
    "scale of a row": (ops_linear, "integer_weights", wrapped(lambda found: (found[0], found[1] * np.float32(2))), linear),
    "code of the border": (ops_image, "_value", wrapped(lambda value: value + 0.5), bordered),
    "pads": (ops_image, "_border", lambda old: lambda n, s, around, v: old(n, s, [*around[:2], *around[:1:-1]], v), bordered),
    "scale of the output": (dialect_integer, "quantizer_of", wrapped(lambda q: replace(q, scale=q.scale * np.float32(2))), lambda: prequantized("F1", (16, 6))),
    "zero point of the output": (dialect_integer, "quantizer_of", wrapped(lambda q: replace(q, zero_point=q.zero_point + 1)), qdq),
    "type of the output": (dialect_integer, "quantizer_of", wrapped(lambda q: replace(q, type=hlsgen.numerics.fixed.IntType(-127, 127))), qdq),
    "scale of the data": (dialect_integer, "dequantizer_of", wrapped(lambda d: replace(d, scale=d.scale * np.float32(2))), qdq),
    "zero point of the data": (dialect_integer, "dequantizer_of", wrapped(lambda d: replace(d, zero_point=d.zero_point + 1)), qdq),
    "bias of a group": (qdq_fusion, "_int32", wrapped(lambda codes: None if codes is None else other(codes)), qdq),
    "bias": (hlsgen.frontend.ops_standard, "operand", wrapped(other), linear),
    "factor of QLinear": (dialect_qlinear, "scale_product", wrapped(lambda x: x * np.float32(1.5)), qlinear),
    "weight of QLinear": (dialect_integer, "integer_tensor", wrapped(other), qlinear),
    "zero point of QLinear": (dialect_integer, "zero_of", wrapped(lambda zero: zero + 1), qlinear),
    "bias of QLinearConv": (ops_conv, "placed", wrapped(other), lambda: qlinear(conv=True)),
    "strides": (ops_conv, "window", wrapped(lambda w: replace(w, strides=w.strides[::-1], pads=w.pads)), lambda: qlinear(conv=True)),
    "pads of a window": (ops_conv, "window", wrapped(lambda w: replace(w, pads=(*w.pads[2:], *w.pads[:2]))), lambda: qlinear(conv=True)),
    "order of weights": (ops_conv, "integer_tensor", wrapped(lambda w: w.swapaxes(2, 3)), lambda: qlinear(conv=True)),
    "a constant's code": (constants, "quantized", lambda old: lambda op, data: old(op, replace(data, array=-data.array)), linear),
    "QLinearMul": (hlsgen.frontend.two_inputs, "scale_of", wrapped(lambda s: s * np.float32(2)), lambda: pair("QLinearMul")),
    "parameters of batches": (hlsgen.frontend.ops_standard, "operand", wrapped(other), lambda: random_graphs.perceptron(1)),
}  # fmt: skip


def trunc() -> onnx.ModelProto:
    graph = random_graphs.Graph((1, 3))
    graph.quant(0.5, 0.0, 8.0, signed=1, narrow=0)
    names = [graph.const(np.float32(x)) for x in (0.5, 0, 8, 4)]
    graph.last = graph.node("Trunc", graph.last, *names, domain=dialects.DOMAIN, rounding_mode="FLOOR")
    return graph.model()


@pytest.mark.parametrize("name", list(BUGS))
def test_a_bug_of_the_frontend(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both build and certificate are made with it; a second reading tells."""
    module, function, bug, make = BUGS[name]
    onnx.save(make(), tmp_path / "m.onnx")
    assert read(tmp_path / "m.onnx").problems == ()
    monkeypatch.setattr(module, function, bug(getattr(module, function)))
    for other_ in (dialect_integer, dialect_qlinear, ops_conv, ops_linear):  # where it was imported from there
        if function in vars(other_) and other_ is not module and function != "integer_weights":
            monkeypatch.setattr(other_, function, getattr(module, function))
    found = read(tmp_path / "m.onnx")
    assert found.problems, found.once


@pytest.mark.parametrize("name", ["rounding", "weight axes", "narrow", "weight off by one", "code of the border", "scale of the output"])  # fmt: skip
def test_certify_says_so(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --------------------------------------------------------------------------- what is read


NUMBERS = (np.ndarray, int, float, tuple)


def forms() -> dict[str, Make]:
    """Models in all dialects."""
    found: dict[str, Make] = {
        form: lambda f=form: dialects.write(dialects.random_network(2, 4, (6, 5, 3)), f) for form in dialects.FORMS
    }  # type: ignore[misc]
    found |= {f"figure {f}": lambda f=f: prequantized(f, (6, 4)) for f in ("F1", "F2", "F3", "F4", "F6")}  # type: ignore[misc]
    return found | {
        "qonnx linear": linear, "qdq": qdq, "qlinear": qlinear, "qlinear conv": lambda: qlinear(conv=True), "trunc": trunc,
        "border": bordered, "path": lambda: random_graphs.datapath(3), "net": lambda: random_graphs.perceptron(4),
        "abs": lambda: quantizer("Abs"),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(forms()))
def test_all_dialects_are_read_twice(name: str, tmp_path: Path) -> None:
    onnx.save(forms()[name](), tmp_path / "m.onnx")
    found = read(tmp_path / "m.onnx")
    assert found.problems == ()
    allowed = ("Clip",) if name == "qcdq" else ()
    file = ModelFile(tmp_path / "m.onnx")
    kinds = {n: node.op_type for n, node in zip(file.names, file.nodes, strict=True)}
    assert {kinds[n] for n in found.once} <= set(allowed)


def test_forms_that_onnxruntime_gives_a_group(tmp_path: Path) -> None:
    """A border that becomes a code behind a quantizer that moves in front of it; a sign that wraps."""
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
    found = read(tmp_path / "m.onnx")
    assert (found.problems, found.once) == ((), ())


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
    """Of each step each number in turn is changed: it is seen, or the node is listed."""
    onnx.save(forms()[name](), tmp_path / "m.onnx")
    model = import_model(tmp_path / "m.onnx", Collector())
    assert model is not None
    for i, step in enumerate(model.steps):
        for field, value in vars(step.op).items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and value.size:
                changed = replace(step, op=replace(step.op, **{field: other(value)}))
                steps = (*model.steps[:i], changed, *model.steps[i + 1 :])
                found = compare(tmp_path / "m.onnx", replace(model, steps=steps))
                assert found.problems or step.name in found.once, (step.name, field)


def test_what_is_read_once_is_listed(tmp_path: Path) -> None:
    """And is not seen if it is wrong."""
    onnx.save(certified_images.pools(), tmp_path / "m.onnx")
    model = import_model(tmp_path / "m.onnx", Collector())
    assert model is not None
    pools = [n for n in compare(tmp_path / "m.onnx", model).once if "AveragePool" in n]
    assert len(pools) == 1

    def wrong(step: Step) -> Step:
        return (
            replace(step, op=replace(step.op, value=step.op.value * 2))
            if step.name == pools[0] and hasattr(step.op, "value")
            else step
        )  # type: ignore[type-var]

    changed = replace(model, steps=tuple(map(wrong, model.steps)))
    assert any(a is not b for a, b in zip(changed.steps, model.steps, strict=True))
    assert compare(tmp_path / "m.onnx", changed).problems == ()
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    listed = {x.name: x.where for x in hlsgen.certify(tmp_path / "out").assumed}
    assert pools[0] in listed["read-once"]


def test_it_shares_nothing_with_the_frontend() -> None:
    for path in (ROOT / "hlsgen" / "certify" / "second_reading").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] if isinstance(node, ast.Import) else []  # fmt: skip
            assert not any("hlsgen.frontend" in name or "hlsgen.passes" in name for name in names), path


def test_names_as_the_frontend_has_them(tmp_path: Path) -> None:
    """Also of nodes without names, or with equal ones."""
    made = onnx.load(DATA / "floor_ceil.onnx")
    for n, node in enumerate(made.graph.node):
        node.name = ["", "same", "with\nline", "with\\slash"][n % 4]
    onnx.save(made, tmp_path / "m.onnx")
    once = read(tmp_path / "m.onnx").once
    assert once == ()
