"""Runtimes of ONNX files: the program whose integers a build reproduces.

Most operators give the same integers in all runtimes. They differ if onnxruntime computes a group of nodes as one
integer operator (`onnxruntime_groups`), or if an operator exists in one runtime only.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.domains import CHANNELS_LAST, MICROSOFT, QONNX

#: Versions whose results the tests compare with, by package.
VERSIONS = {"qonnx": "1.0.0", "onnx": "1.22.0", "onnxruntime": "1.31.1"}
#: (package, description) by runtime.
RUNTIMES = {
    "qonnx": ("qonnx", "node by node"),
    "onnx": ("onnx", "operators as they are defined, node by node"),
    "onnxruntime": ("onnxruntime", "default session on x86-64, with the groups of nodes that it fuses"),
    "onnxruntime-arm": ("onnxruntime", "default session on ARM, which fuses int8 groups too"),
}
#: Runtimes that compute groups of nodes as one operator.
GROUPING = ("onnxruntime", "onnxruntime-arm")
#: Values of `--runtime`.
CHOICES = ("auto", *RUNTIMES)
#: Operators of QONNX, which files also have in other domains.
QONNX_OPS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold", "FloatQuant", "Im2Col"])


def runtime_of(nodes: Iterable[onnx.NodeProto], choice: str = "auto") -> str:
    """The runtime `choice`; for "auto", the runtime that executes files with such nodes. Raises HG040."""
    if choice not in CHOICES:
        raise fail("HG040", "--runtime", f"there is no runtime {choice!r}.", f"Supported: {', '.join(CHOICES)}.")
    if choice != "auto":
        return choice
    nodes = list(nodes)
    if any(n.domain in QONNX or n.domain == CHANNELS_LAST or n.op_type in QONNX_OPS for n in nodes):
        return "qonnx"
    quantized = any(n.domain == MICROSOFT or "Linear" in n.op_type for n in nodes)
    return "onnxruntime" if quantized else "onnx"


def recorded(runtime: str) -> dict[str, str]:
    """The entries for manifest and certificate: the runtime, and the version that results are compared with."""
    return {"runtime": runtime, "runtime_version": VERSIONS[RUNTIMES[runtime][0]]}


def described(runtime: str) -> str:
    """Package, version and description of a runtime, for users."""
    package, description = RUNTIMES[runtime]
    return f"{package} {VERSIONS[package]} ({description})"
