"""The file, the Model and the Graph mean the same: file == Model by other executors, Model == Graph by integers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import dialects
import file_oracle
import image_nets
import numpy as np
import onnx
import ort
import pytest
import random_graphs
from branches import network as sum_of_three
from integer_models import FIGURES, codes, prequantized, quantize_mlp
from models import Net
from numpy.typing import NDArray
from onnx import TensorProto
from paths import DATA, INPUT_TYPES, ROOT, SHARED
from typer.testing import CliRunner

import hlsgen
import hlsgen.driver.compile
from hlsgen import ir
from hlsgen.cli import app
from hlsgen.cli.verdict_text import print_end, print_model
from hlsgen.diagnostics import CODES, Collector, HlsgenError
from hlsgen.driver.options import parse_input
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter import model as model_interpreter
from hlsgen.interpreter.equivalence import Comparison, compare
from hlsgen.interpreter.exact_numbers import to_float32
from hlsgen.ir import Graph, Model
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.ops import Activation, Add, IntQuant, Mul
from hlsgen.numerics.fixed import Rounding
from hlsgen.passes import lower
from hlsgen.simulation.directed import affordable_frames, directed

Array = NDArray[Any]


def imported(proto: onnx.ModelProto, folder: Path) -> Model:
    """What the file says. Raises HlsgenError."""
    problems = Collector()
    onnx.save(proto, folder / "model.onnx")
    model = import_model(folder / "model.onnx", problems)
    problems.finish()
    assert model is not None
    return model


def lowered(model: Model, mode: str | None = None) -> Graph:
    return lower(model, parse_input(mode), Collector())


def check_both(
    proto: onnx.ModelProto, folder: Path, frames: int = 3, input_type: str | None = None
) -> tuple[file_oracle.Report, Comparison]:
    """File against Model, Model against Graph."""
    model = imported(proto, folder)
    graph = lowered(model, input_type)
    report = file_oracle.hold(proto, model, file_oracle.stimuli(model, frames))
    return report, compare(model, graph, samples(graph, frames + 4))


def samples(graph: Graph, frames: int, seed: int = 0) -> Array:
    """Codes of the input port, the extremes first."""
    value, rng = graph.input, np.random.default_rng(seed)
    if isinstance(value.encoding, ir.FloatKey):
        return float_to_key((rng.standard_normal((frames, *value.shape)) * 4).astype(np.float32))
    codes = rng.integers(value.type.lo, value.type.hi + 1, (frames, *value.shape))
    codes[0], codes[1] = value.type.lo, value.type.hi
    return codes


def assert_held(
    proto: onnx.ModelProto, folder: Path, frames: int = 3, input_type: str | None = None
) -> file_oracle.Report:
    report, comparison = check_both(proto, folder, frames, input_type)
    assert not report.differing, report.differing
    assert comparison.difference is None, comparison.difference
    assert sum(report.held.values()) > 0
    return report


def test_cubes_of_pixels_and_channels(tmp_path: Path) -> None:
    """As many channels as rows and columns: a quantizer moved past a pool has its axes in another order."""
    n = Net((1, 4, 4, 4)).quant(0.3, bits=6.0, name="q0").then("Mul", 0.37, name="mul")
    n.then("MaxPool", kernel_shape=[2, 2], pads=[0, 0, 1, 1], name="pool").quant(0.2, bits=4.0, name="q1")
    model = imported(n.model(), tmp_path)
    graph = lowered(model)
    assert compare(model, graph, samples(graph, 6)).ok
    wrong = replace(
        model,
        steps=tuple(
            replace(s, op=replace(s.op, scale=s.op.scale * 2)) if isinstance(s.op, IntQuant) and s.name == "q1" else s
            for s in model.steps
        ),
    )
    assert not compare(wrong, graph, samples(graph, 6)).ok


def test_an_operand_after_float_operations(tmp_path: Path) -> None:
    """Its numbers are multiples of its own scale, beside codes of another one."""
    n = Net((1, 3, 4, 4))
    negated = n.quant(0.137, bits=6.0, name="one").then("Neg", name="neg").last
    two = n.node("IntQuant", "x", 0.0731, 0.0, 6.0, domain="qonnx.custom_op.general", name="two").last
    n.node("Concat", negated, two, axis=1, name="join")
    weight = np.random.default_rng(0).integers(-7, 8, (6, 1, 3, 3)).astype(np.float32)
    n.then("Conv", weight, group=6, kernel_shape=[3, 3], name="conv")
    model = imported(n.model(), tmp_path)
    graph = lowered(model)
    assert compare(model, graph, samples(graph, 12)).ok


# --------------------------------------------------------------------------- models that others made

FILES = sorted([*DATA.glob("*.onnx"), *ROOT.glob("examples/*/*.onnx")])
FILES = [path for path in FILES if path.stem != "digits_cnn_float"]  # not quantized
FILES = [
    path for path in FILES if path.parent.stem != "digits_sequences"
]  # normalizations and a Scan: test_sequences.py
#: Large images, or many channels: some minutes.
LARGE = ("bsd300", "eltwise_chanlast", "resnet8", "cnv", "radioml", "dscnn_w8a8")
OTHERS = sorted([*(SHARED / "brevitas").glob("*.onnx"), *(SHARED / "public").glob("*.onnx")]) or [SHARED / "absent"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_the_project(path: Path, tmp_path: Path) -> None:
    report = assert_held(onnx.load(path), tmp_path, input_type=INPUT_TYPES.get(path.stem))
    assert sum(report.left.values()) == 0, report.left


def other_file(path: Path, tmp_path: Path, frames: int) -> None:
    if not path.exists():
        pytest.skip(f"{SHARED} is not there")
    try:
        assert_held(onnx.load(path), tmp_path, frames, INPUT_TYPES.get(path.stem))
    except HlsgenError as error:
        pytest.skip(str(error)[:100])


@pytest.mark.parametrize("path", [p for p in OTHERS if not any(n in p.stem for n in LARGE)], ids=lambda p: p.stem)
def test_files_of_others(path: Path, tmp_path: Path) -> None:
    other_file(path, tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in OTHERS if any(n in p.stem for n in LARGE)], ids=lambda p: p.stem)
def test_large_files_of_others(path: Path, tmp_path: Path) -> None:
    other_file(path, tmp_path, 1)


# --------------------------------------------------------------------------- random models


def random_model(kind: str, seed: int, powers: bool) -> onnx.ModelProto:
    match kind:
        case "datapath":
            return random_graphs.datapath(2 * seed + powers)
        case "perceptron":
            return random_graphs.perceptron(seed, powers)
        case "sum":
            chosen = np.random.default_rng(seed).choice([0.0, 0.3, 0.25, 0.6], 3).tolist()
            return sum_of_three(chosen, ["Add Add", "Sub Add", "Add Sub"][seed % 3])
        case "qonnx" | "qcdq" | "integer":
            net = dialects.random_network(seed, 3 + seed % 6, (9, 7, 4), last_relu=powers)
            return dialects.write(net, kind, gemm=powers)
        case _:
            return image_nets.network(kind, seed, powers)


KINDS = ["datapath", "perceptron", "sum", *dialects.FORMS, *image_nets.NETWORKS]


def assert_random(kind: str, seed: int, powers: bool, folder: Path) -> None:
    try:
        proto = random_model(kind, seed, powers)
    except AssertionError as error:
        pytest.skip(f"no such model: {error}")
    try:
        assert_held(proto, folder)
    except HlsgenError as error:
        pytest.skip(str(error)[:100])


@pytest.mark.parametrize("powers", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_random_models(kind: str, powers: bool, tmp_path: Path) -> None:
    assert_random(kind, 2, powers, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_models(kind: str, seed: int, tmp_path: Path) -> None:
    for powers in (True, False):
        assert_random(kind, seed, powers, tmp_path)


# --------------------------------------------------------------------------- integer models, as a whole


@pytest.mark.parametrize("figure", [f for f in FIGURES if f != "F6"])
def test_integer_models_in_onnxruntime(figure: str, tmp_path: Path) -> None:
    """Equal from the file's input to its output, and node by node. (F6 is a float16 Sigmoid, wrong in onnxruntime.)"""
    proto = prequantized(figure, [12, 8], rows=1, opset=19)
    model = imported(proto, tmp_path)
    x = codes(proto, 20)
    outputs = model_interpreter.interpret(model, x[:, None].reshape(-1, *model.input_shape))[-1].value
    want = np.concatenate([ort.run(proto, {"x": sample[None]})[0] for sample in x])
    assert np.array_equal(outputs.reshape(want.shape), want)
    assert_held(proto, tmp_path)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("gemm", [False, True])
def test_quantized_by_onnxruntime(form: str, gemm: bool, tmp_path: Path) -> None:
    """Groups that the import fuses are those that onnxruntime runs as integer layers."""
    path, x = quantize_mlp(tmp_path, form, "uint8", "int8", gemm=gemm)
    model = imported(onnx.load(path), tmp_path)
    outputs = model_interpreter.interpret(model, x[:50].reshape(-1, *model.input_shape))[-1].value
    assert np.array_equal(outputs.reshape(50, -1), ort.run(path, {"x": x[:50]})[0])
    graph = lowered(model)
    assert compare(model, graph, samples(graph, 20)).ok


# --------------------------------------------------------------------------- exact numbers


def test_one_rounding() -> None:
    """Products at and next to the midpoint of two float32 numbers, and others."""
    rng = np.random.default_rng(0)
    scales = [Fraction(float(np.float32(s))) * Fraction(float(np.float32(t))) for s, t in rng.uniform(0.01, 1, (40, 2))]
    scales += [Fraction(1, 8), Fraction(3, 2), Fraction(float(np.float32(0.1)))]
    odd = rng.integers(1 << 24, 1 << 30, (50, len(scales))) | 1
    for integers in (odd, odd % 1000 - 500, -odd):
        rounded = to_float32(integers, scales)
        for (row, column), number in np.ndenumerate(integers):
            exact = int(number) * scales[column]
            value = rounded[row, column]
            gap = abs(Fraction(float(value)) - exact)
            for neighbour in (np.nextafter(value, np.float32(np.inf)), np.nextafter(value, np.float32(-np.inf))):
                distance = abs(Fraction(float(neighbour)) - exact)
                assert gap < distance or (gap == distance and int(value.view(np.int32)) % 2 == 0)


def test_sums_beyond_floats(tmp_path: Path) -> None:
    """The largest weights on the largest codes: the exact sum, where float64 has rounded."""
    x = np.full((1, 1, 3), (1 << 52) + 1, np.int64)
    step = ir.Step("fc", ir.MatMul(np.array([[3, 5, 7]]), np.ones(1, np.float32)), (1, 1), (0,))
    model = Model("m", "x", (1, 3), "int64", True, None, (step,), "y", "float32")
    result = model_interpreter.interpret(model, x)[-1]
    assert result.exact is not None
    assert int(result.exact.integers[0, 0, 0]) == 15 * ((1 << 52) + 1)


# --------------------------------------------------------------------------- differences that the comparison finds


def small() -> onnx.ModelProto:
    """Every kind of layer that a seed below changes."""
    n = Net((1, 2, 6, 6)).quant(0.25, 0.0, 4.0, name="q0")
    weight = (np.arange(36).reshape(2, 2, 3, 3) % 7 - 3).astype(np.float32) / 4
    data = n.last
    n.node("IntQuant", weight, 0.25, 0.0, 4.0, domain="qonnx.custom_op.general")
    n.node("Conv", data, n.last, name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    n.then("LeakyRelu", alpha=0.1, name="leaky").quant(0.3, 1.0, 4.0, name="q1")
    skip = n.last
    n.then("MaxPool", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], name="pool").quant(
        0.5, 0.0, 4.0, name="q2"
    )
    n.node("Sub", skip, n.last, name="sub").quant(0.25, 0.0, 5.0, name="q3")
    n.then("Transpose", perm=[0, 1, 3, 2], name="turn").then("Flatten", name="flat")
    return n.linear(6, 72, name="fc").then("Mul", 1.5, name="mul").quant(0.5, 0.0, 6.0, name="q4").model()


def changed(model: Model, name: str, change: Callable[[Any], Any]) -> Model:
    """The model with another operator in the steps of a name."""
    steps = tuple(replace(s, op=change(s.op)) if s.name == name else s for s in model.steps)
    assert any(new.op is not old.op for new, old in zip(steps, model.steps, strict=True))
    return replace(model, steps=steps)


def on(kind: type[Any], change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda op: change(op) if isinstance(op, kind) else op


def mixed(weight: Array) -> Array:
    return weight[:, ::-1].copy()


#: Wrong imports: the name of a node, and the operator that replaces its own.
IMPORTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rounding mode": ("q1", on(IntQuant, lambda op: replace(op, mode=Rounding.FLOOR))),
    "narrow": ("q0", on(IntQuant, lambda op: replace(op, type=replace(op.type, lo=op.type.lo + 1)))),
    "sign of a zero point": ("q1", on(IntQuant, lambda op: replace(op, zero_point=-op.zero_point))),
    "scale of another quantizer": ("q4", on(IntQuant, lambda op: replace(op, scale=op.scale / 2))),
    "default of alpha": ("leaky", on(Activation, lambda op: replace(op, alpha=0.01))),
    "order of weights": ("conv", on(ir.Conv, lambda op: replace(op, weight=mixed(op.weight)))),
    "transposed kernel": ("conv", on(ir.Conv, lambda op: replace(op, weight=op.weight.transpose(0, 2, 1, 3).copy()))),
    "pads on the other side": (
        "conv",
        on(ir.Conv, lambda op: replace(op, window=replace(op.window, pads=(2, 1, 0, 1)))),
    ),
    "columns of a matrix": ("fc", on(ir.MatMul, lambda op: replace(op, weight=mixed(op.weight)))),
    "sum in place of the maximum": ("pool", on(ir.Pool, lambda op: replace(op, kind=ir.Reduction.SUM))),
    "operands exchanged": ("sub", on(ir.Binary, lambda op: replace(op, kind=ir.BinaryKind.ADD))),
    "a constant": ("mul", on(Mul, lambda op: replace(op, value=np.float32(1.25) * np.ones_like(op.value)))),
}


@pytest.mark.parametrize("seed", IMPORTS)
def test_a_wrong_import_differs_from_the_file(seed: str, tmp_path: Path) -> None:
    """The node is named. Model and Graph agree, as the Graph is made of the wrong Model."""
    proto = small()
    model = imported(proto, tmp_path)
    name, change = IMPORTS[seed]
    wrong = changed(model, name, change)
    report = file_oracle.hold(proto, wrong, file_oracle.stimuli(wrong))
    assert [text.split(" ")[0] for text in report.differing] == [name]
    assert not file_oracle.hold(proto, model, file_oracle.stimuli(model)).differing


def layered(graph: Graph, name: str, change: Callable[[Any], Any]) -> Graph:
    layers = tuple(change(layer) if layer.name == name else layer for layer in graph.layers)
    assert any(new is not old for new, old in zip(layers, graph.layers, strict=True))
    return replace(graph, layers=layers)


def offset(layer: Any) -> Any:
    meaning = layer.source.encoding
    return replace(layer, source=replace(layer.source, encoding=replace(meaning, offset=-meaning.offset)))


#: Wrong passes: the name of a layer, and its replacement.
LOWERINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "order of weights": ("conv", on(ir.Convolution, lambda x: replace(x, weight=mixed(x.weight)))),
    "code of the padding": ("conv", on(ir.Convolution, lambda x: replace(x, pad=1))),
    "padding of a pool": ("pool", on(ir.Pooling, lambda x: replace(x, pad=7))),
    "an operation left out": ("q1", on(ir.Map, lambda x: replace(x, ops=x.ops[:-1]))),
    "rounding mode": ("q3", on(ir.BinaryMap, lambda x: replace(x, quantizer=replace(x.quantizer, mode=Rounding.CEIL)))),
    "operands exchanged": ("q3", on(ir.BinaryMap, lambda x: replace(x, inputs=x.inputs[::-1]))),
    "another joint": ("q3", on(ir.BinaryMap, lambda x: replace(x, kind=ir.BinaryKind.ADD))),
    "columns of a matrix": ("fc", on(ir.Linear, lambda x: replace(x, weight=mixed(x.weight)))),
    "a scale": (
        "q4",
        on(ir.Map, lambda x: replace(x, quantizer=replace(x.quantizer, scale=x.quantizer.scale * 2))),
    ),
}


@pytest.mark.parametrize("seed", LOWERINGS)
def test_a_wrong_pass_differs_from_the_model(seed: str, tmp_path: Path) -> None:
    model = imported(small(), tmp_path)
    graph = lowered(model)
    x = samples(graph, 20)
    assert compare(model, graph, x).ok
    name, change = LOWERINGS[seed]
    difference = compare(model, layered(graph, name, change), x).difference
    assert difference is not None
    assert difference.layer == {"pool": "q2"}.get(name, name)


def falling() -> onnx.ModelProto:
    n = Net((1, 2, 4, 4)).quant(0.25, 0.0, 6.0, name="q0").then("Mul", 0.7, name="mul")
    n.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2], name="pool")
    return n.then("HardSigmoid", alpha=-0.3, beta=0.5, name="falls").quant(0.05, 0.0, 6.0, name="q1").model()


def wrapping() -> onnx.ModelProto:
    n = Net((1, 2, 4, 4), TensorProto.INT8).then("Add", np.array(5, np.int8), name="add")
    n.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2], name="pool").then(
        "Add", np.array(100, np.int8), name="wraps"
    )
    return n.then("Cast", to=TensorProto.FLOAT, name="cast").quant(2.0, 0.0, 8.0, name="q1").model()


def pool_behind(model: Model) -> Model:
    """The wrong Model: the steps after the pool, except transposes, come before it."""
    steps = list(model.steps)
    at = next(i for i, s in enumerate(steps) if isinstance(s.op, ir.Pool))
    names = [i for i in (at - 1, at, at + 1) if not isinstance(steps[i].op, Add | Mul)]
    run = list(range(names[-1] + 1, len(steps)))
    shape = steps[names[0] - 1].shape
    order = [*(replace(steps[i], shape=shape) for i in run), *(steps[i] for i in names)]
    moved = [replace(s, inputs=(names[0] + k,)) for k, s in enumerate(order)]
    return replace(model, steps=(*steps[: names[0]], *moved))


@pytest.mark.parametrize("make", [falling, wrapping])
@pytest.mark.parametrize("mode", [None, "fixed:8,8"])
def test_a_pool_behind_what_falls_or_wraps(
    make: Callable[[], onnx.ModelProto], mode: str | None, tmp_path: Path
) -> None:
    model = imported(make(), tmp_path)
    wrong = lowered(pool_behind(model), mode)
    assert not compare(model, wrong, samples(wrong, 10)).ok
    assert not file_oracle.hold(make(), model, file_oracle.stimuli(model)).differing


@pytest.mark.parametrize("make", [falling, wrapping])
@pytest.mark.parametrize("mode", [None, "fixed:8,8"])
def test_pools_stay_where_they_are(make: Callable[[], onnx.ModelProto], mode: str | None, tmp_path: Path) -> None:
    model = imported(make(), tmp_path)
    graph = lowered(model, mode)
    assert compare(model, graph, samples(graph, 10)).difference is None


# --------------------------------------------------------------------------- directed stimuli, verify


def test_directed_stimuli_have_the_extremes_of_every_channel(tmp_path: Path) -> None:
    graph = lowered(imported(small(), tmp_path))
    frames = directed(graph, 60, 1)
    lo, hi = graph.input.type.lo, graph.input.type.hi
    assert (frames[0] == lo).all()
    assert (frames[1] == hi).all()
    flat = frames.reshape(-1, frames.shape[-1])
    for channel in range(flat.shape[1]):
        for end in (lo, hi):
            alone = [f for f in frames if (f[..., channel] == end).all() and (np.delete(f, channel, -1) == 0).all()]
            assert alone, (channel, end)
    assert np.array_equal(frames, directed(graph, 60, 1))


def test_directed_stimuli_reach_thresholds_that_random_ones_do_not(tmp_path: Path) -> None:
    """A sum that only full-scale inputs of the right signs bring to the last thresholds."""
    weight = np.where(np.arange(24).reshape(24, 1) % 2, 0.25, -0.25).astype(np.float32)
    net = Net((1, 24)).quant(0.25, 0.0, 4.0, name="q0").linear(1, 24, weight=weight).quant(0.25, 0.0, 7.0, name="q1")
    graph = lowered(imported(net.model(), tmp_path))
    aimed = reference.run_layers(graph, directed(graph, 120, 1))[-1]
    by_chance = reference.run_layers(graph, samples(graph, 120))[-1]
    assert len(np.unique(aimed)) > len(np.unique(by_chance))


def test_frames_are_bounded_by_work(tmp_path: Path) -> None:
    assert affordable_frames(lowered(imported(small(), tmp_path))) == 100
    heavy = image_nets.network("plain", 1, size=8)
    assert 6 <= affordable_frames(lowered(imported(heavy, tmp_path))) <= 100


@pytest.mark.sim
def test_verify_reports_a_wrong_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HG057, in words and as JSON; exit code 1. The hardware equals the wrong Graph."""
    onnx.save(falling(), tmp_path / "model.onnx")
    real = hlsgen.driver.compile.lower

    def wrong(model: Model, *options: Any) -> Graph:
        return real(pool_behind(model), *options)

    monkeypatch.setattr(hlsgen.driver.compile, "lower", wrong)
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out")
    verdict = hlsgen.verify(tmp_path / "out", [])
    print_model(verdict.model)
    print_end(verdict)
    printed = capsys.readouterr()
    assert "HG057 q1: channel" in printed.err
    assert "model: different" in printed.out
    assert "NOT verified" in printed.out
    if shutil.which("iverilog") is None:
        pytest.skip("iverilog is not installed")
    arguments = ["verify", str(tmp_path / "out"), "--sim", "icarus", "--frames", "4"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert not data["ok"]
    assert not data["model"]["ok"]
    assert data["model"]["difference"]["layer"] == "q1"
    assert data["diagnostics"][0]["code"] == "HG057"
    assert data["diagnostics"][0]["title"] == CODES["HG057"]
    assert data["simulators"]["icarus"]["ok"]


# --------------------------------------------------------------------------- small models of frequent errors


def convolved(n: Net, **attributes: Any) -> Net:
    """A 3 x 3 convolution of two channels, quantized again."""
    data, weight = n.last, (np.arange(36).reshape(2, 2, 3, 3) % 7 - 3).astype(np.float32) / 4
    n.node("IntQuant", weight, 0.25, 0.0, 4.0, domain="qonnx.custom_op.general")
    return n.node("Conv", data, n.last, kernel_shape=[3, 3], **attributes).quant(0.3, 0.0, 5.0)


def image(zero: float = 0.0, bits: float = 5.0) -> Net:
    return Net((1, 2, 6, 6)).quant(0.25, zero, bits)


def halved(n: Net) -> Net:
    return n.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2])


def gemm() -> Net:
    n = Net((1, 4)).quant(0.25, 0.0, 4.0)
    data, weight = n.last, (np.arange(12).reshape(3, 4) % 7 - 3).astype(np.float32) / 4
    n.node("IntQuant", weight, 0.25, 0.0, 4.0, domain="qonnx.custom_op.general")
    n.node("Gemm", data, n.last, np.float32([1.25, -0.5, 0.75]), alpha=0.5, beta=2.0, transB=1)
    return n.quant(0.3, 0.0, 5.0)


def parts() -> Net:
    """A quantizer with a scale for each channel after a Concat of tensors that are not quantized."""
    n = image()
    scaled = n.then("Mul", 0.7).last
    right = n.node("Mul", "t0", np.float32(-1.3)).last
    scale = np.float32([0.1, 0.2, 0.4, 0.8]).reshape(1, 4, 1, 1)
    return n.node("Concat", scaled, right, axis=1).quant(scale, 0.0, 6.0)


def turned() -> Net:
    """Constants of a channel before a Transpose that is not its own inverse."""
    n = Net((1, 2, 3, 4)).quant(0.25, 0.0, 6.0).then("Add", np.float32([0.3, -0.9]).reshape(1, 2, 1, 1))
    n.then("Mul", np.float32([1, 0.5, 0.25]).reshape(1, 1, 3, 1)).then("Transpose", perm=[0, 2, 3, 1])
    return n.quant(0.2, 0.0, 6.0)


def bounded() -> Net:
    """Integer bounds after QuantizeLinear, a part of its codes."""
    n = Net((1, 8)).then("QuantizeLinear", np.float32(0.1), np.array(3, np.int8))
    n.then("Clip", np.array(-5, np.int8), np.array(9, np.int8)).then(
        "DequantizeLinear", np.float32(0.1), np.array(3, np.int8)
    )
    return n.quant(0.25, 0.0, 5.0)


BORDER = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
SMALL: dict[str, Callable[[], Net]] = {
    "alpha and beta of Gemm": gemm,
    "alpha of LeakyRelu by default": lambda: image(2.0).then("LeakyRelu").quant(0.05, 0.0, 6.0),
    "a border that is not 0": lambda: image().then("Pad", BORDER, 0.75).quant(0.25, 0.0, 6.0),
    "a border that a convolution cannot take": lambda: convolved(image().then("Pad", BORDER, 0.5)),
    "a border of 0 and a zero point": lambda: convolved(image(3.0), pads=[1, 0, 2, 1]),
    "pads of SAME_LOWER": lambda: convolved(image(2.0), auto_pad="SAME_LOWER", strides=[2, 2]),
    "pads of SAME_UPPER": lambda: convolved(image(2.0), auto_pad="SAME_UPPER", strides=[2, 2]),
    "a pool behind a negative factor": lambda: halved(image().then("Mul", -0.7)).quant(0.3, 0.0, 5.0),
    "a pool behind factors of channels": lambda: halved(
        image().then("Mul", np.float32([0.7, -0.7]).reshape(1, 2, 1, 1))
    ).quant(0.3, 0.0, 5.0),
    "a pool behind LeakyRelu": lambda: halved(image().then("LeakyRelu", alpha=-0.5)).quant(0.3, 0.0, 5.0),
    "parts of a Concat": parts,
    "a Transpose behind constants": turned,
    "bounds of codes": bounded,
    "ties away from zero": lambda: image(0.0, 8.0).quant(0.5, 0.0, 6.0, rounding_mode="HALF_UP"),
    "ties toward zero": lambda: image(0.0, 8.0).quant(0.5, 0.0, 6.0, rounding_mode="HALF_DOWN"),
}


@pytest.mark.parametrize("name", SMALL)
def test_what_is_easily_wrong(name: str, tmp_path: Path) -> None:
    assert not sum(assert_held(SMALL[name]().model(), tmp_path, 20).left.values())
