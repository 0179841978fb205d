"""Other outputs for a TFLite file: tensors of its first graph, by name."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hlsgen.diagnostics import fail, printable
from hlsgen.frontend.tflite.file import TfliteFile, TfliteOperator, read_file
from hlsgen.frontend.tflite.flatbuffer import Flatbuffer

#: Maximum number of names in a message.
_LISTED = 8


def with_outputs(data: bytes, names: Sequence[str], label: str) -> bytes:
    """The file with these tensors as outputs, in this order; the numbers of its outputs are replaced.

    Raises HG001 - HG004, HG040.
    """
    graph = read_file(data, label).graphs[0]
    numbers = {graph.tensors[index].name: index for operator in graph.operators for index in operator.outputs}
    unknown = [name for name in names if name not in numbers]
    if unknown:
        last_names = ", ".join(printable(name) for name in [*numbers][: -_LISTED - 1 : -1])
        text = f"no operator of the graph computes a tensor {unknown[0]!r}."
        raise fail("HG040", "--outputs", text, f"The last tensors are: {last_names}.")
    if len(names) > len(graph.outputs):
        text = f"{len(names)} tensors for a TFLite file of {len(graph.outputs)} outputs."
        raise fail("HG040", "--outputs", text, "Name at most as many as the file has outputs.")
    return with_output_numbers(data, [numbers[name] for name in names])


def with_output_numbers(data: bytes, numbers: Sequence[int]) -> bytes:
    """The file with the tensors of these numbers as outputs: at most as many as it has."""
    vector = Flatbuffer(data).root().tables(2)[0].vector(2, 4)
    assert vector is not None, "a file with outputs has their vector"
    changed = bytearray(data)
    struct.pack_into(f"<I{len(numbers)}i", changed, vector[0] - 4, len(numbers), *numbers)
    return bytes(changed)


def needed_operators(file: TfliteFile) -> list[TfliteOperator]:
    """The operators of the first graph on which its outputs or new values of variables depend, in their order."""
    graph = file.graphs[0]
    needed, operators = set(graph.outputs), []
    for operator in reversed(graph.operators):
        if not operator.outputs or not needed.isdisjoint(operator.outputs):
            needed.update(operator.inputs)
            operators.append(operator)
    return operators[::-1]
