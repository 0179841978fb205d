"""`hlsgen certify` of neurons in lookup tables: one wrong entry of one function is found, for every input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from certified import CASES, changed, messages

import hlsgen
from hlsgen.certify.models.lut_network import LutNetworkModel
from hlsgen.certify.netlist_reader import Cell, SizedConstant
from hlsgen.dataflow.units import NeuronUnit, Node
from hlsgen.lut_network import LutFunction, LutNetwork
from hlsgen.verilog.binding.lut_network import bind
from hlsgen.verilog.binding.memory_files import Bits
from hlsgen.verilog.render import constant


def cell_of(network: LutNetwork) -> Cell:
    parameters = {
        name: SizedConstant(value.width, value.value) if isinstance(value, Bits) else value
        for name, value in bind(network, "").parameters.items()
    }
    return Cell("hg_lut_network", "q0", parameters, {})  # type: ignore[arg-type]


def test_model() -> None:
    """Levels, unused inputs and constants as in LutNetwork; a cone has the bits on which an output depends."""
    functions = (
        LutFunction((0, 2), 0b0110),
        LutFunction((3, 1), 0b1000),
        LutFunction((), 1),
        LutFunction((4, 5), 0b1110),
    )
    network = LutNetwork(4, functions, (2, 4))
    model = LutNetworkModel(cell_of(network))
    x = np.arange(16)
    bits = x[:, None] >> np.arange(4) & 1
    expected = network.apply(bits)
    assert (model.apply([0, 1], {k: bits[:, k] for k in range(4)}) == expected[:, 0] + 2 * expected[:, 1]).all()
    assert model.cone([1]) == ([0, 1, 2, 3], [0, 1, 3])
    assert model.cone([0]) == ([], [2])


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("ENDS", "32'h00040004", "levels end after"),
        ("ENDS", "32'h00050002", "levels end after"),
        ("ENDS", "32'h00040003", "last level has fewer functions"),
        ("FUNCTIONS", "3", "levels end after"),
        ("IN_W", "1", "not in a lower level"),
        ("OUT_W", "5", "last level has fewer functions"),
    ],
)
def test_impossible_parameters(name: str, value: str, message: str) -> None:
    functions = (
        LutFunction((0, 2), 0b0110),
        LutFunction((3, 1), 0b1000),
        LutFunction((), 1),
        LutFunction((4, 5), 0b1110),
    )
    cell = cell_of(LutNetwork(4, functions, (2, 4)))
    width, _, digits = value.partition("'h")
    cell.parameters[name] = SizedConstant(int(width), int(digits, 16)) if digits else int(value)
    with pytest.raises(hlsgen.HlsgenError, match=message):
        LutNetworkModel(cell)


@pytest.mark.sweep
def test_every_entry_that_an_input_selects(tmp_path: Path) -> None:
    """One entry of a function is inverted. It is found if and only if some input of the core gets another code."""
    folder, rng = CASES["neurons"].build(tmp_path / "core"), np.random.default_rng(2)
    onnx_path = tmp_path / "core.onnx"
    first = next(node for node in hlsgen.check(onnx_path, CASES["neurons"].options).network.nodes if is_neurons(node))
    assert isinstance(first.unit, NeuronUnit)
    network = first.unit.tables.network
    right, every = bind(network, "").parameters["TABLES"], np.arange(1 << 12)[:, None] >> np.arange(12) & 1
    expected, found = network.apply(every), set[bool]()
    for k in rng.permutation(len(network.functions))[:10].tolist():
        function = network.functions[k]
        entry = int(rng.integers(1 << len(function.inputs)))
        functions = list(network.functions)
        functions[k] = replace(function, table=function.table ^ 1 << entry)
        wrong = replace(network, functions=tuple(functions))
        differs = bool((wrong.apply(every) != expected).any())
        assert isinstance(right, Bits)
        with changed(folder, first.name, "TABLES", str(constant(bind(wrong, "").parameters["TABLES"]))):
            assert bool(messages(folder)) == differs
        found.add(differs)
    assert True in found
    assert messages(folder) == []


def is_neurons(node: Node) -> bool:
    return isinstance(node.unit, NeuronUnit)
