"""TFLite's SOFTMAX as a node for the host, which the importer of TFLite files writes.

Pass `OPERATORS` to onnx's reference evaluator as `new_ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.op_run import OpRun

from hlsgen.ir import HostOp, Shape
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.softmax import softmax_codes

_DOMAIN, _NAME = "hlsgen.tflite", "SOFTMAX"
_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


@dataclass(frozen=True, eq=False)
class HostSoftmax:
    """SOFTMAX of codes of `dtype` along the last axis, to codes of scale 1/256 whose lowest one is 0.

    exponentials: (256,), by the distance of a code from its row's largest one. int64, in Q0, for tflite-micro and
    LiteRT's reference kernels; float32 for LiteRT's optimized ones.
    """

    dtype: str
    exponentials: Array

    @property
    def in_floats(self) -> bool:
        return self.exponentials.dtype == np.float32

    @property
    def lowest(self) -> int:
        """The lowest code."""
        return int(np.iinfo(self.dtype).min)

    def codes(self, x: Array) -> Array:
        """The codes of the result for codes x; both of `dtype`."""
        result = CodeType(self.dtype, 1 / 256, self.lowest)
        return softmax_codes(self.exponentials, x.astype(np.int64), result).astype(self.dtype)

    def host_op(self, shape: Shape) -> HostOp:
        """The operation on data of this shape."""
        node = helper.make_node(_NAME, ["x", "exponentials"], ["y"], domain=_DOMAIN)
        x, y = (helper.make_tensor_value_info(name, _TYPES[self.dtype], list(shape)) for name in "xy")
        exponentials = numpy_helper.from_array(self.exponentials, "exponentials")
        imports = [helper.make_opsetid("", 13), helper.make_opsetid(_DOMAIN, 1)]
        graph = helper.make_graph([node], "host", [x], [y], [exponentials])
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        return HostOp(_NAME, model.SerializeToString(deterministic=True))


def host_softmax(op: HostOp) -> HostSoftmax | None:
    """The SOFTMAX of an operation that `HostSoftmax.host_op` made, or None for all others."""
    return _read(op.model) if op.op_type == _NAME else None


@lru_cache(maxsize=64)
def _read(model: bytes) -> HostSoftmax | None:
    graph = onnx.ModelProto.FromString(model).graph
    (node,) = graph.node
    if node.domain != _DOMAIN:
        return None
    dtype = next(name for name, number in _TYPES.items() if number == graph.input[0].type.tensor_type.elem_type)
    return HostSoftmax(dtype, numpy_helper.to_array(graph.initializer[0]))


class SOFTMAX(OpRun):
    op_domain = _DOMAIN

    def _run(self, x: Array, exponentials: Array) -> tuple[Array]:
        return (HostSoftmax(x.dtype.name, exponentials).codes(x),)


OPERATORS: list[Any] = [SOFTMAX]
