"""Normalizations: every decomposition in files becomes one step, which equals an executor of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from norm_nets import FORMS, norm_net, samples
from onnx import helper, numpy_helper
from ort import run

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Graph, HostOp, Model, Normalize, NormKind, NormRows
from hlsgen.passes.lower import lower

Array = Any


def imported(model: onnx.ModelProto, tmp_path: Path) -> tuple[Model | None, Collector]:
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    problems = Collector()
    return import_model(path, problems), problems


def lowered(model: onnx.ModelProto, tmp_path: Path) -> tuple[Model, Graph]:
    imported_model, problems = imported(model, tmp_path)
    assert imported_model is not None, problems.items
    return imported_model, lower(imported_model, None, problems)


def executed(net: onnx.ModelProto, x: Array) -> Array:
    """The outputs of onnxruntime, frame by frame."""
    return np.concatenate([run(net, {"x": part[None]})[0] for part in x])


def normals(model: Model | None) -> list[Normalize]:
    assert model is not None
    return [step.op for step in model.steps if isinstance(step.op, Normalize)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [17, 23])
def test_every_form_is_one_step_and_has_the_codes_of_the_file(form: str, opset: int, tmp_path: Path) -> None:
    if form == "RMSNormalization" and opset < 23:
        return
    net = norm_net(form, opset=opset, seed=opset)
    model, graph = lowered(net, tmp_path)
    assert len(normals(model)) == 1
    x = samples(net, 40)
    codes = reference.evaluate(graph, x)
    expected = executed(net, x)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("form", ["LayerNormalization", "rms one over"])
@pytest.mark.parametrize("bits", [2, 5, 8])
def test_both_interpreters_agree(form: str, bits: int, tmp_path: Path) -> None:
    net = norm_net(form, length=24, bits=bits, seed=bits)
    model, graph = lowered(net, tmp_path)
    x = samples(net, 30)
    frames = reference.frames_of(graph, x)
    layer = next(i for i, candidate in enumerate(graph.layers) if isinstance(candidate, NormRows))
    keys = reference.run_layers(graph, reference.encode_input(graph, frames))[layer]
    assert keys.min() >= graph.layers[layer].result.type.lo
    assert keys.max() <= graph.layers[layer].result.type.hi
    np.testing.assert_array_equal(interpret(model, frames)[-1].value.reshape(x.shape), reference.evaluate(graph, x))


def edited(form: str, change: str) -> onnx.ModelProto:
    """A decomposed normalization with one change, so that it is no normalization any more."""
    net = norm_net(form)
    constants = {t.name: t for t in net.graph.initializer}
    nodes = {n.output[0]: n for n in net.graph.node}
    if change == "cube":
        constants["two"].CopyFrom(numpy_helper.from_array(np.float32(3), "two"))
    elif change == "axes":
        nodes["variance"].attribute[0].ints[0] = -2
    elif change == "mean of another":
        nodes["mean"].input[0] = "q_float"
        net.graph.node.insert(1, helper.make_node("Cast", ["q"], ["q_float"], to=1))
    return net


@pytest.mark.parametrize("change", ["cube", "axes", "mean of another"])
def test_changed_patterns_are_no_layer_normalization(change: str, tmp_path: Path) -> None:
    model, _ = imported(edited("layer div", change), tmp_path)
    assert model is None or NormKind.LAYER not in {op.kind for op in normals(model)}


def test_the_host_normalizes_before_the_first_quantizer(tmp_path: Path) -> None:
    net = norm_net("LayerNormalization")
    norm = next(node for node in net.graph.node if node.op_type == "LayerNormalization")
    norm.input[0] = "x"
    del net.graph.node[:3]
    model, _ = imported(net, tmp_path)
    assert model is not None
    assert isinstance(model.steps[0].op, HostOp)


@pytest.mark.parametrize(("attribute", "value", "code"), [("epsilon", 0.0, "HG013"), ("axis", 7, "HG013")])
def test_refused_attributes(attribute: str, value: float, code: str, tmp_path: Path) -> None:
    net = norm_net("LayerNormalization")
    norm = next(node for node in net.graph.node if node.op_type == "LayerNormalization")
    del norm.attribute[:]
    norm.attribute.append(helper.make_attribute(attribute, value))
    model, problems = imported(net, tmp_path)
    assert model is None
    assert [d.code for d in problems.errors] == [code]


@pytest.mark.parametrize("opset", [17, 21])
def test_groups_and_instances_of_images(opset: int, tmp_path: Path) -> None:
    for op_type, extra in (("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 2})):
        if op_type == "GroupNormalization" and opset < 21:
            continue
        net = norm_net("LayerNormalization", length=4, opset=opset)
        norm = next(node for node in net.graph.node if node.op_type == "LayerNormalization")
        norm.op_type = op_type
        del norm.attribute[:]
        norm.attribute.extend(helper.make_attribute(k, v) for k, v in {"epsilon": 1e-3, **extra}.items())
        for value in (*net.graph.input, *net.graph.output):
            for dim, size in zip(value.type.tensor_type.shape.dim, (1, 4, 10), strict=True):
                dim.dim_value = size
        model, graph = lowered(net, tmp_path)
        assert len(normals(model)) == 1
        x = samples(net, 20)
        expected = executed(net, x)
        np.testing.assert_array_equal(reference.evaluate(graph, x), expected)


@pytest.mark.parametrize("form", ["LayerNormalization", "layer div", "RMSNormalization"])
def test_the_host_normalizes_after_the_last_quantizer(form: str, tmp_path: Path) -> None:
    """The host computes a normalization at the end, also a decomposed one."""
    net = norm_net(form)
    at = next(i for i, node in enumerate(net.graph.node) if node.output[0] == "n")
    del net.graph.node[at + 1 :]
    net.graph.node[at].output[0] = "y"
    model, _ = imported(net, tmp_path)
    assert model is not None
    assert any(isinstance(step.op, HostOp) for step in model.steps)
    assert not any(isinstance(step.op, Normalize) for step in model.steps)
    x = samples(net, 5)
    _, graph = lowered(net, tmp_path)
    np.testing.assert_allclose(reference.evaluate(graph, x), executed(net, x), rtol=1e-5, atol=1e-6)
