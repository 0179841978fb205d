"""What a graph's nodes are before they become steps: their names, outputs, dtypes, order of dependence."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend import dialect_integer
from hlsgen.frontend.constant_folding import Const, label
from hlsgen.ir import Conv, ConvInteger, HostOp, MatMul, MatMulInteger, Op, Pack
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import (
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Dequantize,
    FixedAdd,
    FloatQuant,
    IntQuant,
    MultiThreshold,
    Pair,
    QuantizeLinear,
    Requantize,
    SignedBit,
    Trunc,
    Where,
)


def name_all(graph: onnx.GraphProto) -> None:
    """Gives every node a name of its own: nameless and equal ones by what they compute."""
    taken = {n.name for n in graph.node}
    seen = {""}
    for i, node in enumerate(graph.node):
        if node.name in seen:
            node.name = ""
            name = label(node)
            node.name = name if name not in taken else f"{name} ({i})"
        seen.add(node.name)


def used_inputs(graph: onnx.GraphProto, constants: Container[str]) -> list[onnx.ValueInfoProto]:
    """The graph's inputs that are no constants, without those that nothing uses, if any is used."""
    used = {i for node in graph.node for i in node.input} | {o.name for o in graph.output}
    inputs = [i for i in graph.input if i.name not in constants]
    return [i for i in inputs if i.name in used] or inputs


def computed_outputs(graph: onnx.GraphProto, inputs: list[str], problems: Collector) -> list[onnx.ValueInfoProto]:
    """The graph's outputs that depend on its inputs, with a warning if that leaves one of several; else all of them."""
    known = set(inputs)
    for node in graph.node:
        if known.intersection(node.input):
            known.update(o for o in node.output if o)
    found = [o for o in graph.output if o.name in known]
    if len(found) != 1 or len(graph.output) == 1:
        return list(graph.output)
    others = ", ".join(o.name for o in graph.output if o.name not in known)
    problems.warn(
        "HG090", found[0].name, f"the other outputs of the graph ({others}) do not depend on its input and are left out.",
        "Remove them from the graph; with Brevitas return_quant_tensor=False in the last layer.",
    )  # fmt: skip
    return found


def with_outputs(node: onnx.NodeProto, used: list[str]) -> onnx.NodeProto:
    """The node without the names of outputs that nothing uses."""
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    del kept.output[:]
    kept.output.extend(o if o in used else "" for o in node.output)
    while not kept.output[-1]:
        del kept.output[-1]
    return kept


def constant_linear(op_type: str, name: str, data: Const, inputs: list[Const | None], attrs: dict[str, Any]) -> Const:
    if op_type == "DequantizeLinear":
        return dialect_integer.dequantized(name, data, inputs, attrs)
    op = dialect_integer.quantize_linear(name, data.array.shape, inputs, attrs)
    return Const(quantize(op, data.array).astype(op.dtype))


def result_dtype(ops: list[Op], dtype: str) -> str:
    """The dtype of the last step's result, the first working on data of that dtype."""
    for op in ops:
        match op:
            case Cast() | QuantizeLinear() | Requantize() | FixedAdd() | Pair():
                dtype = op.dtype
            case Dequantize():
                dtype = str(op.scale.dtype)
            case Compare():
                dtype = "bool"
            case Constant():
                dtype = str(op.value.dtype)
            case BinaryOf() | Where():
                dtype = result_dtype(list(op.ways[-1]), dtype)
            case MatMulInteger() | ConvInteger():
                dtype = "int32"
            case Pack():
                dtype = "uint16"
            case (
                IntQuant()
                | Bipolar()
                | SignedBit()
                | Trunc()
                | MultiThreshold()
                | FloatQuant()
                | MatMul()
                | Conv()
                | HostOp()
            ):
                dtype = "float32"
            case _:
                pass
    return dtype
