"""Domains of operators, as node.domain has them."""

from __future__ import annotations

from hlsgen.frontend import domain_hlsgen

#: Standard ONNX.
ONNX = frozenset(["", "ai.onnx"])
#: QONNX, FINN and Brevitas.
QONNX = frozenset(
    ["qonnx.custom_op.general", "qonnx", "finn.custom_op.general", "finn.custom_op", "finn", "onnx.brevitas"]
)
#: QONNX operators on images whose channels are the last axis.
CHANNELS_LAST = "qonnx.custom_op.channels_last"
#: onnxruntime.
MICROSOFT = "com.microsoft"
#: Operators that standard ONNX lacks: hlsgen.frontend.dialect.
HLSGEN = domain_hlsgen.DOMAIN
