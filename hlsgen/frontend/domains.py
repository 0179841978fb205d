"""Domains of operators, as in node.domain."""

from __future__ import annotations

from hlsgen.frontend import domain_hlsgen

#: Standard ONNX.
ONNX = frozenset(["", "ai.onnx"])
#: QONNX, FINN and Brevitas.
QONNX = frozenset(
    ["qonnx.custom_op.general", "qonnx", "finn.custom_op.general", "finn.custom_op", "finn", "onnx.brevitas"]
)
#: QONNX operators on images with the channels as the last axis.
CHANNELS_LAST = "qonnx.custom_op.channels_last"
#: onnxruntime.
MICROSOFT = "com.microsoft"
#: Operators that standard ONNX lacks: hlsgen.frontend.domain_hlsgen.
HLSGEN = domain_hlsgen.DOMAIN
