"""Second reading of a model file, straight from its bytes, and comparison with the imported Model.

It shares nothing with the frontend. An undetected misreading would have to happen twice, in the same way. This holds
for quantizers, weights, biases, scales, zero points, bit widths, roundings, borders and windows of known nodes.

Unknown nodes, and nodes in an unknown form, are listed: only the frontend has read them. Only the frontend reads how
nodes follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from hlsgen.certify.second_reading import alir, tflite
from hlsgen.certify.second_reading.activations import ACTIVATIONS
from hlsgen.certify.second_reading.attention import ATTENTION
from hlsgen.certify.second_reading.deeploy import DEEPLOY
from hlsgen.certify.second_reading.formulas import FORMULAS
from hlsgen.certify.second_reading.layers import LAYERS
from hlsgen.certify.second_reading.probes import PROBES
from hlsgen.certify.second_reading.products import PRODUCTS
from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.certify.second_reading.quantizers import ELEMENTS
from hlsgen.certify.second_reading.result import SecondReading
from hlsgen.certify.second_reading.rows import ROWS
from hlsgen.certify.second_reading.softmax import SOFTMAX
from hlsgen.certify.second_reading.steps import ImportedSteps
from hlsgen.certify.second_reading.windows import WINDOWS
from hlsgen.ir import Model

__all__ = ["SecondReading", "compare"]

#: Layers come first: in QDQ form they cover the nodes around them as well.
_CHECKS = (ATTENTION, ROWS, PRODUCTS, LAYERS, WINDOWS, SOFTMAX, ACTIVATIONS, ELEMENTS, DEEPLOY, FORMULAS, PROBES)


def compare(source: Path | onnx.ModelProto, model: Model) -> SecondReading:
    """Read a file, or a model in memory, and compare the steps of `model` with it, node by node."""
    if isinstance(source, Path) and tflite.is_tflite(source):
        return tflite.compare(source.read_bytes(), model)
    if isinstance(source, Path) and alir.is_alir(source):
        return alir.compare(source.read_bytes(), model)
    file = ModelFile(source)
    imported = ImportedSteps(file, model)
    problems, once = list(_ends(file, model)), []
    for checks in _CHECKS:
        for n in file.computing:
            check = checks.get(file.nodes[n].op_type)
            if check is not None and n not in imported.covered:
                differences = check(imported, n)
                if differences is not None:
                    imported.covered.add(n)
                    problems += [(file.names[n], text) for text in differences]
    once = [file.names[n] for n in file.computing if n not in imported.covered]
    return SecondReading(tuple(problems), tuple(once))


def _ends(file: ModelFile, model: Model) -> Iterator[tuple[str, str]]:
    """Differences in the names of inputs and outputs, and in their order."""
    inputs = [tensor.name for tensor in model.inputs] or [model.input_name]
    outputs = [tensor.name for tensor in model.outputs] or [model.output_name]
    for names, file_names in ((inputs, file.inputs), (outputs, file.outputs)):
        for name in names:
            if name not in file_names:
                yield name, f"is no tensor of the file's graph: {', '.join(file_names[:4])}."
        if names != [name for name in file_names if name in names]:
            yield ", ".join(names), "are in another order in the file."
