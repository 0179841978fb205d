"""Independent executors: qonnx (with onnxruntime inside)."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from qonnx.core import onnx_exec
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx
from qonnx.transformation.infer_shapes import InferShapes

Array = NDArray[Any]


class _Sessions:
    """onnxruntime for qonnx, which makes a session of every node for every sample: one session of all that are equal.

    Making one and taking it down again, with its threads, takes ten times as long as to run it.
    """

    @staticmethod
    @lru_cache(maxsize=256)
    def InferenceSession(model: bytes) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


onnx_exec.rt = _Sessions


class Qonnx:
    """A model in qonnx's executor; calling it runs a batch, one sample at a time."""

    def __init__(self, model: onnx.ModelProto) -> None:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        known = {i.name for i in copy.graph.initializer}
        for node in copy.graph.node:
            if node.op_type == "Quant" and not node.domain:
                node.domain = "qonnx.custom_op.general"
        domains = {o.domain for o in copy.opset_import}
        for domain in {n.domain for n in copy.graph.node} - domains:
            copy.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        source = next(i for i in copy.graph.input if i.name not in known)
        for value in (source, *copy.graph.output):
            dims = value.type.tensor_type.shape.dim
            if len(dims) and not dims[0].dim_value:
                dims[0].dim_value = 1
        self.name, self.output = source.name, copy.graph.output[0].name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.wrapper = ModelWrapper(copy).transform(InferShapes())

    def one(self, x: Array) -> Array:
        """One sample of the model's own shape."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result: Array = execute_onnx(self.wrapper, {self.name: np.asarray(x, np.float32)})[self.output]
        return result

    def __call__(self, batch: Array) -> Array:
        """Samples stacked on the first axis, for models of batch 1."""
        return np.concatenate([np.asarray(self.one(x[None])).reshape(1, -1) for x in batch])
