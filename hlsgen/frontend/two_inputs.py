"""Models with two inputs of one quantized elementwise addition or multiplication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend import domain_hlsgen
from hlsgen.frontend.constant_folding import Const, ConstInputs, Tensor, attributes, evaluate, label
from hlsgen.frontend.dialect_integer import integers, quantizer_of, scale_of
from hlsgen.frontend.dialect_qlinear import approximate
from hlsgen.frontend.domains import HLSGEN, MICROSOFT
from hlsgen.frontend.graph_inputs import input_dtype, input_shape
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.ir import Shape
from hlsgen.ir.ops import FixedAdd, Pair, PairOp, QuantizeLinear
from hlsgen.numerics.fixed import Array, IntType

_HINT = (
    "Supported with two inputs: QuantizedAdd, QLinearAdd, QLinearMul of both inputs, or Add or Mul between QDQ that "
    "onnxruntime fuses."
)


@dataclass(frozen=True)
class InputPair:
    """The operation on both inputs.

    nodes   indices of its nodes
    output  name of the result tensor
    inputs  names of its first and second operand
    dtype   numpy dtype of the result
    """

    nodes: frozenset[int]
    name: str
    output: str
    op: Pair
    inputs: tuple[str, str]
    dtype: str


def of_graph(
    graph: onnx.GraphProto,
    inputs: list[onnx.ValueInfoProto],
    tensors: Mapping[str, Tensor],
    opset: int,
    fixed_point: bool,
) -> InputPair:
    """The operation on both inputs of a graph. Raises HG015, or the code of an error in its parameters."""
    constants = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Const)}
    for node in graph.node:
        if node.op_type == "Constant" and node.output and not node.domain:
            constants[node.output[0]] = Const(evaluate(node, [], opset)[0])
    shapes, dtypes = [input_shape(i)[0] for i in inputs], [input_dtype(i) for i in inputs]
    return find(graph, [i.name for i in inputs], dtypes, shapes, constants, fixed_point)


def find(
    graph: onnx.GraphProto,
    names: list[str],
    dtypes: list[str],
    shapes: list[Shape],
    constants: dict[str, Const],
    fixed_point: bool,
) -> InputPair:
    """The operation on the inputs `names` of a graph. Raises HG015, or the code of an error in its parameters."""
    label_ = ", ".join(names)
    if dtypes[0] != dtypes[1] or dtypes[0] not in ("int8", "uint8") or shapes[0] != shapes[1]:
        raise fail("HG015", label_, f"the two inputs have the types {dtypes} and the shapes {shapes}.", _HINT)
    users = {i: [n for n, node in enumerate(graph.node) if i in node.input] for i in names}
    first = {users[i][0] for i in names if len(users[i]) == 1}
    if len(first) == 1 and all(len(users[i]) == 1 for i in names):
        index = first.pop()
        return _pair_of(graph.node[index], index, names, dtypes[0], shapes[0], constants, fixed_point)
    raise fail("HG015", label_, "the two inputs are not the operands of one node.", _HINT)


def _pair_of(
    node: onnx.NodeProto,
    index: int,
    names: list[str],
    dtype: str,
    shape: Shape,
    constants: dict[str, Const],
    fixed_point: bool,
) -> InputPair:
    """The operation of a QuantizedAdd, QLinearAdd or QLinearMul of both inputs. Raises HG015, HG026."""
    name = label(node)
    if (node.domain, node.op_type) == (HLSGEN, "QuantizedAdd"):
        if dtype != "int8":
            raise fail("HG026", name, f"QuantizedAdd of {dtype} data.", "Supported: int8.")
        operands = (node.input[0], node.input[1])
        return InputPair(frozenset([index]), name, node.output[0], fixed_add(name, node), operands, "int8")
    if node.domain != MICROSOFT or node.op_type not in ("QLinearAdd", "QLinearMul") or len(node.input) < 8:
        raise fail("HG015", name, f"{node.op_type} of two inputs of the model is not supported.", _HINT)
    positions = [i for i in (0, 3) if node.input[i] in names]
    if len(positions) != 2:
        raise fail("HG015", name, f"an input of the model is a parameter of {node.op_type}.", _HINT)
    parts = [constants.get(i) if i else None for i in node.input]
    op = of_parameters(name, node.op_type, parts, dtype, shape, fixed_point)
    return InputPair(frozenset([index]), name, node.output[0], op, (node.input[0], node.input[3]), op.dtype)


def of_parameters(name: str, op_type: str, parts: ConstInputs, dtype: str, shape: Shape, fixed_point: bool) -> Pair:
    """QLinearAdd or QLinearMul of two tensors of this dtype; `parts`: the node's inputs, None for both tensors."""
    parts = [*parts, None, None]
    quantizer = quantizer_of(name, shape, [None, *parts[6:8]], {})
    operands = [(scale_of(name, parts[i + 1]), parts[i + 2]) for i in (0, 3)]
    return exact(name, op_type, operands, quantizer, dtype, fixed_point)


def fixed_add(name: str, node: onnx.NodeProto) -> Pair:
    """The operation of a QuantizedAdd node. Raises HG013."""
    attributes(node)
    try:
        parameters = domain_hlsgen.quantized_add_parameters(node)
    except (ValueError, TypeError) as error:
        raise fail("HG013", name, f"{error}.", "docs/quantized-add.md lists the attributes and their bounds.") from None
    return Pair(PairOp.FIXED, IntType(-128, 127), "int8", fixed=parameters)


def exact(
    name: str,
    op_type: str,
    operands: list[tuple[Array, Const | None]],
    quantizer: QuantizeLinear,
    dtype: str,
    fixed_point: bool,
) -> Pair:
    """QLinearAdd or QLinearMul with (scale, zero point) of both operands. Raises HG023, HG026."""
    if quantizer.dtype != dtype:
        raise fail("HG026", name, f"{op_type} of {dtype} inputs to {quantizer.dtype}.", "Use one type for all.")
    scales, zeros = [], []
    for scale, zero in operands:
        codes = np.zeros(1, np.int64) if zero is None else integers(name, zero, "a zero point", ["int8", "uint8"])[0]
        if scale.size != 1 or codes.size != 1:
            raise fail("HG023", name, f"{op_type} with a scale or zero point per channel.", "Use one per tensor.")
        scales.append(float(scale.astype(np.float32).reshape(())))
        zeros.append(int(codes.reshape(())))
    if quantizer.scale.size != 1:
        raise fail("HG023", name, f"{op_type} with an output scale per channel.", "Use one per tensor.")
    scales.append(float(quantizer.scale.astype(np.float32).reshape(())))
    zeros.append(int(quantizer.zero_point.reshape(())))
    if fixed_point and op_type == "QLinearAdd" and dtype == "int8":
        return Pair(PairOp.FIXED, IntType(-128, 127), dtype, fixed=approximate(name, scales, zeros))
    kind = PairOp.ADD if op_type == "QLinearAdd" else PairOp.MUL
    return Pair(kind, quantizer.type, dtype, tuple(scales), tuple(zeros))


def quantized_add(node: NodeContext) -> Imported:
    """QuantizedAdd of data and a constant. Raises HG013, HG023, HG026."""
    name, shape = node.name, node.shape
    parameters = fixed_add(name, node.proto).fixed
    const = node.constant(1 - node.position) if len(node.inputs) == 2 else None
    if const is None or node.dtype != "int8" or parameters is None:
        raise fail("HG026", name, f"QuantizedAdd of {node.dtype} data.", "Supported: two int8 tensors.")
    codes, _ = integers(name, const, "the constant operand", ["int8"])
    if codes.shape != shape:
        text = f"the operands have the shapes {list(shape)} and {list(codes.shape)}."
        raise fail("HG023", name, text, "Both must have the same shape.")
    return elementwise(node, FixedAdd(codes, node.position == 0, parameters))
