"""Reads the numbers of a model file a second time, straight from the protobuf, and holds the imported Model against them.

It shares nothing with the frontend. Quantizers, weights, biases, scales, zero points, bit widths, roundings, borders and
windows of the nodes that it knows would have to be misread twice, in the same way. Nodes that it does not know, or finds in a
form that it does not know, are listed: what they say was read once. So was how nodes follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from hlsgen.certify.second_reading.attention import ATTENTION
from hlsgen.certify.second_reading.deeploy import DEEPLOY
from hlsgen.certify.second_reading.formulas import FORMULAS
from hlsgen.certify.second_reading.layers import LAYERS
from hlsgen.certify.second_reading.probes import PROBES
from hlsgen.certify.second_reading.products import PRODUCTS
from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.certify.second_reading.quantizers import ELEMENTS
from hlsgen.certify.second_reading.rows import ROWS
from hlsgen.certify.second_reading.softmax import SOFTMAX
from hlsgen.certify.second_reading.steps import Found
from hlsgen.certify.second_reading.windows import WINDOWS
from hlsgen.ir import Model


@dataclass(frozen=True)
class SecondReading:
    """`problems`: (node, what differs). `once`: nodes that only the frontend has read."""

    problems: tuple[tuple[str, str], ...]
    once: tuple[str, ...]


def compare(source: Path | onnx.ModelProto, model: Model) -> SecondReading:
    """Reads a file, or what is in memory, and compares the steps of `model`, node by node."""
    file = ModelFile(source)
    found = Found(file, model)
    problems, once = list(_ends(file, model)), []
    # Layers come first: in QDQ form they stand for the nodes around them as well.
    for table in (ATTENTION, ROWS, PRODUCTS, LAYERS, WINDOWS, SOFTMAX, ELEMENTS, DEEPLOY, FORMULAS, PROBES):
        for n in file.computing:
            check = table.get(file.nodes[n].op_type)
            if check is not None and n not in found.covered:
                told = check(found, n)
                if told is not None:
                    found.covered.add(n)
                    problems += [(file.names[n], text) for text in told]
    once = [file.names[n] for n in file.computing if n not in found.covered]
    return SecondReading(tuple(problems), tuple(once))


def _ends(file: ModelFile, model: Model) -> Iterator[tuple[str, str]]:
    """The names of inputs and outputs; of several their order."""
    inputs = [one.name for one in model.inputs] or [model.input_name]
    outputs = [one.name for one in model.outputs] or [model.output_name]
    for names, known in ((inputs, file.inputs), (outputs, file.outputs)):
        for name in names:
            if name not in known:
                yield name, f"is no tensor of the file's graph: {', '.join(known[:4])}."
        if names != [name for name in known if name in names]:
            yield ", ".join(names), "stand in another order in the file."
