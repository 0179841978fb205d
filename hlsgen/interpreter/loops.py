"""The states of the loops of a graph, as each step finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlsgen.ir import Delay, Graph, Layer
from hlsgen.numerics.fixed import Array


def states(graph: Graph, codes: Array, run: Callable[[Layer, Sequence[Array]], Array]) -> dict[int, Array]:
    """The result of every Delay by its number, (frames, *shape). `run`: what any other layer gives.

    All steps are computed at once, of states that are assumed, until the states that come out are those that went in: then
    they are right in step 0, which has the initial ones, so in step 1, and so on. After n rounds n steps are right.
    """
    delays = {number: layer for number, layer in enumerate(graph.layers, 1) if isinstance(layer, Delay)}
    if not delays:
        return {}
    last = max(max(layer.delayed, layer.inputs[0]) for layer in delays.values())
    found: dict[int, Array] = {}
    before: dict[int, Array] = {}
    for _ in range(1 + max(layer.steps for layer in delays.values())):
        values = {0: codes}
        for number, layer in enumerate(graph.layers[:last], 1):
            if number in delays:
                initial = values[layer.inputs[0]]
                values[number] = found.get(number, np.repeat(initial, delays[number].steps, axis=1))
            elif number in before and not _follows(graph, number, delays):
                values[number] = before[number]
            else:
                values[number] = run(layer, [values[i] for i in layer.inputs])
        made = {
            number: np.concatenate([values[layer.inputs[0]], values[layer.delayed][:, :-1]], axis=1)
            for number, layer in delays.items()
        }
        if all(np.array_equal(made[number], values[number]) for number in delays):
            return made
        found, before = made, values
    raise AssertionError("a state depends on later steps")


def _follows(graph: Graph, number: int, delays: dict[int, Delay]) -> bool:
    """Whether a value depends on a state."""
    wanted = {number}
    for n in range(number, 0, -1):
        if n in wanted:
            if n in delays:
                return True
            wanted.update(graph.layers[n - 1].inputs)
    return False
