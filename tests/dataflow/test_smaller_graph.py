"""Dead and constant channels leave the graph, and its output stays the model's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import image_nets
import numpy as np
import onnx
import ort
import pytest
import random_graphs
from models import Net, newer
from numpy.typing import NDArray
from onnx_graph import OnnxGraph
from oracles import Qonnx
from sparse_models import bordered, compared, dead_neurons, lowered, thinned

import hlsgen
from hlsgen.dataflow.smaller_graph import smaller_graph
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver import smaller_networks
from hlsgen.driver.compile import network_cost
from hlsgen.interpreter import equivalence
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Convolution, Graph, Linear
from hlsgen.ir.verify import verify_graph

Array = NDArray[Any]


def channels(graph: Graph) -> list[int]:
    """The number of rows of each layer with weights."""
    return [len(layer.weight) for layer in graph.layers if isinstance(layer, Linear | Convolution)]


def codes(graph: Graph, count: int, seed: int) -> Array:
    """Random codes of the input."""
    type_ = graph.input.type
    return np.random.default_rng(seed).integers(type_.lo, type_.hi + 1, (count, *graph.input.shape))


def assert_equal(graph: Graph, smaller: Graph, seed: int = 0) -> None:
    assert verify_graph(smaller) == []
    x = codes(graph, 50, seed)
    outputs = [reference.decode_output(g, reference.run_output(g, x)) for g in (graph, smaller)]
    assert np.array_equal(*outputs, equal_nan=True)


def test_dead_constant_and_unread_neurons_leave(tmp_path: Path) -> None:
    model = newer(dead_neurons())
    graph = lowered(model, tmp_path)
    smaller = smaller_graph(graph)
    assert channels(graph) == [12, 10, 4]
    # Of fc0, 0 and 5 are always 0, 4 is always 3, 2 and 9 have no weights; of fc1, four have none.
    assert channels(smaller) == [7, 6, 4]
    assert smaller.removed[2] == ((), (0, 2, 4, 5, 9))
    assert_equal(graph, smaller)
    x = np.random.default_rng(5).integers(-9, 10, (40, 8)).astype(np.float32)
    assert np.array_equal(reference.evaluate(smaller, x), Qonnx(model)(x))


def test_numbers_of_channels_can_be_multiples(tmp_path: Path) -> None:
    graph = lowered(dead_neurons(), tmp_path)
    smaller = smaller_graph(graph, 4)
    assert [n % 4 for n in channels(smaller)] == [0, 0, 0]
    assert channels(smaller)[1] == 8
    assert_equal(graph, smaller)


def test_a_graph_that_needs_everything_is_the_same_object(tmp_path: Path) -> None:
    graph = lowered(Net((1, 8)).quant(scale=1.0).linear(weight=np.ones((8, 4), np.float32)).model(), tmp_path)
    assert smaller_graph(graph) is graph


def test_a_network_that_is_constant_keeps_one_channel(tmp_path: Path) -> None:
    net = Net((1, 8)).quant(scale=1.0).linear(weight=np.zeros((8, 6), np.float32), name="fc0")
    net.quant(scale=1.0, signed=0).linear(weight=np.ones((6, 3), np.float32), name="fc1")
    graph = lowered(net.model(), tmp_path)
    assert channels(smaller_graph(graph)) == [1, 3]
    assert_equal(graph, smaller_graph(graph))


def test_codes_that_are_compared_keep_their_constants(tmp_path: Path) -> None:
    """ArgMax compares sums: a constant term of one row would be lost in the encoding."""
    graph = lowered(compared(), tmp_path)
    assert_equal(graph, smaller_graph(graph))


@pytest.mark.parametrize("pad", [0, 1])
def test_a_constant_channel_with_a_border_of_another_code_stays(pad: int, tmp_path: Path) -> None:
    """The sum of a window at the border has fewer terms of the constant."""
    graph = lowered(bordered(pad), tmp_path)
    smaller = smaller_graph(graph)
    assert channels(smaller) == [4 if pad else 3, 3]
    assert_equal(graph, smaller)


@pytest.mark.parametrize("kind", ["perceptron", *sorted(image_nets.NETWORKS.keys() - {"channels_last"})])
def test_random_networks_keep_their_integers(kind: str, tmp_path: Path) -> None:
    for seed in range(4):
        model = random_graphs.perceptron(seed) if kind == "perceptron" else image_nets.network(kind, seed)
        graph = lowered(thinned(model, seed), tmp_path)
        assert_equal(graph, smaller_graph(graph, (1, 4)[seed % 2]), seed)


@pytest.mark.parametrize("kind", ["perceptron", *sorted(image_nets.NETWORKS.keys() - {"channels_last"})])
def test_remaining_elements_are_compared_with_the_model(kind: str, tmp_path: Path) -> None:
    """The same layers as without removed elements, and none of them is found to differ."""
    for seed in range(4):
        model = random_graphs.perceptron(seed) if kind == "perceptron" else image_nets.network(kind, seed)
        graph = lowered(thinned(model, seed), tmp_path)
        smaller = smaller_graph(graph, (1, 4)[seed % 2])
        x = codes(graph, 20, seed)
        whole, part = (equivalence.compare(g.model, g, x) for g in (graph, smaller))
        assert (part.difference, part.layers) == (None, whole.layers)


def test_a_wrong_remaining_element_is_found(tmp_path: Path) -> None:
    smaller = smaller_graph(lowered(newer(dead_neurons()), tmp_path))
    layers = list(smaller.layers)
    number = next(i for i, layer in enumerate(layers) if isinstance(layer, Linear) and layer.name == "fc1")
    weight = layers[number].weight.copy()
    weight[3, 2] += 1
    layers[number] = replace(layers[number], weight=weight)
    wrong = replace(smaller, layers=tuple(layers))
    difference = equivalence.compare(wrong.model, wrong, codes(wrong, 20, 0)).difference
    assert difference is not None
    assert (difference.layer, difference.channel) == ("fc1", 3)


@pytest.mark.parametrize("seed", range(6))
def test_onnxruntime_gives_the_same_integers(seed: int, tmp_path: Path) -> None:
    model, x = qdq_layers(seed)
    graph = lowered(model, tmp_path)
    smaller = smaller_graph(graph)
    assert sum(channels(smaller)) < sum(channels(graph))
    session = ort.session(model)
    expected = np.concatenate([session.run(None, {"x": frame[None]})[0] for frame in x])
    assert np.array_equal(reference.evaluate(smaller, x), expected)


def qdq_layers(seed: int) -> tuple[onnx.ModelProto, Array]:
    """Three layers of 8-bit integers with dead channels, and inputs."""
    rng, n = np.random.default_rng(seed), OnnxGraph(labels=True)

    def pair(data: str, scale: float, zero: int) -> str:
        parameters = [np.float32(scale), n.const(zero, np.int8)]
        return n.add("DequantizeLinear", [n.add("QuantizeLinear", [data, *parameters]), *parameters])

    tensor, columns = pair("x", 0.05, 3), 6
    for rows in (9, 7, 5):
        weight = rng.integers(-127, 128, (columns, rows))
        weight[rng.random(columns) < 0.3] = 0
        weight[:, rng.random(rows) < 0.3] = 0
        constant = n.add("DequantizeLinear", [n.const(weight, np.int8), np.float32(0.01), n.const(0, np.int8)])
        tensor, columns = pair(n.add("MatMul", [tensor, constant]), 0.04 * rows, int(rng.integers(-20, 20))), rows
    source = onnx.helper.make_tensor_value_info("x", 1, (1, 6))
    output = onnx.helper.make_tensor_value_info(tensor, 1, None)
    x = rng.normal(0, 3, (60, 6)).astype(np.float32)
    return n.proto("net", [source], [output], [("", 13)]), x


def test_a_folding_of_a_build_can_be_given_again(tmp_path: Path) -> None:
    """Its rows and columns are those that are left; and one of all rows of the model makes all of them."""
    onnx.save(dead_neurons(), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(target_cycles=20))
    folding = build.network.folding["layers"]
    again = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(folding=folding))
    assert (again.graph.removed, again.network.folding) == (build.graph.removed, build.network.folding)
    whole = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(folding={**folding, "fc0": {"pe": 12, "simd": 8}}))
    assert not whole.graph.removed
    with pytest.raises(HlsgenError, match="pe 1 to 12"):
        hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(folding={"fc0": {"pe": 13, "simd": 8}}))


def test_the_cheapest_network_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(dead_neurons(), tmp_path / "m.onnx")
    costs = []
    for multiples in ((1,), (4,), (1, 4)):
        monkeypatch.setattr(smaller_networks, "_MULTIPLES", multiples)
        build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(target_cycles=20))
        costs.append(network_cost(build).lut)
    assert costs[2] == min(costs)
    assert costs[0] != costs[1]
