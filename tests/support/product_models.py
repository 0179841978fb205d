"""Random models that multiply two computed tensors, in the dialects that have such products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


@dataclass(frozen=True)
class Shape:
    """Heads, rows, summed elements, columns; whether both operands are stored with tokens in front of heads."""

    heads: int
    rows: int
    depth: int
    columns: int
    by_token: tuple[bool, bool] = (True, True)
    transposed: bool = True


@dataclass(frozen=True)
class Codes:
    """Type and zero point of 8-bit codes, of which only `bits` are used; the scale."""

    dtype: str
    zero: int
    bits: int
    scale: float


class _Maker:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def scale(self, codes: Codes) -> tuple[str, str]:
        return self.constant(np.float32(codes.scale)), self.constant(np.array(codes.zero, codes.dtype))

    def quantized(self, x: str, codes: Codes) -> str:
        """Codes of the float tensor x, clipped to their bits."""
        scale, zero = self.scale(codes)
        q = self.node("QuantizeLinear", x, scale, zero)
        if codes.bits < 8:
            signed = codes.dtype == "int8"
            low = -(1 << (codes.bits - 1)) if signed else 0
            ends = [np.array(v, codes.dtype) for v in (low, low + (1 << codes.bits) - 1)]
            q = self.node("Clip", q, *(self.constant(end) for end in ends))
        return q

    def dequantized(self, q: str, codes: Codes) -> str:
        return self.node("DequantizeLinear", q, *self.scale(codes))

    def split(self, x: str, shape: Shape, side: int) -> str:
        """The operand's codes as (1, heads, rows or depth, depth or columns)."""
        inner = (shape.rows, shape.depth) if side == 0 else (shape.depth, shape.columns)
        turned = side == 1 and shape.transposed
        first, second = inner[::-1] if turned else inner
        sizes = [1, first, shape.heads, second] if shape.by_token[side] else [1, shape.heads, first, second]
        x = self.node("Reshape", x, self.constant(np.array(sizes)))
        axes = [0, 2, 1, 3] if shape.by_token[side] else [0, 1, 2, 3]
        perm = [axes[0], axes[1], axes[3], axes[2]] if turned else axes
        return x if perm == [0, 1, 2, 3] else self.node("Transpose", x, perm=perm)


def model(kind: str, shape: Shape, a: Codes, b: Codes, y: Codes) -> onnx.ModelProto:
    """x (1, n) is quantized; its first elements are the left operand, the last ones the right one.

    kind: qdq, qlinear, integer.
    """
    m = _Maker()
    left, right = shape.heads * shape.rows * shape.depth, shape.heads * shape.depth * shape.columns
    whole = Codes("int8", 0, 8, 1 / 16)
    x = m.dequantized(m.quantized("x", whole), whole)
    parts = []
    for side, (codes, start, stop) in enumerate(((a, 0, left), (b, left, left + right))):
        ends = [m.constant(np.array([v])) for v in (start, stop)]
        part = m.node("Slice", x, *ends, m.constant(np.array([1])))
        parts.append(m.split(m.quantized(part, codes), shape, side))
    if kind == "qdq":
        real = [m.dequantized(q, codes) for q, codes in zip(parts, (a, b), strict=True)]
        out = m.quantized(m.node("MatMul", *real), y)
    elif kind == "qlinear":
        out = m.node("QLinearMatMul", parts[0], *m.scale(a), parts[1], *m.scale(b), *m.scale(y))
    else:
        sums = m.node("MatMulInteger", *parts, m.scale(a)[1], m.scale(b)[1])
        scaled = m.node("Mul", m.node("Cast", sums, to=TensorProto.FLOAT), m.constant(np.float32(a.scale * b.scale)))
        out = m.quantized(scaled, y)
    real = m.dequantized(out, y)
    result = [1, shape.heads, shape.rows, shape.columns]
    graph = helper.make_graph(
        m.nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, left + right])],
        [helper.make_tensor_value_info(real, TensorProto.FLOAT, result)],
        m.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def some(rng: np.random.Generator, most: int = 64) -> tuple[str, Shape, Codes, Codes, Codes]:
    """A random one. `most`: tokens and elements of a head."""
    kind = str(rng.choice(["qdq", "qlinear", "integer"]))
    # What one operand has rows of, the other has as columns: scores of tokens, or sums of values over tokens.
    tokens, width = int(rng.integers(2, most + 1)), int(rng.choice([2, 4, 6, 8, 16, 64][: 3 + (most > 8) * 3]))
    depth, columns = (width, tokens) if rng.random() < 0.5 else (tokens, width)
    by_token = bool(rng.random() < 0.7), bool(rng.random() < 0.7)
    shape = Shape(int(rng.integers(1, 9)), tokens, depth, columns, by_token, bool(rng.random() < 0.5))
    dtypes = [("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")]
    names = dtypes[rng.integers(3)]
    codes = []
    for name in names:
        low = -128 if name == "int8" else 0
        zero = int(rng.integers(low, low + 256)) if rng.random() < 0.5 else 0
        codes.append(Codes(name, zero, int(rng.integers(2, 9)), float(np.float32(rng.uniform(0.01, 0.2)))))
    sums = codes[0].scale * codes[1].scale * 2.0 ** (codes[0].bits + codes[1].bits) * np.sqrt(depth)
    y = Codes(names[2], codes[2].zero, 8, float(np.float32(sums / 256)))
    return kind, shape, codes[0], codes[1], y
