"""An integer compact transformer of Deeploy's operators, as QuantLab exports them, and what it computes, with Python's
integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from row_models import ita_max, ita_partial_max, layer_norm, rms_norm, softmax

Array = NDArray[Any]
DOMAIN = "PACTOps"
SOFTMAX = {"coeffA": 1, "coeffB": 173, "coeffC": 15599, "log2": 127, "n_levels": 256}


class Network:
    """Nodes of float tensors that hold integers, and for a frame x of integers the value of each."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.given: list[onnx.TensorProto] = []
        self.made: list[Callable[[dict[str, Array]], Array]] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": shape}

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        self.given.append(numpy_helper.from_array(np.asarray(array, dtype), f"c{len(self.given)}"))
        return self.given[-1].name

    def add(
        self, op: str, inputs: list[str], function: Callable[..., Array], own: bool = False, **attributes: Any
    ) -> str:
        """A node; `own`: in Deeploy's domain, with attributes that are tensors of one number."""
        name, known = f"t{len(self.nodes)}", [i for i in inputs if i in self.shapes]
        if own:
            attributes = {k: numpy_helper.from_array(np.array([v], np.float32)) for k, v in attributes.items()}
        self.nodes.append(
            helper.make_node(
                op, inputs, [name], name=f"{op}_{len(self.nodes)}", domain=DOMAIN if own else "", **attributes
            )
        )
        self.made.append(lambda values: function(*(values[i] for i in known)))
        self.shapes[name] = function(*(np.zeros(self.shapes[i], np.int64) for i in known)).shape
        return name

    def integers(self, low: int, high: int, shape: Any) -> Array:
        return self.rng.integers(low, high, shape)

    def requantized(self, x: str, spread: float, signed: bool = True, channels: int = -1) -> str:
        """RequantShift to 8 bits of a tensor whose numbers spread that far; with factors for all elements of an
        axis.
        """
        count = self.shapes[x][1] if channels > 0 else 1
        shape = (count, *(1,) * (len(self.shapes[x]) - 2)) if count > 1 else (1,)
        mul = np.maximum(1, np.round(65536 * 40 / spread * self.rng.uniform(0.8, 1.2, shape))).astype(np.int64)
        add = self.integers(-90000, 90000, shape)
        lo, hi = (-128, 127) if signed else (0, 255)
        return self.add(
            "RequantShift",
            [x, self.constant(mul), self.constant(add)],
            lambda v: np.clip((v * mul + add + 32768) >> 16, lo, hi),
            own=True,
            div=65536,
            n_levels_out=256,
            signed=int(signed),
        )

    def linear(self, x: str, width: int, bias: bool = True, signed: bool = True) -> str:
        """MatMul with constants, Add, RequantShift."""
        length = self.shapes[x][-1]
        weight = self.integers(-40, 41, (length, width))
        y = self.add("MatMul", [x, self.constant(weight)], lambda v: v @ weight)
        if bias:
            offset = self.integers(-3000, 3000, width)
            y = self.add("Add", [y, self.constant(offset)], lambda v: v + offset)
        return self.requantized(y, 40 * 23 * np.sqrt(length), signed)

    def rows(
        self, op: str, x: str, function: Callable[[list[int]], list[int]], *constants: Array, **attributes: int
    ) -> str:
        def run(v: Array) -> Array:
            return np.apply_along_axis(lambda row: np.array(function([int(n) for n in row])), -1, v)

        return self.add(op, [x, *map(self.constant, constants)], run, own=True, **attributes)

    def normalized(self, x: str, root: bool = False) -> str:
        length = self.shapes[x][-1]
        weight, bias = self.integers(3000, 9000, length), self.integers(-90000, 90000, length)
        if root:
            return self.rows("iRMSNorm", x, lambda row: rms_norm(row, weight, 256), weight, D=256, n_levels=256)
        return self.rows(
            "iLayerNorm", x, lambda row: layer_norm(row, weight, bias, 256), weight, bias, D=256, n_levels=256
        )

    def shares(self, x: str, kind: str) -> str:
        if kind == "ITAMax":
            return self.rows(kind, x, lambda row: ita_max(row, 256), n_levels=256)
        if kind == "ITAPartialMax":
            group = next(n for n in (16, 8, 4, 2, 1) if self.shapes[x][-1] % n == 0)
            return self.rows(kind, x, lambda row: ita_partial_max(row, 256, group), n_levels=256, group_width=group)
        return self.rows("iSoftmax", x, lambda row: softmax(row, *SOFTMAX.values()), **SOFTMAX)

    def moved(self, x: str, *perm: int) -> str:
        return self.add("Transpose", [x], lambda v: v.transpose(perm), perm=perm)

    def reshaped(self, x: str, *shape: int) -> str:
        return self.add("Reshape", [x, self.constant(shape, np.int64)], lambda v: v.reshape(shape))

    def product(self, a: str, b: str, spread: float) -> str:
        return self.requantized(self.add("MatMul", [a, b], np.matmul), spread)

    def residual(self, a: str, b: str) -> str:
        return self.requantized(self.add("Add", [a, b], np.add), 80)

    def attention(self, x: str, heads: int, kind: str) -> str:
        _, tokens, width = self.shapes[x]
        own = width // heads
        q, k, v = (self.reshaped(self.linear(x, width), 1, tokens, heads, own) for _ in range(3))
        scores = self.product(self.moved(q, 0, 2, 1, 3), self.moved(k, 0, 2, 3, 1), 90 * 60 * np.sqrt(own))
        context = self.product(self.shares(scores, kind), self.moved(v, 0, 2, 1, 3), 255 * 20)
        return self.linear(self.reshaped(self.moved(context, 0, 2, 1, 3), 1, tokens, width), width)

    def gelu(self, x: str) -> str:
        b, one = -91, 7000

        def run(v: Array) -> Array:
            d = np.minimum(np.abs(v), -b) + b
            return np.asarray(v * ((one + np.sign(v) * (one - d * d)) >> 1))

        return self.requantized(self.add("iGELU", [x], run, own=True, b=b, one=one), 40 * one)

    def convolved(self, x: str, width: int) -> str:
        """Conv of 3 x 3, RequantShift to unsigned codes, MaxPool of 3 x 3 with stride 2."""
        _, channels, *_ = self.shapes[x]
        weight = self.integers(-40, 41, (width, channels, 3, 3))

        def run(v: Array) -> Array:
            taps = sliding_window_view(np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
            return np.einsum("nchwij,ocij->nohw", taps, weight)

        y = self.add("Conv", [x, self.constant(weight)], run, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        y = self.requantized(y, 40 * 23 * 3 * np.sqrt(channels), False, channels=1)

        def pool(v: Array) -> Array:
            padded = np.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1)
            return np.asarray(sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5)))

        return self.add("MaxPool", [y], pool, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])

    def model(self, y: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "transformer",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, self.shapes[y])],
            self.given,
        )
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def computed(self, x: Array) -> dict[str, Array]:
        """All values of a frame."""
        values = {"x": x.astype(np.int64)}
        for number, made in enumerate(self.made):
            values[f"t{number}"] = made(values)
        return values


def compact_transformer(
    seed: int,
    *,
    size: int = 8,
    width: int = 8,
    heads: int = 2,
    blocks: int = 1,
    kind: str = "iSoftmax",
    root: bool = False,
) -> tuple[Network, str]:
    """Two layers of convolutions as tokenizer, positions added, encoder blocks, pooling of the sequence, a
    classifier.
    """
    net = Network(seed, (1, 3, size, size))
    image = net.convolved(net.convolved("x", width // 2), width)
    tokens = net.shapes[image][2] * net.shapes[image][3]
    x = net.moved(net.reshaped(image, 1, width, tokens), 0, 2, 1)
    positions = net.integers(-60, 60, (1, tokens, width))
    x = net.requantized(net.add("Add", [x, net.constant(positions)], lambda v: v + positions), 90)
    for _ in range(blocks):
        x = net.residual(x, net.attention(net.normalized(x, root), heads, kind))
        y = net.gelu(net.linear(net.normalized(x, root), 2 * width))
        x = net.residual(x, net.linear(y, width))
    x = net.normalized(x, root)
    weights = net.shares(net.moved(net.linear(x, 1), 0, 2, 1), kind)
    pooled = net.product(weights, x, 255 * 20)
    return net, net.linear(net.reshaped(pooled, 1, width), 5)
