"""Small networks on images and graphs with branches for the tests of `hlsgen certify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import random_graphs
from certified import Case
from integer_models import model
from onnx import TensorProto, helper

import hlsgen
from hlsgen.dataflow.workload import works_of

Array = Any


class Images(random_graphs.Graph):
    """Steps on (1, channels, height, width), with weights of small integers from a seed."""

    def __init__(self, *shape: int, seed: int = 0) -> None:
        super().__init__((1, *shape))
        self.rng = np.random.default_rng(seed)

    def codes(self, bits: float = 4.0, scale: Any = 0.5, signed: int = 1) -> Images:
        self.quant(np.asarray(scale, np.float32), 0.0, bits, signed=signed, narrow=0)
        return self

    def conv(
        self, outputs: int, channels: int, size: int | Sequence[int] = 3, values: Any = None, **more: Any
    ) -> Images:
        """A convolution; `channels` are those of a group."""
        kernel = (size, size) if isinstance(size, int) else tuple(size)
        shape = (outputs, channels, *kernel)
        weight = self.rng.integers(-3, 4, shape) if values is None else self.rng.choice(values, shape)
        self.then("Conv", weight, kernel_shape=kernel, **more)
        return self

    def linear(self, columns: int, rows: int) -> Images:
        self.then("Flatten")
        self.then("MatMul", self.rng.integers(-3, 4, (columns, rows)))
        return self

    def pool(self, kind: str, size: int = 2, **more: Any) -> Images:
        self.then(kind, kernel_shape=[size, size], **{"strides": [size, size], **more})
        return self

    def whole(self, op: str, *values: Any, **attributes: Any) -> Images:
        """An operator whose other inputs are int64."""
        names = [self.const(v, np.int64) for v in values]
        self.last = self.node(op, self.last, *names, **attributes)
        return self

    def join(self, op: str, *names: str, **attributes: Any) -> Images:
        self.last = self.node(op, *names, **attributes)
        return self

    def branches(self, *makers: Callable[[Images], Any]) -> list[str]:
        """The ends of branches that all begin here."""
        start, ends = self.last, []
        for make in makers:
            self.last = start
            make(self)
            ends.append(self.last)
        return ends

    def model(self, output_shape: tuple[int, ...] | None = None) -> onnx.ModelProto:
        model = super().model(output_shape)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None))
        return model


def padded() -> onnx.ModelProto:
    g = Images(3, 6, 5).codes().conv(5, 3, pads=[1, 1, 1, 1]).codes(3.0, np.linspace(2, 9, 5).reshape(1, 5, 1, 1), 0)
    return g.conv(4, 5, (2, 3), strides=[2, 1], dilations=[2, 1]).codes(4.0, 9.0).model()


def residual() -> onnx.ModelProto:
    g = Images(4, 5, 5).codes().conv(6, 4).codes(4.0, 3.0)
    a, b = g.branches(lambda h: h.conv(6, 6, pads=[1, 1, 1, 1]).codes(4.0, 6.0), lambda h: h)
    return g.join("Add", a, b).codes(4.0, 7.0).model()


def sums() -> onnx.ModelProto:
    """Two sums that nothing has quantized: too many pairs to try."""
    g = Images(3, 4, 4).codes(8.0)
    a, b = g.branches(lambda h: h.conv(4, 3, pads=[1, 1, 1, 1]), lambda h: h.conv(4, 3, 1, values=[-90, -7, 55, 101]))
    return g.join("Add", a, b).codes(5.0, 40.0).model()


def three() -> onnx.ModelProto:
    """Channels of three branches, one of them used twice."""
    g = Images(3, 4, 6).codes()
    ends = g.branches(
        lambda h: h.conv(2, 3, pads=[1, 1, 1, 1]).codes(4.0, 4.0),
        lambda h: h,
        lambda h: h.conv(5, 3, 1).codes(6.0, 0.5, 0),
    )
    return g.join("Concat", ends[0], ends[1], ends[2], ends[0], axis=1).conv(3, 12, (1, 2)).codes(5.0, 9.0).model()


def moved() -> onnx.ModelProto:
    """A slice, a border, a repetition, a transposition."""
    g = Images(4, 6, 6).codes()
    g.whole("Slice", [1, 1, 0], [3, 5, 6], [1, 2, 3], [1, 1, 2])
    g.whole("Pad", [0, 0, 1, 0, 0, 0, 0, 2]).codes(2.0)
    g.conv(3, 2, (2, 1)).codes(4.0, 3.0)
    g.last = g.node(
        "Resize",
        g.last,
        g.const([]),
        g.const([1.0, 1.0, 2.0, 3.0]),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    g.conv(2, 3, 1).codes(4.0, 3.0)
    g.then("Transpose", perm=[0, 1, 3, 2])
    return g.conv(2, 2, (2, 1)).codes(4.0, 9.0).model()


def pools() -> onnx.ModelProto:
    g = Images(5, 7, 7).codes(5.0).pool("MaxPool", 3, strides=[2, 2], pads=[1, 1, 1, 1])
    g.conv(5, 1, values=[-2, -1, 1, 3], group=5, pads=[1, 1, 1, 1]).codes(4.0, np.linspace(3, 5, 5).reshape(1, 5, 1, 1))
    g.pool("AveragePool", 2).codes(6.0, 0.25)
    return g.linear(20, 7).model()


def binary() -> onnx.ModelProto:
    """Bipolar weights on codes, then on bits: agreements are counted."""
    g = Images(3, 5, 5).codes().conv(5, 3, values=[-1, 1])
    g.then("BipolarQuant", 1.0, domain=random_graphs.DOMAIN)
    g.conv(7, 5, 2, values=[-1, 1])
    g.then("BipolarQuant", 1.0, domain=random_graphs.DOMAIN)
    g.then("Flatten")
    g.then("MatMul", g.rng.choice([-1, 1], (28, 6)))
    return g.model()


def grouped() -> onnx.ModelProto:
    g = Images(6, 5, 4).codes().conv(9, 2, group=3, pads=[0, 1, 1, 0]).codes(3.0, 6.0, 0)
    return g.conv(4, 9, 1).codes(4.0, 9.0).model()


def product(op: str = "Mul") -> onnx.ModelProto:
    g = Images(3, 4, 4).codes()
    a, b = g.branches(
        lambda h: h.conv(4, 3).codes(4.0, 5.0), lambda h: h.conv(4, 3, values=[0, 1]).codes(3.0, np.array([0.6]), 0)
    )
    return g.join(op, a, b).codes(5.0, 1.3).model()


def agreements() -> onnx.ModelProto:
    """Bipolar weights on bits, channel by channel."""
    g = Images(5, 4, 4).codes().conv(5, 5, 1, values=[-1, 1])
    g.then("BipolarQuant", 1.0, domain=random_graphs.DOMAIN)
    return g.conv(5, 1, 2, values=[-1, 1], group=5).codes(4.0, 1.0).model()


def pair() -> onnx.ModelProto:
    """QLinearAdd of an image and its largest neighbours."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], "pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("QLinearAdd", ["m", "s", "z", "x", "t", "z", "u", "z"], ["y"], "sum", domain="com.microsoft"),
    ]
    constants = {"s": np.float32(0.3), "t": np.float32(0.7), "u": np.float32(0.9), "z": np.int8(3)}
    return model(nodes, {"x": (np.int8, (1, 3, 4, 4))}, np.int8, **constants)


#: Models, modules that they must have, and (PE, SIMD) of what multiplies, which need not divide it.
IMAGES = {
    "padded": (Case(padded, modules=("hg_conv",)), [(2, 2), (3, 2)]),
    "residual": (Case(residual, modules=("hg_join_sum", "hg_fork", "hg_fifo")), [(4, 3), (4, 4)]),
    "sums": (Case(sums, modules=("hg_join_sum",)), [(3, 2), (2, 2)]),
    "three": (Case(three, modules=("hg_concat", "hg_fork")), [(2, 1), (3, 2), (2, 5)]),
    "moved": (Case(moved, modules=("hg_take", "hg_pad", "hg_gather")), [(2, 1), (2, 2), (1, 2)]),
    "pools": (Case(pools, modules=("hg_pool", "hg_dwconv")), [(2, 1), (3, 3)]),
    "binary": (Case(binary, modules=("hg_conv",)), [(3, 2), (4, 3), (4, 3)]),
    "grouped": (Case(grouped, modules=("hg_conv",)), [(2, 2), (3, 4)]),
    "product": (Case(product, modules=("hg_join_product",)), [(3, 2), (2, 2)]),
    "agreements": (Case(agreements, modules=("hg_dwconv",)), [(2, 2), (2, 1)]),
    "pair": (Case(pair, modules=("hg_join_pair", "hg_pair_scale", "hg_pool")), []),
    "largest": (Case(lambda: product("Max"), modules=("hg_join_pair",)), [(3, 2), (2, 2)]),
}


#: Modules of some of them with all taps of several windows at once.
WHOLE = {
    "padded": ("hg_unfold", "hg_mvu"),
    "three": ("hg_unfold", "hg_mvu", "hg_beside"),
    "pools": ("hg_pool_tree",),
    "grouped": ("hg_unfold", "hg_dwmvu"),
    "moved": ("hg_pick", "hg_take"),
    "binary": ("hg_unfold", "hg_mvu"),
}


def build(name: str, directory: Path, fold: bool = False, whole: bool = False) -> Path:
    """A build of that model, tap by tap; with `fold` in the folding that is given; `whole` as fast as it can be."""
    case, sizes = IMAGES[name]
    path = directory.with_suffix(".onnx")
    onnx.save(case.model(), path)  # type: ignore[operator]
    works = works_of(hlsgen.check(path).graph)
    if not fold:
        sizes = [(work.rows, work.columns) for work in works.values()]
    folding = {layer: {"pe": pe, "simd": simd} for layer, (pe, simd) in zip(works, sizes, strict=True)}
    options = hlsgen.Options(target_cycles=1) if whole else hlsgen.Options(folding=folding, target_cycles=1000)
    case = replace(case, options=options)
    return case.build(directory)
