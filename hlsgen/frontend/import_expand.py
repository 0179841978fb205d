"""Second step of an import: a node that is a loop, a branch, a cell or an attention, replaced by several nodes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend.constant_folding import Tensor
from hlsgen.frontend.control_flow import expanded
from hlsgen.frontend.import_scan import Usage
from hlsgen.frontend.onnx_graph import without_unused_outputs


def expand(
    proto: onnx.NodeProto,
    name: str,
    tensors: dict[str, Tensor],
    usage: Usage,
    opset: int,
    once: bool,
    problems: Collector,
) -> Iterator[onnx.NodeProto]:
    """The used nodes that replace `proto`; the caller imports each into `tensors` before it requests the next one.

    The nodes end with the first part that adds an error to `problems`. Raises the codes of `control_flow.expanded`.
    """
    errors_before = len(problems.errors)
    usage.branching |= set(proto.input)
    for part in expanded(without_unused_outputs(proto, usage.used), name, tensors, opset, once):
        tensors.update(part.constants)
        usage.add_part(part)
        for node in part.nodes:
            if usage.used.intersection(node.output):
                yield node
        if len(problems.errors) > errors_before:
            return
