"""Diagnostics of the complete model, after the diagnostics of its nodes."""

from __future__ import annotations

import onnx

from hlsgen.diagnostics import Collector, Diagnostic, stuck
from hlsgen.frontend.onnx_graph import all_nodes
from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.rules import is_quantized


def report_stuck(roles: list[tuple[str, Role, str]], problems: Collector) -> None:
    """Report host operations between hardware, for a model that other errors prevent from being imported.

    `roles`: (node, role, operator) of every node with computed inputs, in order.
    """
    roles = [part for part in roles if part[1] is not Role.ELEMENTS]
    ends = [i for i, (_, role, _) in enumerate(roles) if role is not Role.HOST]
    layers = [i for i in ends if roles[i][1] is Role.LAYER] or ends
    for name, role, op_type in roles[ends[0] : layers[-1]] if ends else []:
        if role is Role.HOST:
            problems.items.append(stuck(name, op_type))


def report_float_model(graph: onnx.GraphProto, name: str, problems: Collector, first: int) -> None:
    """Insert HG036 at index `first` of the problems if layers have float weights and the model has no quantizers."""
    wrong = {d.node for d in problems.errors if d.code == "HG031"}
    if wrong and not is_quantized(graph):
        problem = Diagnostic(
            "HG036",
            name,
            f"the model is not quantized: none of its {len(list(all_nodes(graph)))} nodes is a quantizer, "
            f"and the weights of {len(wrong)} layers are floats.",
            "Quantize it first: after training with `hlsgen quantize MODEL --calibrate X.npy -o QUANTIZED`, or in "
            "training with Brevitas or QKeras (export as QONNX or QCDQ).",
        )
        problems.items.insert(first, problem)
