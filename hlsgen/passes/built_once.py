"""The graph of a model whose loops have one body each, or have one for each step where that is not possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.ir import Delay, Graph, Model
from hlsgen.passes.input_mode import InputMode
from hlsgen.passes.lower import lower


def lower_once(
    model: Model,
    shared: Callable[[Collector], Model | None],
    modes: InputMode | Mapping[str, InputMode] | None,
    problems: Collector,
) -> Graph:
    """`model` has every step; `shared` imports it with one body for all. The graph keeps the model of every step.

    What one body is not taken for is said by a warning (HG090).
    """
    own = Collector()
    try:
        found = shared(own)
        own.finish()
        if found is not None:
            graph = lower(found, modes, own)
            if any(isinstance(layer, Delay) for layer in graph.layers):
                problems.items += [d for d in own.warnings if d not in problems.items]
                return replace(graph, model=model)
        why = "no Scan or QuantLSTMCell has several steps"
    except HlsgenError as error:
        first = error.diagnostics[0]
        why = f"{first.node}: {first.message.rstrip('.')}"
    problems.warn("HG090", "--recurrence", f"loops are unrolled. {why}.", "It is the default: --recurrence unrolled.")
    return lower(model, modes, problems)
