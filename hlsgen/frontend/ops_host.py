"""Operators that the host executes, before the first and after the last quantizer or layer; ArgMax and TopK."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx.shape_inference

from hlsgen.frontend import norm_patterns
from hlsgen.frontend.constant_folding import check_growth, check_size, evaluate, single_node
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.frontend.onnx_graph import with_outputs
from hlsgen.frontend.selected_elements import selected_constants
from hlsgen.ir import ArgMax, HostOp, Shape
from hlsgen.numerics.fixed import Array


def on_host(node: NodeContext) -> Imported:
    """A HostOp with the node and its constants as a model.

    Shape and type of the result come from an evaluation on zeros. Raises HG004, HG012, HG013.
    """
    if node.proto.domain == norm_patterns.DOMAIN or node.op_type == "SimplifiedLayerNormalization":
        return _normalization(node)
    data: Array = np.zeros(node.shape, node.dtype)
    arrays, constants = [], []
    for input_name, const in zip(node.proto.input, node.constants, strict=True):
        if input_name:
            arrays.append(data if const is None else const.array)
            if const is not None:
                constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(const.array), input_name))
    check_growth(node.proto, arrays)
    nameless = onnx.NodeProto()
    nameless.CopyFrom(node.proto)
    nameless.name = ""
    model = single_node(nameless, arrays, node.opset)
    model.graph.initializer.extend(constants)
    check_size(node.name, _expected_shape(model))
    result = evaluate(node.proto, arrays, node.opset)[0]
    by_name = {key: const.array for key, const in zip(node.proto.input, node.constants, strict=True) if const}
    selected = selected_constants(node.proto, node.attrs, by_name)
    op = HostOp(node.op_type, model.SerializeToString(deterministic=True), selected)
    return Imported(([(op, result.shape)],), dtype=result.dtype.name)


def _normalization(node: NodeContext) -> Imported:
    """A HostOp for a normalization of `norm_patterns` or onnxruntime, which ONNX lacks, from operators of ONNX."""
    rank, attrs = len(node.shape), node.attrs
    axes = list(attrs["axes"] if "axes" in attrs else range(attrs.get("axis", -1) % rank, rank))
    centred, scale = attrs.get("kind") == "layer", node.constant(1)
    parts = [("ReduceMean", "x axes", "mean"), ("Sub", "x mean", "d")] if centred else [("Identity", "x", "d")]
    parts += [
        ("Mul", "d d", "square"),
        ("ReduceMean", "square axes", "variance"),
        ("Add", "variance epsilon", "sum"),
        ("Sqrt", "sum", "root"),
        ("Div", "d root", "y" if scale is None else "n"),
    ]
    constants: dict[str, Array] = {
        "axes": np.array(axes, np.int64),
        "epsilon": np.array(attrs.get("epsilon", 1e-5), np.float32),
    }
    if scale is not None:
        parts.append(("Mul", "n scale", "y"))
        constants["scale"] = scale.array
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, inputs.split(), [output]) for op, inputs, output in parts],
        "normalization",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, node.shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, node.shape)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    return Imported(([(HostOp(node.op_type, model.SerializeToString(deterministic=True)), node.shape)],))


def _expected_shape(model: onnx.ModelProto) -> Shape:
    """The result's shape by onnx's inference, before anything is computed; (1,) if onnx cannot infer it."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inferred = onnx.ModelProto()
    inferred.CopyFrom(model)
    del inferred.graph.input[:]
    inferred.graph.input.extend(i for i in model.graph.input if i.name not in constants)
    try:
        kind = onnx.shape_inference.infer_shapes(inferred, data_prop=True).graph.output[0].type.tensor_type
    except Exception:  # the evaluation reports the error
        return (1,)
    dims = [dim.dim_value for dim in kind.shape.dim]
    return tuple(dims) if dims and all(dim > 0 for dim in dims) else (1,)


def arg_min(node: NodeContext) -> Imported:
    """ArgMin, by the host. Raises HG004, HG012, HG013."""
    return replace(on_host(node), dtype="int64")


def arg_max(node: NodeContext) -> Imported:
    """ArgMax: by hardware over the last axis with the first of equal elements, else by the host."""
    last = _is_last(node, node.attrs.get("axis", 0)) and not node.attrs.get("select_last_index", 0)
    imported = _largest(node, bool(node.attrs.get("keepdims", 1))) if last else on_host(node)
    return replace(imported, dtype="int64")


def top_k(node: NodeContext) -> Imported:
    """TopK: as ArgMax for the index of the largest element along the last axis, else by the host.

    Values and indices are two operations on the data.
    """
    if node.used == [0, 1]:
        names = node.outputs
        values, indices = (
            top_k(replace(node, proto=with_outputs(node.proto, part), outputs=part))
            for part in ((names[0],), ("", names[1]))
        )
        return Imported((values.outputs[0], indices.outputs[0]), dtypes=(values.dtype, indices.dtype))
    count = node.constant(1)
    k = np.asarray(node.attrs.get("k", 0)) if count is None else count.array
    largest_only = k.size == 1 and bool((k == 1).all()) and node.attrs.get("largest", 1) == 1
    last = _is_last(node, node.attrs.get("axis", -1)) and largest_only and node.used == [1]
    imported = _largest(node, True) if last else on_host(node)
    return replace(imported, dtype="int64") if node.used == [1] else imported


def _is_last(node: NodeContext, axis: int) -> bool:
    return bool(node.shape) and axis in (-1, len(node.shape) - 1)


def _largest(node: NodeContext, keep: bool) -> Imported:
    result = (*node.shape[:-1], 1) if keep else node.shape[:-1]
    return Imported(([(ArgMax(keep), result)],))
