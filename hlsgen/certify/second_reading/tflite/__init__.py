"""Second reading of a TFLite file, with its own walk of the flatbuffer and its own arithmetic.

It shares nothing with the frontend and its numerics: multipliers, bounds and tables are derived from exact fractions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from hlsgen.certify.second_reading.result import SecondReading
from hlsgen.certify.second_reading.steps import Differences
from hlsgen.certify.second_reading.tflite.imported import STATES, VARIABLES, ImportedOperators
from hlsgen.certify.second_reading.tflite.layers import check_layer
from hlsgen.certify.second_reading.tflite.records import FileRecords, Operator
from hlsgen.certify.second_reading.tflite.recurrent import check_recurrent
from hlsgen.certify.second_reading.tflite.resize import check_resize
from hlsgen.certify.second_reading.tflite.single_inputs import (
    check_function,
    check_mean,
    check_moved,
    check_pool,
    check_prelu,
)
from hlsgen.certify.second_reading.tflite.softmax import check_softmax
from hlsgen.certify.second_reading.tflite.tables import KINDS
from hlsgen.certify.second_reading.tflite.two_inputs import check_two_inputs
from hlsgen.ir import Model

#: Operator -> its second reading.
CHECKS: dict[str, Callable[[ImportedOperators, Operator], Differences]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"), check_layer),
    **dict.fromkeys(("ADD", "SUB", "MUL"), check_two_inputs),
    "PRELU": check_prelu,
    **dict.fromkeys((*KINDS, "DEQUANTIZE"), check_function),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), check_pool),
    "MEAN": check_mean,
    **dict.fromkeys(STATES, check_recurrent),
    "RESIZE_BILINEAR": check_resize,
    "SOFTMAX": check_softmax,
    **dict.fromkeys(
        "RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE PAD PADV2 CONCATENATION SPLIT SPLIT_V STRIDED_SLICE SLICE GATHER PACK "
        "UNPACK RESIZE_NEAREST_NEIGHBOR".split(),
        check_moved,
    ),
}


def is_tflite(path: Path) -> bool:
    """True if the file names itself a TFLite file, by TFL3 at byte 4."""
    with path.open("rb") as stream:
        return stream.read(8)[4:] == b"TFL3"


def compare(data: bytes, model: Model) -> SecondReading:
    """Read a TFLite file and compare the steps of `model` with it, operator by operator."""
    try:
        file = FileRecords(data)
    except (ValueError, IndexError, KeyError, TypeError, struct.error) as error:
        return SecondReading((("", f"the flatbuffer cannot be walked: {error}."),), ())
    imported = ImportedOperators(file, model)
    problems, once = list(_ends(file, model)), []
    problems += imported.ends()
    for operator in file.operators:
        if operator.kind in VARIABLES:
            continue
        check = CHECKS.get(operator.kind)
        differences = None if check is None else check(imported, operator)
        if differences is None:
            once.append(operator.node)
        else:
            problems += [(operator.node, text) for text in differences]
    return SecondReading(tuple(problems), tuple(once))


def _ends(file: FileRecords, model: Model) -> Iterator[tuple[str, str]]:
    """Differences in the number of inputs and outputs, and in their types. Variables come after the file's own."""
    inputs = [(tensor.name, tensor.dtype) for tensor in model.all_inputs]
    outputs = [(tensor.name, tensor.dtype) for tensor in model.all_outputs]
    for role, tensors, ports in (("input", file.used_inputs, inputs), ("output", file.outputs, outputs)):
        if len(ports) < len(tensors):
            yield role, f"{len(ports)} were imported, the file has {len(tensors)}."
            continue
        for number, (name, dtype) in zip(tensors, ports, strict=False):
            tensor = file.tensors[number]
            if dtype != tensor.type:
                yield name, f"the {role} has the type {dtype}, in the file {tensor.type}."
