"""Linear Resize between quantizers: four pixels around each result, times constants, added in onnxruntime's order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.constant_folding import Const, attributes
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.expansion import Expansion, Part
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.linear_resize import MODES, factors_and_sizes, neighbours

RESIZE = "Resize"
#: First opset with the coordinate transformation modes.
_OPSET = 11


def is_interpolated(node: Expansion) -> bool:
    """True for a linear Resize of rows and columns that `interpolated` replaces: constant sizes, no options."""
    if node.proto.op_type != RESIZE or node.proto.domain not in ONNX or node.opset < _OPSET:
        return False
    attrs = attributes(node.proto)
    usual = (
        attrs.get("mode") == "linear"
        and attrs.get("coordinate_transformation_mode", "half_pixel") in MODES
        and not attrs.get("antialias")
        and "axes" not in attrs
        and attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
    )
    return usual and _resized(node) is not None


def interpolated(node: Expansion) -> Iterator[Part]:
    """The nodes of a linear Resize of images, channels first."""
    resized = _resized(node)
    assert resized is not None
    factors, result = resized
    shape, name = node.shape(node.proto.input[0]), node.name
    mode = attributes(node.proto).get("coordinate_transformation_mode", "half_pixel")
    constants: dict[str, Const] = {}
    nodes: list[onnx.NodeProto] = []

    def add(op_type: str, part: str, *inputs: str, **attrs: Any) -> str:
        nodes.append(helper.make_node(op_type, inputs, [f"{name}/{part}"], name=f"{name}/{part}", **attrs))
        return f"{name}/{part}"

    sides: list[list[tuple[str, Array]]] = []
    for axis, axis_name in ((2, "row"), (3, "column")):
        around = neighbours(shape[axis], result[axis], factors[axis], mode)
        # A neighbour of weight 0 may be any pixel: the other one makes the indices more regular.
        upper = np.where(around.from_lower == 0, around.lower, around.upper)
        sides.append([])
        for side, indices, weights in (("lower", around.lower, around.from_upper), ("upper", upper, around.from_lower)):
            constants[f"{name}/{side} {axis_name}"] = Const(indices)
            sides[-1].append((f"{side} {axis_name}", weights))
    rows = [add("Gather", f"{part}s", node.proto.input[0], f"{name}/{part}", axis=2) for part, _ in sides[0]]
    terms: list[str] = []
    for (row, (_, row_weights)), (part, weights) in product(zip(rows, sides[0], strict=True), sides[1]):
        pixel = add("Gather", f"pixel {len(terms)}", row, f"{name}/{part}", axis=3)
        constants[f"{name}/weights {len(terms)}"] = Const(weights[None, None, None] * row_weights[None, None, :, None])
        terms.append(add("Mul", f"term {len(terms)}", pixel, f"{name}/weights {len(terms)}"))
    total = terms[0]
    for number, term in enumerate(terms[1:-1], 1):
        total = add("Add", f"sum {number}", total, term)
    nodes.append(helper.make_node("Add", [total, terms[-1]], list(node.proto.output), name=name))
    yield Part(nodes, constants)


def _resized(node: Expansion) -> tuple[list[np.float32], list[int]] | None:
    """(factors, shape of the result) of images of which rows and columns alone are resized; else None."""
    shape = node.shape(node.proto.input[0])
    parameters = [node.constant(name) if name else None for name in (*node.proto.input[2:4], "", "")[:2]]
    scales, sizes = (p.array.ravel() if p is not None and p.array.size else None for p in parameters)
    valid = len(shape) == 4 and all((p > 0).all() and (p < 1 << 16).all() for p in (scales, sizes) if p is not None)
    resized = factors_and_sizes(shape, scales, sizes) if valid else None
    return resized if resized and tuple(resized[1][:2]) == shape[:2] and min(resized[1]) > 0 else None
