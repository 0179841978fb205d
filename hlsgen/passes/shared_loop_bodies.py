"""Lowers a model with one body for each loop, or with unrolled loops where that is impossible."""

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
    """Lower `model`, whose loops are unrolled, with one body for each loop if possible.

    `shared` imports the same model with one body for each loop. The resulting graph keeps the unrolled `model`.
    If the loops stay unrolled, a warning gives the reason (HG090).
    """
    shared_problems = Collector()
    try:
        shared_model = shared(shared_problems)
        shared_problems.finish()
        if shared_model is not None:
            graph = lower(shared_model, modes, shared_problems)
            if any(isinstance(layer, Delay) for layer in graph.layers):
                problems.items += [d for d in shared_problems.warnings if d not in problems.items]
                return replace(graph, model=model)
        reason = "no Scan or QuantLSTMCell has several steps"
    except HlsgenError as error:
        diagnostic = error.diagnostics[0]
        reason = f"{diagnostic.node}: {diagnostic.message.rstrip('.')}"
    problems.warn(
        "HG090", "--recurrence", f"loops are unrolled. {reason}.", "It is the default: --recurrence unrolled."
    )
    return lower(model, modes, problems)
