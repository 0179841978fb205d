"""The imported Model, found by the names of the nodes, and how its numbers are compared with those of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.protobuf import ModelFile
from hlsgen.ir import Model, Shape, Step
from hlsgen.numerics.fixed import Array

#: What a comparison says: nothing that differs, what differs, or None where the form is not known.
Told = list[str] | None


class Found:
    """The steps of a Model by the node that they come from. `covered`: nodes that were compared."""

    def __init__(self, file: ModelFile, model: Model) -> None:
        self.file, self.model = file, model
        self.covered: set[int] = set()
        self.named: dict[str, list[Step]] = {}
        for step in model.steps:
            name = step.name.removesuffix(" (rescaled)").removesuffix(" (shares)")
            self.named.setdefault(name, []).append(step)

    def steps(self, n: int, *kinds: type[Any]) -> list[Step]:
        """The steps of node n, of these kinds if some are given."""
        own = self.named.get(self.file.names[n], [])
        return [step for step in own if isinstance(step.op, kinds)] if kinds else own

    def only(self, n: int, *kinds: type[Any]) -> Step | None:
        """The one step that node n consists of, if it is of these kinds."""
        own = self.steps(n)
        return own[0] if len(own) == 1 and isinstance(own[0].op, kinds) else None

    def outside(self, n: int) -> list[int]:
        """The values that the steps of node n take from other nodes, each once."""
        own = {number for number, step in enumerate(self.model.steps, 1) if any(step is s for s in self.steps(n))}
        return list(dict.fromkeys(i for step in self.steps(n) for i in step.inputs if i not in own))

    def taken(self, n: int) -> list[Shape]:
        """Their shapes."""
        return [self.model.steps[i - 1].shape if i else self.model.input_shape for i in self.outside(n)]

    def source(self, step: Step) -> Shape:
        """The shape of what a step takes."""
        return self.model.steps[step.inputs[0] - 1].shape if step.inputs[0] else self.model.input_shape


def aligned(values: Array, rank: int) -> Array:
    """A constant that broadcasts from the right, with a rank."""
    while values.ndim > rank and values.shape[0] == 1:
        values = values[0]
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def parameters(found: Found, n: int, rank: int, *places: int) -> list[Array] | None:
    """Constant inputs that broadcast from the right; None if one is not known."""
    parts = [found.file.constant(n, i) for i in places]
    return None if None in parts else [aligned(part.array, rank) for part in parts if part is not None]


def differ(what: str, found: Any, wanted: Any) -> Iterator[str]:
    """What differs between two numbers, or arrays that broadcast."""
    one, other = np.asarray(found), np.asarray(wanted)
    try:
        a, b = np.broadcast_arrays(one, other)
    except ValueError:
        yield f"{what} of shape {list(one.shape)} was imported, the file has {list(other.shape)}."
        return
    wrong = np.argwhere(a != b)
    if len(wrong):
        at = tuple(wrong[0].tolist())
        place = f" (at {list(at)})" if at else ""
        yield f"{what} {a[at]} was imported, the file has {b[at]}{place}."
