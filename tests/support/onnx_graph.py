"""The builder of ONNX models under all others: nodes and constants, named in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from typing_extensions import Self

Array = NDArray[Any]
#: The domain of qonnx's operators.
QONNX = "qonnx.custom_op.general"


class OnnxGraph:
    """Nodes give t0, t1, ..., constants are c0, c1, ...; `last` is the tensor that the next node of a chain takes.

    `numbers` is the dtype of constants that are no arrays (None: numpy's choice), `arrays` that of arrays (None: their
    own). With `labels`, a node that gets no name is called Operator_0, Operator_1, ...
    """

    def __init__(self, numbers: Any = np.float32, arrays: Any = None, *, labels: bool = False) -> None:
        self.numbers, self.arrays, self.labels = numbers, arrays, labels
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = "x"

    def const(self, value: Any, dtype: Any = None, name: str | None = None) -> str:
        """A constant's name; text is taken as the name of a tensor that exists."""
        if isinstance(value, str):
            return value
        kind = dtype or (self.arrays if isinstance(value, np.ndarray) else self.numbers)
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def add(
        self,
        op: str,
        inputs: Iterable[Any],
        outputs: Sequence[str] | None = None,
        *,
        name: str | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """The name of the first result of a node with these inputs, names or constants; `last` stays."""
        results = [f"t{len(self.nodes)}"] if outputs is None else list(outputs)
        name = name or (f"{op}_{len(self.nodes)}" if self.labels else None)
        names = [self.const(value) for value in inputs]
        self.nodes.append(helper.make_node(op, names, results, name=name, domain=domain, **attributes))
        return next(filter(None, results), "")

    def then(self, op: str, *constants: Any, **options: Any) -> Self:
        """`op` on the last tensor and constants."""
        self.last = self.add(op, [self.last, *constants], **options) or self.last
        return self

    def proto(
        self,
        title: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        opsets: Iterable[tuple[str, int]],
        ir_version: int = 8,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, title, list(inputs), list(outputs), self.constants)
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
        return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
