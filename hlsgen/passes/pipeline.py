"""The passes from Model to Model, in order, and the checks of their results.

HLSGEN_CHECK=1 in the environment (the tests set it) checks the Model before the first pass and after every pass, and
the Graph at the end (`hlsgen.ir.verify`). A violation is a defect of hlsgen, not of the model: HG098.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hlsgen.diagnostics import Diagnostic, HlsgenError
from hlsgen.ir import Graph, Model
from hlsgen.ir.verify import Violation, verify_graph, verify_model
from hlsgen.passes import (
    fuse_pad_into_conv,
    fuse_unary_subgraphs,
    hoist_quantizers,
    move_concat_past_join,
    move_concat_past_quant,
    move_maxpool_past_quant,
)

Pass = Callable[[Model], Model]

#: (name, pass), in the order in which they run. Each returns a Model with the same results.
PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("hoist_quantizers", hoist_quantizers.hoist_before_slices),
    ("fuse_unary_subgraphs", fuse_unary_subgraphs.fuse_unary),
    ("move_concat_past_join", move_concat_past_join.move_past_binaries),
    ("move_concat_past_quant", move_concat_past_quant.move_past_quantizers),
    ("move_maxpool_past_quant", move_maxpool_past_quant.move_past_quantizers),
    ("fuse_pad_into_conv", fuse_pad_into_conv.merge_pads),
)

#: Largest number of violations that are reported.
_MAX_SHOWN = 20


def run_pipeline(model: Model, pipeline: tuple[tuple[str, Pass], ...] = PIPELINE) -> Model:
    """The Model after all passes. Raises HG098 for an illegal one if checks are on, and the errors of the passes."""
    check_model(model, "the frontend")
    for name, run in pipeline:
        model = run(model)
        check_model(model, f"pass {name}")
    return model


def check_model(model: Model, maker: str) -> None:
    """Check the Model that `maker` produced, if checks are on. Raises HG098."""
    if _is_checking():
        _report(verify_model(model), maker)


def check_graph(graph: Graph, maker: str) -> None:
    """Check the Graph that `maker` produced, if checks are on. Raises HG098."""
    if _is_checking():
        _report(verify_graph(graph), maker)


def _is_checking() -> bool:
    return os.environ.get("HLSGEN_CHECK") == "1"


def _report(violations: list[Violation], maker: str) -> None:
    if violations:
        hint = "This is a defect of hlsgen: please report it, with the model."
        shown = violations[:_MAX_SHOWN]
        raise HlsgenError([Diagnostic("HG098", maker, f"produced an illegal form. {v}", hint) for v in shown])
