"""Second reading of activations: their names and parameters, and their values at test numbers.

onnx's evaluator computes the values in float64, or in float32 if the numeric contract defines each operation. It shares
no code with `hlsgen.numerics.activations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ
from hlsgen.ir import ops
from hlsgen.ir.evaluate import apply
from hlsgen.numerics.activations import LITERAL
from hlsgen.numerics.fixed import Array

#: Alpha and beta of the operators that state them.
_DEFAULTS = {"Elu": (1.0, None), "LeakyRelu": (0.01, None), "HardSigmoid": (0.2, 0.5)}
_NAMES = (
    "Abs Ceil Elu Erf Exp Floor HardSigmoid HardSwish LeakyRelu Log Mish Reciprocal Round Sigmoid Sign Softplus "
    "Softsign Sqrt Tanh"
).split()
#: Operators of which only values are compared.
_BY_VALUE = ("Celu", "Selu")
_ATTRIBUTES = frozenset(["alpha", "gamma"])
#: Bounds of the evaluator's error: relative, and absolute in units of the larger of 1 and the argument.
_RELATIVE, _ABSOLUTE = 2.0**-40, 2.0**-48


def activation(imported: ImportedSteps, n: int) -> Differences:
    """Compare the activation's name, the parameters that the file states, and values."""
    step, attributes = imported.only(n, ops.Activation), imported.file.attributes[n]
    if step is None or set(attributes) - {"alpha", "beta"}:
        return None
    op = step.op
    assert isinstance(op, ops.Activation)
    kind = imported.file.nodes[n].op_type
    differences = [] if op.kind == kind else [f"{op.kind} was imported, the file has {kind}."]
    alpha, beta = _DEFAULTS.get(kind, (None, None))
    for key, value, default in (("alpha", op.alpha, alpha), ("beta", op.beta, beta)):
        if key in attributes or default is not None:
            differences += differ(key, np.float32(value), np.float32(attributes.get(key, default)))
    return differences or compare_values(op, kind, attributes, imported.file.opset)


def _by_value(imported: ImportedSteps, n: int) -> Differences:
    """Compare values alone."""
    step, attributes = imported.only(n, ops.Activation), imported.file.attributes[n]
    if step is None or set(attributes) - _ATTRIBUTES:
        return None
    assert isinstance(step.op, ops.Activation)
    return compare_values(step.op, imported.file.nodes[n].op_type, attributes, imported.file.opset)


def compare_values(op: ops.Activation, kind: str, attributes: Mapping[str, Any], opset: int) -> list[str]:
    """Compare results for float32 numbers with operator `kind` of the file. Functions are rounded once."""
    return list(differences_of_values(op.kind, op.alpha, op.beta, kind, tuple(sorted(attributes.items())), opset))


@lru_cache(maxsize=64)
def differences_of_values(
    imported_kind: str, alpha: float, beta: float, kind: str, attributes: tuple[tuple[str, Any], ...], opset: int
) -> tuple[str, ...]:
    """As `compare_values`, with hashable arguments."""
    x = _test_numbers()
    is_literal = imported_kind in LITERAL
    expected = _evaluated(kind, dict(attributes), opset, x if is_literal else x.astype(np.float64))
    if expected is None:
        return ()
    is_defined = np.isfinite(expected)
    x, expected = x[is_defined], expected[is_defined]
    result = apply(ops.Activation(imported_kind, alpha, beta), x)
    reach = np.zeros_like(expected)
    if not is_literal:
        reach = np.abs(expected) * _RELATIVE + np.maximum(1, np.abs(x.astype(np.float64))) * _ABSOLUTE
    with np.errstate(over="ignore"):
        low, high = ((expected + sign * reach).astype(np.float32) for sign in (-1, 1))
    wrong = ~((low <= result) & (result <= high))
    if not wrong.any():
        return ()
    place = int(np.argmax(wrong))
    return (f"{kind} of {x[place]} gives {result[place]}, onnx's evaluator {expected[place]}.",)


def _test_numbers() -> Array:
    """float32 numbers of all magnitudes between 1e-6 and 80, of both signs."""
    magnitudes = np.concatenate([np.geomspace(1e-6, 80, 300), np.linspace(0.01, 12, 300)])
    return np.concatenate([-magnitudes, magnitudes]).astype(np.float32)


def _evaluated(kind: str, attributes: Mapping[str, Any], opset: int, x: Array) -> Array | None:
    """The results of onnx's evaluator in x's dtype, or None if it does not have the operator in this opset."""
    kind_of_x = TensorProto.DOUBLE if x.dtype == np.float64 else TensorProto.FLOAT
    ends = [helper.make_tensor_value_info(name, kind_of_x, x.shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], **attributes)], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    try:
        with np.errstate(all="ignore"):
            results: Any = ReferenceEvaluator(model).run(None, {"x": x})
    except Exception:  # the evaluator does not support this form
        return None
    return np.asarray(results[0])


#: Operator -> its second reading.
ACTIVATIONS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    **dict.fromkeys(_NAMES, activation),
    **dict.fromkeys(_BY_VALUE, _by_value),
}
