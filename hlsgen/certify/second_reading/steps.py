"""Access to the imported Model by the names of the file's nodes, and comparison of its numbers with the file's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.ir import Model, Shape, Step
from hlsgen.numerics.fixed import Array

#: Result of a check: the differences found (empty if equal), or None if the node has an unknown form.
Differences = list[str] | None


class ImportedSteps:
    """The steps of a Model, grouped by the node that they come from. `covered`: nodes that were compared."""

    def __init__(self, file: ModelFile, model: Model) -> None:
        self.file, self.model = file, model
        self.covered: set[int] = set()
        self.named: dict[str, list[Step]] = {}
        for step in model.steps:
            name = step.name.removesuffix(" (rescaled)").removesuffix(" (shares)")
            self.named.setdefault(name, []).append(step)

    def steps(self, n: int, *kinds: type[Any]) -> list[Step]:
        """The steps of node n; only steps of the given kinds if there are any."""
        steps = self.named.get(self.file.names[n], [])
        return [step for step in steps if isinstance(step.op, kinds)] if kinds else steps

    def only(self, n: int, *kinds: type[Any]) -> Step | None:
        """The single step of node n, if it is of these kinds; else None."""
        steps = self.steps(n)
        return steps[0] if len(steps) == 1 and isinstance(steps[0].op, kinds) else None

    def external_inputs(self, n: int) -> list[int]:
        """The values that the steps of node n read from other nodes, each once."""
        results = {number for number, step in enumerate(self.model.steps, 1) if any(step is s for s in self.steps(n))}
        return list(dict.fromkeys(i for step in self.steps(n) for i in step.inputs if i not in results))

    def input_shapes(self, n: int) -> list[Shape]:
        """The shapes of `external_inputs`."""
        return [self.model.steps[i - 1].shape if i else self.model.input_shape for i in self.external_inputs(n)]

    def input_shape(self, step: Step) -> Shape:
        """The shape of a step's first input."""
        return self.model.steps[step.inputs[0] - 1].shape if step.inputs[0] else self.model.input_shape


def aligned(values: Array, rank: int) -> Array:
    """A constant that broadcasts from the right, reshaped to a rank."""
    while values.ndim > rank and values.shape[0] == 1:
        values = values[0]
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def parameters(imported: ImportedSteps, n: int, rank: int, *inputs: int) -> list[Array] | None:
    """Constant inputs that broadcast from the right; Returns None if one is not known."""
    parts = [imported.file.constant(n, i) for i in inputs]
    return None if None in parts else [aligned(part.array, rank) for part in parts if part is not None]


def differ(quantity: str, imported: Any, expected: Any) -> Iterator[str]:
    """Describe the first difference between two numbers, or two arrays that broadcast."""
    imported_array, expected_array = np.asarray(imported), np.asarray(expected)
    try:
        imported_values, expected_values = np.broadcast_arrays(imported_array, expected_array)
    except ValueError:
        yield (
            f"{quantity} of shape {list(imported_array.shape)} was imported, the file has {list(expected_array.shape)}."
        )
        return
    unequal = np.argwhere(imported_values != expected_values)
    if len(unequal):
        at = tuple(unequal[0].tolist())
        place = f" (at {list(at)})" if at else ""
        yield f"{quantity} {imported_values[at]} was imported, the file has {expected_values[at]}{place}."
