"""The oracle of random graphs, node by node against onnxruntime: so that it is no private opinion."""

from __future__ import annotations

import fuzz_oracle
import numpy as np
import onnx
import ort
from onnx import helper, numpy_helper

#: Operators whose kernels in onnxruntime round as the contract says, or not at all.
EXACT = frozenset(
    """Add Sub Mul Div Max Min Clip Relu Neg Abs Sign Where Greater GreaterOrEqual Less LessOrEqual Equal And Or Not
    Concat Slice Split Pad Transpose Flatten Squeeze Unsqueeze Resize DepthToSpace SpaceToDepth Expand Tile MaxPool
    GlobalMaxPool ReduceMax ReduceSum AveragePool GlobalAveragePool Conv ConvTranspose MatMul Gemm MatMulInteger
    ConvInteger QuantizeLinear DequantizeLinear QLinearMatMul QLinearConv QLinearConcat BatchNormalization Floor Ceil
    Round PRelu Identity""".split()
)


def differing(model: onnx.ModelProto, x: np.ndarray) -> list[str]:
    """The nodes that onnxruntime computes otherwise; those that it refuses are passed over."""
    values = fuzz_oracle.values(model, x)
    constants = {c.name for c in model.graph.initializer}
    wrong = []
    for node in model.graph.node:
        input_values = {i: values[i] for i in node.input if i}
        odd = any(
            v.dtype.kind == "f" and (v.dtype == np.float16 or not np.isfinite(v).all()) for v in input_values.values()
        )
        if node.op_type not in EXACT or node.domain not in ("", fuzz_oracle.MICROSOFT) or odd:
            continue
        if node.op_type == "Cast" or (node.op_type == "Clip" and _crossed(node, values)):
            continue
        outputs = _run(
            node,
            {k: v for k, v in input_values.items() if k not in constants},
            {k: values[k] for k in input_values if k in constants},
        )
        if outputs is None:
            continue
        for name, value in zip([o for o in node.output if o], outputs, strict=True):
            if value.shape != values[name].shape or not np.array_equal(value, values[name]):
                wrong.append(f"{node.name}: {node.op_type} {[(v.dtype.name, v.shape) for v in input_values.values()]}")
    return wrong


def _crossed(node: onnx.NodeProto, values: dict[str, np.ndarray]) -> bool:
    """True if the lower bound is above the upper one, which ONNX left undefined before opset 13."""
    return len(node.input) == 3 and all(node.input) and bool(values[node.input[1]] > values[node.input[2]])


def _run(
    node: onnx.NodeProto, data: dict[str, np.ndarray], constants: dict[str, np.ndarray]
) -> list[np.ndarray] | None:
    """Outputs of the single node in onnxruntime, or None if onnxruntime rejects it."""
    typed = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape))
        for k, v in data.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    stored = [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph([node], "node", typed, outputs, stored)
    opsets = [helper.make_opsetid("", fuzz_oracle.OPSET), helper.make_opsetid(fuzz_oracle.MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    try:
        return ort.run(model, {k: np.ascontiguousarray(v) for k, v in data.items()}, ort.OFF)
    except Exception:
        return None
