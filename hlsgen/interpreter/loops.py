"""The loop-carried values of a graph at the start of each iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlsgen.ir import Delay, Graph, Layer
from hlsgen.numerics.fixed import Array


def states(graph: Graph, codes: Array, run: Callable[[Layer, Sequence[Array]], Array]) -> dict[int, Array]:
    """The result of every Delay by its number, (frames, *shape). `run` computes any other layer.

    All iterations are computed at once from assumed states, until the resulting states equal the assumed ones. Then
    they are right in iteration 0, which has the initial states, hence in iteration 1, and so on. After n rounds
    n iterations are right.
    """
    delays = {number: layer for number, layer in enumerate(graph.layers, 1) if isinstance(layer, Delay)}
    if not delays:
        return {}
    last_needed = max(max(layer.delayed, layer.inputs[0]) for layer in delays.values())
    assumed: dict[int, Array] = {}
    previous_values: dict[int, Array] = {}
    for _ in range(1 + max(layer.steps for layer in delays.values())):
        values = {0: codes}
        for number, layer in enumerate(graph.layers[:last_needed], 1):
            if number in delays:
                initial = values[layer.inputs[0]]
                values[number] = assumed.get(number, np.repeat(initial, delays[number].steps, axis=1))
            elif number in previous_values and not _follows(graph, number, delays):
                values[number] = previous_values[number]
            else:
                values[number] = run(layer, [values[i] for i in layer.inputs])
        resulting = {
            number: np.concatenate([values[layer.inputs[0]], values[layer.delayed][:, :-1]], axis=1)
            for number, layer in delays.items()
        }
        if all(np.array_equal(resulting[number], values[number]) for number in delays):
            return resulting
        assumed, previous_values = resulting, values
    raise AssertionError("a state depends on later steps")


def _follows(graph: Graph, number: int, delays: dict[int, Delay]) -> bool:
    """True if a value depends on a state."""
    needed = {number}
    for n in range(number, 0, -1):
        if n in needed:
            if n in delays:
                return True
            needed.update(graph.layers[n - 1].inputs)
    return False
