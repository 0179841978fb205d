"""Standard ONNX operators: elementwise arithmetic, linear layers, shapes, and what the host does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import DTYPES, Const, check_growth, evaluate, single_node
from hlsgen.frontend.integer_weights import in_front, integer_weights
from hlsgen.frontend.ops_activations import ACTIVATIONS, activation
from hlsgen.ir import ArgMax, HostOp, MatMul, Op, Reshape, Shape, Transpose
from hlsgen.ir.ops import Activation, Add, Cast, Div, Max, Min, Mul, QuantizeLinear, Slope
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: (operation, shape of its result)
Imported = list[tuple[Op, Shape]]

SHAPES = frozenset(["Flatten", "Reshape", "Squeeze", "Unsqueeze"])
ARITHMETIC = frozenset(["Add", "Sub", "Mul", "Div"])
#: Operators that only the host executes, before the first and after the last quantizer.
HOST = frozenset(
    [
        "ArgMax",
        "ArgMin",
        "Hardmax",
        "LogSoftmax",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceSum",
        "Softmax",
        "TopK",
    ]
)
PASSED = frozenset(["Identity", "Dropout"])
#: Operators whose computed operand need not be the first.
ANY_POSITION = ARITHMETIC | {"MatMul", "Gemm"}
OPERATORS = SHAPES | ARITHMETIC | ACTIVATIONS | HOST | PASSED | frozenset(
    ["ArgMax", "BatchNormalization", "Cast", "Clip", "Gemm", "MatMul", "Max", "Min", "Neg", "Relu", "TopK", "Transpose"]
)  # fmt: skip


def import_standard(
    node: onnx.NodeProto,
    name: str,
    shape: Shape,
    inputs: list[Const | None],
    attrs: dict[str, Any],
    opset: int,
    position: int,
    dtype: str,
) -> Imported:
    """Steps for a node whose only dynamic input, of that shape and dtype, is number `position`.

    `inputs` holds the constants, None at the dynamic one and where an optional input is absent.
    """
    op_type = node.op_type
    if position != 0 and op_type not in ANY_POSITION:
        raise fail(
            "HG020", name, f"input {position} ({node.input[position]!r}) of {op_type} is not a constant.",
            "Only the first input may be computed from the model's input.",
        )  # fmt: skip
    if op_type in PASSED:
        if len(inputs) > 2 and inputs[2] is not None and inputs[2].array.any():
            raise fail("HG013", name, "training_mode is true.", "Export the model in evaluation mode.")
        return []
    if op_type in ARITHMETIC:
        return [(op, shape) for op in _arithmetic(op_type, name, shape, inputs, position, dtype)]
    if op_type in SHAPES:
        dummy: Array = np.broadcast_to(np.float32(0), shape)
        arrays = [dummy, *(i.array for i in inputs[1:] if i is not None)]
        if len(arrays) < len([i for i in node.input if i]):
            raise fail("HG020", name, "the shape is not a constant.", "Fix the model's shapes.")
        return [(Reshape(), evaluate(node, arrays, opset)[0].shape)]
    if op_type == "PRelu" and inputs[1] is not None and inputs[1].array.size > 1:
        return [(Slope(operand(name, shape, inputs[1], "the slope", dtype)), shape)]
    if op_type in ACTIVATIONS:
        return [(op, shape) for op in activation(op_type, name, shape, inputs, attrs, dtype)]
    match op_type:
        case "Cast":
            return _cast(name, shape, attrs, dtype)
        case "Relu":
            return [(Max(_constant(0.0, shape, dtype)), shape)]
        case "Max" | "Min":
            return [(op, shape) for op in _extreme(op_type, name, shape, inputs, position, dtype)]
        case "Neg":
            return [(Mul(_constant(-1.0, shape, dtype)), shape)]
        case "Clip":
            return [(op, shape) for op in _clip(name, shape, inputs, attrs, dtype)]
        case "BatchNormalization":
            return [(op, shape) for op in _batch_norm(name, shape, inputs, attrs)]
        case "Transpose":
            perm = tuple(attrs.get("perm") or reversed(range(len(shape))))
            if sorted(perm) != list(range(len(shape))):
                raise fail("HG013", name, f"perm {list(perm)} for rank {len(shape)}.")
            return [(Transpose(perm), tuple(shape[p] for p in perm))]
        case "MatMul":
            return _matmul(name, shape, inputs, position, transposed=False)
        case "Gemm":
            return _gemm(name, shape, inputs, attrs, position)
        case "ArgMax" | "TopK":
            return _arg_max(node, name, shape, inputs, attrs, opset)
        case _:
            return _host(node, name, shape, inputs, opset)


def _constant(value: float, shape: Shape, dtype: str = "float32") -> Array:
    return np.full((1,) * len(shape), value, dtype)


def operand(name: str, shape: Shape, const: Const | None, what: str, dtype: str = "float32") -> Array:
    """A constant of that dtype that broadcasts to `shape` without growing it, with its rank."""
    if const is None:
        raise fail("HG020", name, f"{what} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiub":
        raise fail("HG026", name, f"{what} is of type {const.array.dtype}; numbers are needed.", "Store it as float32.")
    with np.errstate(over="ignore"):
        array = const.array.astype(dtype)
    if not np.isfinite(array).all():
        bad = array.ravel()[~np.isfinite(array).ravel()][0]
        raise fail("HG027", name, f"{what} has the value {bad}.", f"Every constant must be finite in {dtype}.")
    if (array != const.array).any():
        raise fail(
            "HG026", name, f"{what} is of type {const.array.dtype} and has values that {dtype} does not.",
            f"Store it as {dtype}.",
        )  # fmt: skip
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise fail(
            "HG023", name, f"{what} of shape {list(const.array.shape)} for data of shape {list(shape)}.",
            "It must broadcast to the data.",
        )  # fmt: skip
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)


def _arithmetic(
    op: str, name: str, shape: Shape, inputs: list[Const | None], position: int, dtype: str
) -> list[Op]:  # fmt: skip
    value = operand(name, shape, inputs[1 - position], "the other operand", dtype)
    match op:
        case "Add":
            return [Add(value)]
        case "Mul":
            return [Mul(value)]
        case "Sub":
            # c - x = (x * -1) + c and x - c = x + (-c): negation is exact.
            return [Add(-value)] if position == 0 else [Mul(_constant(-1.0, shape, dtype)), Add(value)]
        case _:
            if np.dtype(dtype).kind in "iu":
                raise fail("HG026", name, f"division of {dtype} data.", "Cast it to float32 first (operator Cast).")
            if position == 1:
                return [Activation("Reciprocal"), Mul(value)] if (value == 1).all() else _quotient(name)
            if (value == 0).any():
                raise fail("HG027", name, "division by zero.")
            return [Div(value)]


def _quotient(name: str) -> list[Op]:
    raise fail("HG010", name, "division of a constant other than 1 by the data is not supported.")


def _extreme(
    op_type: str, name: str, shape: Shape, inputs: list[Const | None], position: int, dtype: str
) -> list[Op]:  # fmt: skip
    """Max or Min of the data and constants."""
    bounds = [operand(name, shape, const, "an operand", dtype) for i, const in enumerate(inputs) if i != position]
    return [Max(bound) if op_type == "Max" else Min(bound) for bound in bounds]


def _clip(name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any], dtype: str) -> list[Op]:
    def bound(i: int, key: str) -> Array | None:
        if len(inputs) > i and inputs[i] is not None:
            return operand(name, shape, inputs[i], key, dtype)
        return _constant(attrs[key], shape, dtype) if key in attrs else None

    low, high = bound(1, "min"), bound(2, "max")
    return [*([Max(low)] if low is not None else []), *([Min(high)] if high is not None else [])]


def _batch_norm(name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any]) -> list[Op]:
    """y = x * a + b with a = gamma * (1 / sqrt(var + eps)), b = beta - mean * a, each in float32.

    ONNX gives no order of operations; this is onnxruntime's, which the QONNX executor uses.
    """
    if len(inputs) < 5:
        raise fail("HG014", name, "scale, B, input_mean and input_var are needed.")
    if attrs.get("training_mode", 0):
        raise fail("HG013", name, "training_mode is 1.", "Export the model in evaluation mode.")
    if len(shape) < 2:
        raise fail("HG023", name, f"data of shape {list(shape)} has no channel axis 1.")
    form = (1, shape[1], *(1,) * (len(shape) - 2))
    arrays = []
    for i, what in enumerate(["scale", "B", "input_mean", "input_var"], 1):
        const = inputs[i]
        if const is not None and const.array.size != shape[1]:
            raise fail("HG023", name, f"{what} has {const.array.size} values for {shape[1]} channels.")
        arrays.append(operand(name, form, Const(const.array.reshape(form)) if const else None, what))
    gamma, beta, mean, var = arrays
    epsilon = np.float32(attrs.get("epsilon", 1e-5))
    with np.errstate(all="ignore"):
        scale = gamma * (np.float32(1) / np.sqrt(var + epsilon))
        bias = beta - mean * scale
    if not (np.isfinite(scale).all() and np.isfinite(bias).all()):
        raise fail("HG027", name, "variance and epsilon give a factor that is not finite.")
    return [Mul(scale), Add(bias)]


def _cast(name: str, shape: Shape, attrs: dict[str, Any], dtype: str) -> Imported:
    kind = attrs.get("to")
    if kind not in DTYPES:
        raise fail(
            "HG026", name, f"Cast to type number {kind}.",
            "Supported: float16, float32, float64 and integers of up to 32 bits.",
        )  # fmt: skip
    to = DTYPES[kind]
    if to == dtype:
        return []
    if np.dtype(to).kind == "f":
        return [(Cast(to), shape)]
    info = np.iinfo(to)
    if np.dtype(dtype).kind in "iu":
        return [(Cast(to), shape)]
    one = _constant(1.0, shape, dtype)
    whole = np.zeros((1,) * len(shape), np.int64)
    return [(QuantizeLinear(one, whole, IntType(int(info.min), int(info.max)), to, Rounding.DOWN), shape)]


def _matmul(name: str, shape: Shape, inputs: list[Const | None], position: int, transposed: bool) -> Imported:
    if position != 0:
        raise fail("HG010", name, "the constant is the left operand.", "Only data times constant is supported.")
    const = inputs[1]
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.")
    rank = const.array.ndim
    while const.array.ndim > 2 and const.array.shape[0] == 1:
        const = const.map(lambda part: part[0])
    if const.array.ndim != 2:
        raise fail("HG023", name, f"weights of shape {list(const.array.shape)}; a matrix is needed.")
    if not transposed:
        const = const.map(np.transpose)
    rows, columns = const.array.shape
    if not rows or not columns:
        raise fail("HG023", name, f"weights of shape {list(const.array.shape)}.", "A matrix must not be empty.")
    if not shape or shape[-1] != columns:
        raise fail("HG023", name, f"weights for {columns} columns, data of shape {list(shape)}.")
    weight, scale = integer_weights(name, const)
    result = (*shape[:-1], rows)
    return [(MatMul(weight, scale), result), *in_front(result, len(shape), rank)]


def _gemm(name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any], position: int) -> Imported:
    if attrs.get("transA", 0):
        raise fail("HG013", name, "transA is 1.", "Only transA = 0 is supported.")
    if len(shape) != 2:
        raise fail("HG023", name, f"data of shape {list(shape)}; Gemm takes a matrix.")
    steps = _matmul(name, shape, inputs[:2], position, transposed=bool(attrs.get("transB", 0)))
    result = steps[-1][1]
    alpha, beta = np.float32(attrs.get("alpha", 1.0)), np.float32(attrs.get("beta", 1.0))
    if not (np.isfinite(alpha) and np.isfinite(beta)):
        raise fail("HG027", name, f"alpha {alpha}, beta {beta}.")
    if alpha != 1:
        steps.append((Mul(_constant(float(alpha), result)), result))
    if len(inputs) > 2 and inputs[2] is not None:
        steps.append((Add(beta * operand(name, result, inputs[2], "C")), result))
    return steps


def _arg_max(
    node: onnx.NodeProto,
    name: str,
    shape: Shape,
    inputs: list[Const | None],
    attrs: dict[str, Any],
    opset: int,
) -> Imported:
    """ArgMax or TopK(1) indices over the last axis; anything else is the host's."""
    axis = attrs.get("axis", 0 if node.op_type == "ArgMax" else -1)
    last = bool(shape) and axis in (-1, len(shape) - 1)
    keep = bool(attrs.get("keepdims", 1))
    if node.op_type == "TopK":
        k = inputs[1].array if len(inputs) > 1 and inputs[1] is not None else np.asarray(attrs.get("k", 0))
        last = last and k.size == 1 and bool((k == 1).all()) and attrs.get("largest", 1) == 1
        keep = True
        if not node.output[1:] or node.output[0] != "":
            last = False
    elif attrs.get("select_last_index", 0):
        last = False
    if not last:
        return _host(node, name, shape, inputs, opset)
    return [(ArgMax(keep), (*shape[:-1], 1) if keep else shape[:-1])]


def _host(node: onnx.NodeProto, name: str, shape: Shape, inputs: list[Const | None], opset: int) -> Imported:
    """The node as a model of its own, its constants inside; its result's shape by trying it."""
    data = np.zeros(shape, np.float32)
    arrays, constants = [], []
    for i, text in enumerate(node.input):
        if not text:
            continue
        const = inputs[i]
        arrays.append(data if const is None else const.array)
        if const is not None:
            constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(const.array), text))
    check_growth(node, arrays)
    result = evaluate(node, arrays, opset)[0]
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    kept.name = ""
    model = single_node(kept, arrays, opset)
    model.graph.initializer.extend(constants)
    return [(HostOp(node.op_type, model.SerializeToString(deterministic=True)), result.shape)]
