"""Check of a file's declarations: versions of its operators, and types of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto

from hlsgen.diagnostics import Collector
from hlsgen.frontend.constant_folding import Dynamic, Tensor
from hlsgen.frontend.domains import MICROSOFT, ONNX, QONNX
from hlsgen.frontend.onnx_graph import all_nodes
from hlsgen.ir import ArgMax, HostOp, Step

#: Oldest opset of the default domain: before it, arithmetic broadcasts by other rules.
MIN_OPSET = 7
#: Version of the default domain if a file declares none.
ASSUMED_OPSET = 13
#: Declared types that are compared.
_COMPARED = {
    TensorProto.FLOAT: "float32",
    TensorProto.FLOAT16: "float16",
    TensorProto.DOUBLE: "float64",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
    TensorProto.INT16: "int16",
    TensorProto.UINT16: "uint16",
    TensorProto.INT32: "int32",
}
#: Domains whose operators define the type of their results.
_TYPED = ONNX | QONNX | {MICROSOFT}


def versions_of(proto: onnx.ModelProto) -> dict[str, int]:
    """The version by domain; standard ONNX has the key ""."""
    versions = {o.domain: o.version for o in proto.opset_import}
    versions.setdefault("", versions.get("ai.onnx", ASSUMED_OPSET))
    return versions


def check_versions(proto: onnx.ModelProto, problems: Collector) -> None:
    """Report HG015 for an opset that is too old; warn with HG090 if versions are missing or newer than package onnx."""
    opset = versions_of(proto)[""]
    if opset < MIN_OPSET:
        problems.error(
            "HG015",
            "opset_import",
            f"opset {opset} is too old.",
            f"Supported: {MIN_OPSET} and newer; convert the model with onnx.version_converter.",
        )
    newest = onnx.defs.onnx_opset_version()
    versions = [o.version for o in proto.opset_import if o.domain in ONNX]
    if any(version > newest for version in versions):
        problems.warn(
            "HG090",
            "opset_import",
            f"opset {max(versions)} is newer than {newest}, the newest that the onnx package knows: "
            f"operators are read as those of opset {newest}.",
            "Update the package onnx, or export for an older opset.",
        )
    if not versions and any(node.domain in ONNX for node in all_nodes(proto.graph)):
        problems.warn(
            "HG090",
            "opset_import",
            f"the file imports no opset: its operators are read as those of opset {ASSUMED_OPSET}.",
            "Export the model again, with an opset_import of the default domain.",
        )
    if proto.ir_version > onnx.IR_VERSION:
        problems.warn(
            "HG090",
            "ir_version",
            f"IR version {proto.ir_version} is newer than {onnx.IR_VERSION}, the newest that the onnx "
            "package knows: fields that are new in it are ignored.",
            "Update the package onnx.",
        )


def check_types(
    graph: onnx.GraphProto, tensors: Mapping[str, Tensor], steps: Sequence[Step], problems: Collector
) -> None:
    """Report HG028 for tensors whose declared type differs from the computed one.

    Files with operators of tools that declare all tensors as floats are not checked.
    """
    producers = {output: node for node in graph.node for output in node.output if output}
    names = {node.domain for node in graph.node}
    if names - _TYPED or any(not onnx.defs.has(n.op_type) and n.domain in ONNX - QONNX for n in graph.node):
        return
    for value in (*graph.output, *graph.value_info):
        declared, tensor = _COMPARED.get(value.type.tensor_type.elem_type), tensors.get(value.name)
        if declared is None or value.name not in producers or not isinstance(tensor, Dynamic) or not tensor.index:
            continue
        if isinstance(steps[tensor.index - 1].op, HostOp | ArgMax) or np.dtype(tensor.dtype).kind not in "fiu":
            continue
        if declared != tensor.dtype:
            node = producers[value.name]
            problems.error(
                "HG028",
                value.name,
                f"is declared as {declared}, but {node.op_type} {node.name!r} computes {tensor.dtype}.",
                f"Declare it as {tensor.dtype} (onnx.shape_inference finds types), or cast it: operator Cast.",
            )
