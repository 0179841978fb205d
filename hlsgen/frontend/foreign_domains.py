"""Operators of other tools' domains: what they are, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.domains import QONNX

_STANDARD = "QuantizeLinear and DequantizeLinear of standard ONNX (QDQ)"
_QDQ = f"Export the model with {_STANDARD} or with the quantizers of QONNX instead"


@dataclass(frozen=True)
class Tool:
    """A tool by the domains of its nodes, or by what the names of its operators begin with; and how to export from it."""

    name: str
    domains: tuple[str, ...]
    prefixes: tuple[str, ...]
    way_on: str


_TOOLS = (
    Tool(
        "AMD Quark",
        ("com.amd.quark",),
        ("ExtendedQuantize", "ExtendedDequantize", "BFPQuantize", "MXQuantize"),
        f"Quantize with an integer configuration (such as XINT8 or A8W8), which writes {_STANDARD}.",
    ),
    Tool(
        "Vitis AI",
        ("com.vai.quantize", "com.xilinx", "ai.onnx.vitisai"),
        ("Vitis", "FixNeuron", "BFPFixNeuron"),
        f"Quantize with quant_format=QuantFormat.QDQ and 8-bit integer types, which writes {_STANDARD}.",
    ),
    Tool(
        "OpenVINO (NNCF)",
        ("org.openvinotoolkit",),
        ("FakeQuantize",),
        f"Quantize the ONNX model itself with nncf.quantize, which writes {_STANDARD}; or write each FakeQuantize as such a pair.",
    ),
    Tool(
        "TensorRT (Model Optimizer)",
        ("trt", "trt.plugins", "tensorrt", "ai.onnx.tensorrt"),
        ("TRT_",),
        f"Quantize with INT8, which writes {_STANDARD}; formats of 8- and 4-bit floats need opset 19 or newer.",
    ),
    Tool(
        "Qualcomm AIMET or QNN",
        ("com.qti.aisw", "qti_aisw", "aimet.customop.cpu", "aimet.customop.cuda"),
        ("QcQuantizeOp",),
        f"Export with sim.onnx.export as {_STANDARD}.",
    ),
    Tool(
        "onnxscript (torch.onnx)",
        ("pkg.torch", "pkg.onnxscript.torch_lib", "pkg.onnxscript.torch_lib.common"),
        ("aten_", "_aten_"),
        "Inline the functions of the model: onnx.inliner.inline_local_functions.",
    ),
    Tool(
        "classical machine learning (scikit-learn)",
        ("ai.onnx.ml",),
        (),
        "Leave these nodes to the host: `--outputs TENSOR` builds the part of the model before them.",
    ),
    Tool(
        "onnxruntime-extensions",
        ("ai.onnx.contrib", "com.microsoft.extensions"),
        (),
        "Leave pre- and postprocessing to the host: `--outputs TENSOR` builds the part of the model before it.",
    ),
)


def unknown_domain(domain: str, op_type: str, node: str) -> HlsgenError:
    """HG011, with the tool that the operator belongs to, if it is known."""
    tool = next((t for t in _TOOLS if domain in t.domains), None)
    tool = tool or next((t for t in _TOOLS if op_type.startswith(t.prefixes or ("\0",))), None)
    if tool is None:
        return fail(
            "HG011", node, f"operator {op_type} of domain {domain!r}, whose meaning hlsgen does not know.",
            f"{_QDQ}; or remove the node. QONNX domains: {', '.join(sorted(QONNX))}.",
        )  # fmt: skip
    kind = "quantizer" if "uant" in op_type or "Neuron" in op_type else "operator"
    return fail("HG011", node, f"{op_type} of domain {domain!r} is an own {kind} of {tool.name}.", tool.way_on)
