"""Bits of streams that estimates leave out: those that do not vary, or that no unit reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from models import Net
from sparse_models import binary_points

import hlsgen
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.units import AdderMatVec, NeuronUnit, RescaleUnit
from hlsgen.rescale import LaneTable
from hlsgen.verilog.unit_table import node_parts


def network_of(model: onnx.ModelProto, folder: Path, kind: str = "lane-table") -> Network:
    """A network with a frame a cycle whose quantizers have this implementation."""
    onnx.save(model, folder / "m.onnx")
    options = hlsgen.Options(target_cycles=1, ports="plain", realize={"": kind})
    return hlsgen.check(folder / "m.onnx", options).network


def test_quantizers_ignore_unread_bits_of_sums(tmp_path: Path) -> None:
    nodes = network_of(binary_points(), tmp_path).nodes
    adders = {node.outputs[0]: node.unit for node in nodes if isinstance(node.unit, AdderMatVec)}
    count = 0
    for node in nodes:
        if isinstance(node.unit, RescaleUnit) and isinstance(node.unit.realization, LaneTable):
            lanes = node.unit.realization.take(node.unit.table[0])
            unread = np.array(adders[node.inputs[0]].unread)
            codes = np.arange(-400, 400)[:, None] + 0 * unread
            assert (lanes.apply(codes) == lanes.apply(codes >> unread << unread)).all()
            assert (lanes.apply(codes) != lanes.apply(codes >> unread + 1 << unread + 1)).any()
            count += int(unread.sum())
    assert count


def test_registers_of_a_lane_table_are_the_bits_that_vary(tmp_path: Path) -> None:
    """Codes of four bits, but one neuron has only 0 to 7."""
    net = Net((1, 2)).quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=np.float32([[2, 3], [4, 3]]), scale=1.0).then("Relu").then("Min", np.float32([7, 15]))
    net.quant(scale=1.0, bits=4.0, signed=0).linear(weight=np.float32([[3, 1], [1, 3]]), scale=1.0, name="fc1")
    network = network_of(net.model(), tmp_path)
    (quantizer,) = (node for node in network.nodes if isinstance(node.unit, RescaleUnit))
    assert node_parts(quantizer, network.choices, set(), dsp=0, style=0, family="xc7").ff["out"] == 3 + 4


def test_adders_read_the_bits_of_a_column_with_weights(tmp_path: Path) -> None:
    """Neurons with codes of four bits: 0 to 1, 0 to 15, and one that is not used any more than its weights are 0."""
    net = Net((1, 3)).quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=np.float32([[1, 0, 0], [0, 5, 0], [0, 0, 1]]), scale=1.0).then("Relu")
    net.then("Min", np.float32([1, 15, 15])).quant(scale=1.0, bits=4.0, signed=0)
    net.linear(weight=np.float32([[7, 5], [3, 6], [1, 1]]), scale=1.0, name="fc1")
    nodes = network_of(net.model(), tmp_path, "neuron-table").nodes
    (neurons,) = (node.unit for node in nodes if isinstance(node.unit, NeuronUnit))
    assert neurons.read is not None
    assert sorted(neurons.read) == [0, 4, 5, 6, 7, 8, 9, 10]
