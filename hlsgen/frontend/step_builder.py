"""The steps of a Model while it is imported."""

from __future__ import annotations

import math

from hlsgen import ir
from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Dynamic
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.op_results import starts_hardware
from hlsgen.ir.ops import Dequantize, QuantizeLinear

#: Maximum number of elements of all tensors of the network together, of one frame or step.
MAX_TOGETHER = 1 << 29


class StepBuilder:
    """The steps so far. Value 0 is the input, value n the result of the n-th step.

    steps       the steps in order
    code_types  type of the codes, by index of a step that dequantizes
    """

    def __init__(self) -> None:
        self.steps: list[ir.Step] = []
        self.code_types: dict[int, str] = {}
        self._elements = 0

    def add(self, name: str, op: ir.Op, shape: ir.Shape, inputs: tuple[int, ...]) -> int:
        """Add a step; returns the number of its result. Raises HG004 if all tensors together are too large."""
        self._elements += math.prod(shape)
        if self._elements > MAX_TOGETHER:
            text = f"the tensors of the network have more than {MAX_TOGETHER} elements together."
            raise fail("HG004", name, text, "Use a smaller network, or fewer steps of a sequence.")
        self.steps.append(ir.Step(name, op, shape, inputs))
        return len(self.steps)

    def append(self, name: str, data: Dynamic, ops: ShapedOps, last_name: str | None = None) -> int:
        """Add a chain of operations on a tensor; returns the number of its result.

        The quantizer that rescales the sums of an integer layer gets its own name. `last_name`: name of the last step
        that computes. Raises HG004.
        """
        assert data.index is not None
        index = data.index
        is_rescaled = any(isinstance(op, ir.MatMulInteger | ir.ConvInteger) for op, _ in ops)
        is_rescaled |= bool(index) and isinstance(self.steps[index - 1].op, ir.BatchMatMulInteger)
        if ops and isinstance(ops[0][0], Dequantize):
            self.code_types[len(self.steps)] = data.dtype
        end = max((n for n, (op, _) in enumerate(ops) if not isinstance(op, ir.Reshape | ir.Transpose)), default=-1)
        for number, (op, shape) in enumerate(ops):
            step_name = f"{name} (rescaled)" if is_rescaled and isinstance(op, QuantizeLinear) else name
            index = self.add(last_name if last_name and number == end else step_name, op, shape, (index,))
        return index

    def is_after_hardware(self, data: Dynamic) -> bool:
        """True if a quantizer or a layer is upstream of a tensor; the host may compute tensors before the first one."""
        if not data.dtype.startswith("float"):
            return True
        upstream = {data.index}
        for i in reversed(range(len(self.steps))):
            if i + 1 in upstream:
                if starts_hardware(self.steps[i].op):
                    return True
                upstream.update(self.steps[i].inputs)
        return False
