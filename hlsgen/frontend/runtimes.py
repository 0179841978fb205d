"""Runtimes of ONNX files: the program whose integers a build has.

Operators that a file defines exactly mean the same in all of them. They differ where onnxruntime computes a group of
nodes as one integer operator (`onnxruntime_groups`), and where an operator exists in one of them only.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.domains import CHANNELS_LAST, MICROSOFT, QONNX

#: Versions whose results the tests compare with, by package.
VERSIONS = {"qonnx": "1.0.0", "onnx": "1.22.0", "onnxruntime": "1.31.1"}
#: By runtime: its package, and the words that follow the version.
RUNTIMES = {
    "qonnx": ("qonnx", "node by node"),
    "onnx": ("onnx", "operators as they are defined, node by node"),
    "onnxruntime": ("onnxruntime", "default session on x86-64, with the groups of nodes that it fuses"),
    "onnxruntime-arm": ("onnxruntime", "default session on ARM, which fuses int8 groups too"),
}
#: Those that compute groups of nodes as one operator.
GROUPING = ("onnxruntime", "onnxruntime-arm")
#: What `--runtime` takes.
CHOICES = ("auto", *RUNTIMES)
#: Operators of QONNX, which files also have in other domains.
QONNX_OPS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold", "FloatQuant", "Im2Col"])


def runtime_of(nodes: Iterable[onnx.NodeProto], choice: str = "auto") -> str:
    """The runtime that `choice` names; for "auto", the one that files of these nodes are made for. Raises HG040."""
    if choice not in CHOICES:
        raise fail("HG040", "--runtime", f"{choice!r}.", f"Supported: {', '.join(CHOICES)}.")
    if choice != "auto":
        return choice
    nodes = list(nodes)
    if any(n.domain in QONNX or n.domain == CHANNELS_LAST or n.op_type in QONNX_OPS for n in nodes):
        return "qonnx"
    quantized = any(n.domain == MICROSOFT or "Linear" in n.op_type for n in nodes)
    return "onnxruntime" if quantized else "onnx"


def recorded(runtime: str) -> dict[str, str]:
    """The runtime as manifest and certificate name it, with the version that results are compared with."""
    return {"runtime": runtime, "runtime_version": VERSIONS[RUNTIMES[runtime][0]]}


def described(runtime: str) -> str:
    """The runtime's package and version, and how it computes."""
    package, how = RUNTIMES[runtime]
    return f"{package} {VERSIONS[package]} ({how})"
