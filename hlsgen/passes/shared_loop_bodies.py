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
    separate: bool = False,
) -> Graph:
    """Lower `model`, whose loops are unrolled, with one body for each loop if possible.

    `shared` imports the same model with one body for each loop. The resulting graph keeps the unrolled `model`.
    If the loops stay unrolled, a warning gives the reason (HG090). `separate`: see `lower`.
    """
    shared_problems = Collector()
    try:
        shared_model = shared(shared_problems)
        shared_problems.finish()
        if shared_model is not None:
            graph = lower(shared_model, modes, shared_problems, separate)
            if any(isinstance(layer, Delay) for layer in graph.layers):
                problems.items += [d for d in shared_problems.warnings if d not in problems.items]
                return replace(graph, model=model)
        reason = "no Scan, QuantLSTMCell or UNIDIRECTIONAL_SEQUENCE_LSTM has several steps"
    except HlsgenError as error:
        diagnostic = error.diagnostics[0]
        reason = f"{diagnostic.node}: {diagnostic.message.rstrip('.')}"
    problems.warn("HG090", "--recurrence", f"loops are unrolled. {reason}.", "Choose it by --recurrence unrolled.")
    return lower(model, modes, problems, separate)


def builds_once(recurrence: str, model: Model, loadable: bool) -> bool:
    """True if a build with this option joins the steps of loops. "auto": where a model has such loops by nature.

    `loadable`: weights can be written at run time, which shared bodies do not have.
    """
    return recurrence == "once" or (recurrence == "auto" and model.loops and not loadable)
