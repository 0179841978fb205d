"""Realization `neuron-table`: a row of a matrix and its quantizer together, in lookup tables of the row's input bits.

Neurons with few input bits cost less this way than sums and a quantizer. `hlsgen.lut_network` decomposes the function
of each neuron.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlsgen.lut_network import LutNetwork

#: LUTs of four inputs for a function of that number of inputs, by number of inputs.
_LUT4 = (0, 1, 1, 1, 1, 2, 4)
#: LUTs after synthesis for each function: tools decompose anew, for fewer levels.
_SYNTHESIZED = 1.1


@dataclass(frozen=True, eq=False)
class NeuronTable:
    """Parameters of module hg_lut_network."""

    network: LutNetwork

    @property
    def latency(self) -> int:
        return 1


def cost(realization: NeuronTable, inputs: int = 6, read: Iterable[int] | None = None) -> float:
    """LUTs of `inputs` inputs, six or four. `read`: bits of the output that something reads; None: all."""
    network = realization.network
    functions = network.cone(range(network.outputs) if read is None else read)[0]
    sizes = [len(network.functions[k].inputs) for k in functions]
    return _SYNTHESIZED * sum(_LUT4[size] if inputs < 6 else min(size, 1) for size in sizes)
