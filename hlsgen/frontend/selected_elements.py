"""Host operators whose results are elements of their data, and the constants among their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from hlsgen.numerics.fixed import Array

#: Operators whose results are elements of their inputs, or zero.
_SELECTING = frozenset(
    {
        "Compress",
        "Concat",
        "DepthToSpace",
        "Dropout",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "GlobalMaxPool",
        "Identity",
        "Max",
        "MaxPool",
        "MaxPoolNHWC",
        "Min",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "Reshape",
        "Resize",
        "ReverseSequence",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Upsample",
    }
)
#: Operators among them whose results may be elements of any input.
_OF_ALL_INPUTS = frozenset({"Concat", "Max", "Min"})
#: Maximum number of different constants.
_MAX_CONSTANTS = 1024


def selected_constants(
    node: onnx.NodeProto, attributes: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[float, ...] | None:
    """The constants that may be in a result besides elements of the data, or None for computed numbers.

    `arrays`: the node's constant inputs by name.
    """
    if node.op_type not in _SELECTING:
        return None
    if node.op_type in ("Resize", "Upsample"):
        moved = attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize"
        return () if moved and attributes.get("mode", "nearest") == "nearest" else None
    names = node.input if node.op_type in _OF_ALL_INPUTS else node.input[2:3] if node.op_type == "Pad" else []
    values = [np.asarray(arrays[name], np.float64).ravel() for name in names if name in arrays]
    if node.op_type == "Pad" and attributes.get("mode", "constant") == "constant":
        values.append(np.array([attributes.get("value", 0.0)], np.float64))
    constants = np.unique(np.concatenate([np.zeros(0), *values]))
    return tuple(constants.tolist()) if len(constants) <= _MAX_CONSTANTS else None
