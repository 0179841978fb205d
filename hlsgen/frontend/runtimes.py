"""Runtimes of ONNX, TFLite and ALIR files: the program whose integers a build reproduces.

Most operators give the same integers in all runtimes. They differ if onnxruntime computes a group of nodes as one
integer operator (`onnxruntime_groups`), or if an operator exists in one runtime only.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.domains import CHANNELS_LAST, MICROSOFT, QONNX

#: Versions whose results the tests compare with, by package.
VERSIONS = {
    "qonnx": "1.0.0",
    "onnx": "1.22.0",
    "onnxruntime": "1.31.1",
    "tflite_micro": "0.dev20261023182759",
    "ai_edge_litert": "2.3.0",
    "alkaid": "0.8.2",
}
#: (package, description) by runtime.
RUNTIMES = {
    "qonnx": ("qonnx", "node by node"),
    "onnx": ("onnx", "operators as they are defined, node by node"),
    "onnxruntime": ("onnxruntime", "default session on x86-64, with the groups of nodes that it fuses"),
    "onnxruntime-arm": ("onnxruntime", "default session on ARM, which fuses int8 groups too"),
    "tflm": ("tflite_micro", "reference kernels"),
    "litert-ref": ("ai_edge_litert", "reference kernels, OpResolverType.BUILTIN_REF"),
    "litert": ("ai_edge_litert", "default interpreter on x86-64, with XNNPACK"),
    "alir": ("alkaid", "interpreter of ALIR programs"),
}
#: Runtimes of TFLite files; the first is the default.
TFLITE = ("tflm", "litert-ref", "litert")
#: The runtime of ALIR files.
ALIR = "alir"
#: Runtimes that compute groups of nodes as one operator.
GROUPING = ("onnxruntime", "onnxruntime-arm")
#: Values of `--runtime`.
CHOICES = ("auto", *RUNTIMES)
#: Operators of QONNX, which files also have in other domains.
QONNX_OPS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "MultiThreshold", "FloatQuant", "Im2Col"])


def tflite_runtime_of(choice: str = "auto") -> str:
    """The runtime `choice` of a TFLite file, "auto" is the default. Raises HG040."""
    if choice == "auto":
        return TFLITE[0]
    if choice not in TFLITE:
        text = f"the runtime {choice!r} does not run TFLite files."
        raise fail("HG040", "--runtime", text, f"Supported: {', '.join(TFLITE)}.")
    return choice


def check_alir_runtime(choice: str) -> None:
    """Raises HG040 if `choice` is not the runtime of ALIR files, nor "auto"."""
    if choice not in ("auto", ALIR):
        text = f"the runtime {choice!r} does not run ALIR files."
        raise fail("HG040", "--runtime", text, f"Supported: {ALIR}.")


def runtime_of(nodes: Iterable[onnx.NodeProto], choice: str = "auto") -> str:
    """The runtime `choice`; for "auto", the runtime that executes files with such nodes. Raises HG040."""
    if choice not in CHOICES:
        raise fail("HG040", "--runtime", f"there is no runtime {choice!r}.", f"Supported: {', '.join(CHOICES)}.")
    of_other_files = (*TFLITE, ALIR)
    if choice in of_other_files:
        text = f"the runtime {choice!r} does not run ONNX files."
        supported = ", ".join(name for name in CHOICES if name not in of_other_files)
        raise fail("HG040", "--runtime", text, f"Supported: {supported}.")
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


def version_note(runtime: str) -> str:
    """A sentence if another version of the runtime's package is installed than the build states, else ""."""
    package, _ = RUNTIMES[runtime]
    try:
        installed = version(package)
    except PackageNotFoundError:
        return ""
    if installed == VERSIONS[package]:
        return ""
    return (
        f"{package} {installed} is installed: the build has the integers of {package} {VERSIONS[package]}, and other "
        "versions may compute others"
    )


def described(runtime: str) -> str:
    """Package, version and description of a runtime, for users."""
    package, description = RUNTIMES[runtime]
    return f"{package} {VERSIONS[package]} ({description})"
