"""hlsgen.dataflow.neurons: where neurons become lookup tables, and what these compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from certified import neurons
from models import Net

import hlsgen
from hlsgen.dataflow.neurons import MOST_BITS, _Neuron
from hlsgen.dataflow.units import NeuronUnit, Port
from hlsgen.rescale.realize import neuron_table

Array = Any
FRAME_A_CYCLE = hlsgen.Options(target_cycles=1)


def tables(model: onnx.ModelProto, tmp_path: Path, **options: Any) -> list[str]:
    """The layers whose neurons are lookup tables."""
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(**{"target_cycles": 1, **options}))
    return [node.layer for node in build.network.nodes if isinstance(node.unit, NeuronUnit)]


def test_neurons_of_few_bits_become_tables(tmp_path: Path) -> None:
    assert len(tables(neurons(), tmp_path)) == 2


@pytest.mark.parametrize(
    "options",
    [{"target_cycles": 7}, {"loadable": True}, {"prefer": "dsp"}, {"target": "hls"}, {"target": "verilog,hls"}],
)
def test_where_there_are_none(options: dict[str, Any], tmp_path: Path) -> None:
    """With several cycles a frame, weights that can be written, DSP blocks, and in C++."""
    assert tables(neurons(), tmp_path, **options) == []


def test_ready_passes_all_neurons(tmp_path: Path) -> None:
    """A slice would cost as much as the neurons between two slices."""
    onnx.save(neurons(), tmp_path / "model.onnx")
    nodes = hlsgen.check(tmp_path / "model.onnx", FRAME_A_CYCLE).network.nodes
    assert [type(node.unit) for node in nodes] == [Port, NeuronUnit, NeuronUnit, Port]


def test_the_estimate_counts_bits_that_are_read(tmp_path: Path) -> None:
    """The first layer has neurons that no neuron of the second one uses; all bits of the second one leave the core."""
    onnx.save(neurons(fan_in=2), tmp_path / "model.onnx")
    nodes = hlsgen.check(tmp_path / "model.onnx", FRAME_A_CYCLE).network.nodes
    first, second = (node for node in nodes if isinstance(node.unit, NeuronUnit))
    assert isinstance(first.unit, NeuronUnit)
    assert isinstance(second.unit, NeuronUnit)
    network, read = second.unit.tables.network, first.unit.read
    assert second.unit.read is None
    assert read is not None
    x = np.random.default_rng(0).integers(0, 2, (500, network.inputs))
    for bit in range(network.inputs):
        inverted = x.copy()
        inverted[:, bit] ^= 1
        assert (bit in read) == bool((network.apply(x) != network.apply(inverted)).any())
    assert len(read) < first.result.bits
    assert neuron_table.cost(first.unit.tables, 6, read) < neuron_table.cost(first.unit.tables)


def test_the_option(tmp_path: Path) -> None:
    """Another implementation can be requested; tables that are impossible are refused with the reason."""
    assert tables(neurons(), tmp_path, realize={"": "lane-table"}) == []
    assert len(tables(neurons(), tmp_path, realize={"": "neuron-table"})) == 2
    weight = np.random.default_rng(1).integers(1, 8, (MOST_BITS // 2 + 1, 3)).astype(np.float32)
    wide = Net((1, len(weight))).quant(bits=2.0, signed=0).linear(weight=weight, scale=1.0).quant(scale=8.0, bits=2.0)
    assert tables(wide.model(), tmp_path) == []
    with pytest.raises(hlsgen.HlsgenError, match=rf"a neuron has {MOST_BITS + 2} input bits; at most {MOST_BITS}"):
        tables(wide.model(), tmp_path, realize={"": "neuron-table"})


def sums_by_hand(weights: Array, low: Array, high: Array) -> dict[tuple[int, ...], int]:
    """The sum for all reachable codes, by the low bits of the codes of columns that change."""
    neuron = _Neuron.of(weights, low, high)
    grid = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)), indexing="ij")
    codes = np.stack([g.ravel() for g in grid], axis=-1)
    keys = codes[:, neuron.columns] % (1 << np.array(neuron.widths))
    return {tuple(key): int(total) for key, total in zip(keys.tolist(), codes @ weights, strict=True)}


def test_sums_of_reachable_codes() -> None:
    """Signed codes, columns that never change, columns without weight."""
    weights = np.array([3, 0, -2, 5, 1])
    low, high = np.array([-2, -9, 3, 4, -1]), np.array([1, 9, 5, 4, 0])
    neuron = _Neuron.of(weights, low, high)
    assert neuron.columns.tolist() == [0, 2, 4]
    assert neuron.widths == [2, 2, 1]
    index = np.arange(1 << neuron.bits)
    keys = zip((index & 3).tolist(), (index >> 2 & 3).tolist(), (index >> 4).tolist(), strict=True)
    actual = dict(zip(keys, neuron.sums().tolist(), strict=True))
    expected = sums_by_hand(weights, low, high)
    assert {key: actual[key] for key in expected} == expected
    # The third column has the codes 3, 4, 5 (low bits 3, 0, 1): low bits 2 are next to both ends and get the last one.
    assert actual[0, 2, 0] == actual[0, 1, 0]
