"""Operators of other tools' domains, and how to export a model without them."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.domains import QONNX

_STANDARD = "QuantizeLinear and DequantizeLinear of standard ONNX (QDQ)"
_QDQ = f"Export the model with {_STANDARD} or with the quantizers of QONNX instead"


@dataclass(frozen=True)
class Tool:
    """A tool, recognized by the domains of its nodes or the prefixes of its operators; `advice`: its export to ONNX."""

    name: str
    domains: tuple[str, ...]
    prefixes: tuple[str, ...]
    advice: str


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
        f"Quantize the ONNX model itself with nncf.quantize, which writes {_STANDARD}; "
        "or write each FakeQuantize as such a pair.",
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
    """HG011 for an operator of an unknown domain, with the name of the tool if it is known."""
    tool = next((t for t in _TOOLS if domain in t.domains), None)
    tool = tool or next((t for t in _TOOLS if op_type.startswith(t.prefixes or ("\0",))), None)
    if tool is None:
        return fail(
            "HG011",
            node,
            f"hlsgen does not know operator {op_type} of domain {domain!r}.",
            f"{_QDQ}; or remove the node. QONNX domains: {', '.join(sorted(QONNX))}.",
        )
    kind = "quantizer" if "uant" in op_type or "Neuron" in op_type else "operator"
    article = "an" if kind[0] in "aeiou" else "a"
    text = f"{op_type} of domain {domain!r} is {article} {kind} of {tool.name}, which hlsgen does not know."
    return fail("HG011", node, text, tool.advice)
