"""TFLite's SOFTMAX as a node for the host, which the importer of TFLite files writes.

Pass `OPERATORS` to onnx's reference evaluator as `new_ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun

from hlsgen.ir import HostOp, Shape
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.softmax import exponentials_in_floats, softmax_codes, softmax_in_floats, softmax_tables

_DOMAIN, _NAME = "hlsgen.tflite", "SOFTMAX"
_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


@dataclass(frozen=True)
class HostSoftmax:
    """SOFTMAX of codes of `dtype` along the last axis, to codes of scale 1/256 whose lowest one is 0.

    scale: of the data. in_floats: True for LiteRT's optimized kernels, else the integers of its reference kernels and
    of tflite-micro.
    """

    dtype: str
    scale: float
    beta: float
    in_floats: bool

    @property
    def lowest(self) -> int:
        """The lowest code."""
        return int(np.iinfo(self.dtype).min)

    @property
    def result(self) -> CodeType:
        """The meaning of the result's codes."""
        return CodeType(self.dtype, 1 / 256, self.lowest)

    def exponentials(self) -> Array:
        """exp by the distance of a code from its row's largest one: float32 (256,), or int64 (256,) with 31 bits.

        Distances that do not count have 0. Raises UnsupportedFunction for integers of tiny scales.
        """
        if self.in_floats:
            return exponentials_in_floats(self.scale, self.beta)
        tables = softmax_tables(self.scale, self.beta)
        return np.where(np.arange(256) <= tables.longest, tables.exponentials, 0)

    def host_op(self, shape: Shape) -> HostOp:
        """The operation on data of this shape."""
        attributes: dict[str, Any] = {"scale": self.scale, "beta": self.beta, "in_floats": int(self.in_floats)}
        node = helper.make_node(_NAME, ["x"], ["y"], domain=_DOMAIN, **attributes)
        x, y = (helper.make_tensor_value_info(name, _TYPES[self.dtype], list(shape)) for name in "xy")
        imports = [helper.make_opsetid("", 13), helper.make_opsetid(_DOMAIN, 1)]
        model = helper.make_model(helper.make_graph([node], "host", [x], [y]), opset_imports=imports, ir_version=8)
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
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return HostSoftmax(dtype, values["scale"], values["beta"], bool(values["in_floats"]))


class SOFTMAX(OpRun):
    op_domain = _DOMAIN

    def _run(self, x: Array, scale: float, beta: float, in_floats: int) -> tuple[Array]:
        softmax = HostSoftmax(x.dtype.name, scale, beta, bool(in_floats))
        codes = x.astype(np.int64)
        if in_floats:
            data = CodeType(softmax.dtype, scale, 0)
            return (softmax_in_floats(codes, data, softmax.result, beta).astype(x.dtype),)
        return (softmax_codes(softmax_tables(scale, beta), codes, softmax.lowest).astype(x.dtype),)


OPERATORS: list[Any] = [SOFTMAX]
