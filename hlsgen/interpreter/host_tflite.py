"""TFLite's SOFTMAX as a node for the host, which the importer of TFLite files writes.

Pass `OPERATORS` to onnx's reference evaluator as `new_ops`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.op_run import OpRun

from hlsgen.ir import HostOp, Shape
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.multipliers import CODE_TYPES, Multiplier
from hlsgen.numerics.tflite.softmax import softmax_codes
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

_DOMAIN, _NAME = "hlsgen.tflite", "SOFTMAX"
_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16}
_NAMES = {number: name for name, number in _TYPES.items()}


@dataclass(frozen=True, eq=False)
class HostSoftmax:
    """SOFTMAX of 8-bit codes of `dtype` along the last axis, to codes of `result` with 2^bits steps from 0 to 1.

    exponentials: (256,), by the distance of a code from its row's largest one. int64, in Q0, for tflite-micro and
    LiteRT's reference kernels; float32 for LiteRT's optimized ones. result: `dtype`, or int16 for int8.
    """

    dtype: str
    exponentials: Array
    result: str

    @property
    def in_floats(self) -> bool:
        return self.exponentials.dtype == np.float32

    @property
    def type(self) -> IntType:
        """The type of the result's codes; the lowest one is 0."""
        return CODE_TYPES[self.result]

    def codes(self, x: Array) -> Array:
        """The codes of the result for codes x of `dtype`."""
        result = CodeType(self.result, 2.0**-self.type.bits, self.type.lo)
        return softmax_codes(self.exponentials, x.astype(np.int64), result).astype(self.result)

    def host_op(self, shape: Shape) -> HostOp:
        """The operation on data of this shape."""
        return _host_op(shape, self.dtype, self.result, {"exponentials": self.exponentials})


def int16_host_op(softmax: Int16Softmax, shape: Shape) -> HostOp:
    """The operation on int16 codes of this shape."""
    multiplier = np.array([softmax.multiplier.value, softmax.multiplier.exponent], np.int64)
    tables = {"exponentials": softmax.exponentials, "reciprocals": softmax.reciprocals, "multiplier": multiplier}
    return _host_op(shape, "int16", "int16", tables)


def host_softmax(op: HostOp) -> HostSoftmax | Int16Softmax | None:
    """The SOFTMAX of an operation that a function above made, or None for all others."""
    return _read(op.model) if op.op_type == _NAME else None


def _host_op(shape: Shape, dtype: str, result: str, tables: Mapping[str, Array]) -> HostOp:
    node = helper.make_node(_NAME, ["x", *tables], ["y"], domain=_DOMAIN, result=result)
    x, y = (
        helper.make_tensor_value_info(name, _TYPES[type], list(shape)) for name, type in (("x", dtype), ("y", result))
    )
    constants = [numpy_helper.from_array(table, name) for name, table in tables.items()]
    imports = [helper.make_opsetid("", 13), helper.make_opsetid(_DOMAIN, 1)]
    graph = helper.make_graph([node], "host", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return HostOp(_NAME, model.SerializeToString(deterministic=True))


@lru_cache(maxsize=64)
def _read(model: bytes) -> HostSoftmax | Int16Softmax | None:
    graph = onnx.ModelProto.FromString(model).graph
    (node,) = graph.node
    if node.domain != _DOMAIN:
        return None
    tables = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    exponentials = tables["exponentials"]
    if "reciprocals" in tables:
        return _of_int16(exponentials, tables["reciprocals"], tables["multiplier"])
    dtype, result = (_NAMES[end.type.tensor_type.elem_type] for end in (graph.input[0], graph.output[0]))
    return HostSoftmax(dtype, exponentials, result)


def _of_int16(exponentials: Array, reciprocals: Array, multiplier: Array) -> Int16Softmax:
    value, exponent = multiplier.tolist()
    return Int16Softmax(Multiplier(value, exponent), exponentials, reciprocals)


class SOFTMAX(OpRun):
    op_domain = _DOMAIN

    def _run(
        self,
        x: Array,
        exponentials: Array,
        reciprocals: Array | None = None,
        multiplier: Array | None = None,
        result: str = "",
    ) -> tuple[Array]:
        if reciprocals is not None and multiplier is not None:
            codes = _of_int16(exponentials, reciprocals, multiplier).codes(x.astype(np.int64))
            return (codes.astype(np.int16),)
        return (HostSoftmax(x.dtype.name, exponentials, result).codes(x),)


OPERATORS: list[Any] = [SOFTMAX]
