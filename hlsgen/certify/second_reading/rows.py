"""Second reading of normalizations, of one node or of several nodes: kind, axes, epsilon, gamma, beta."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ, parameters
from hlsgen.ir import Normalize, NormKind, Step
from hlsgen.ir.ops import Add, Mul

_RMS = ("RMSNormalization", "SimplifiedLayerNormalization")
#: Operators of a decomposed normalization, from its last node back to its input.
_PARTS = frozenset("ReduceMean Sub Pow Mul Add Sqrt Div Reciprocal Cast Identity".split())


def _normalize_step(imported: ImportedSteps, n: int) -> Step | None:
    steps = imported.steps(n, Normalize)
    return steps[0] if len(steps) == 1 else None


def _one_node(imported: ImportedSteps, n: int) -> Differences:
    """Compare the trailing axes, and gamma and beta of their shape."""
    step, attributes = _normalize_step(imported, n), imported.file.attributes[n]
    if step is None or imported.file.attributes[n].get("stash_type", 1) != 1:
        return None
    shape = imported.input_shapes(n)[0]
    axis = attributes.get("axis", -1) % len(shape)
    rms = imported.file.nodes[n].op_type in _RMS and not _centred(imported, n, math.prod(shape[axis:]))
    differences = _compare_normalization(step, NormKind.RMS if rms else NormKind.LAYER, attributes.get("epsilon", 1e-5))
    differences += differ("elements of a row", step.shape[-1], math.prod(shape[axis:]))
    terms = imported.steps(n, Mul, Add)
    expected = parameters(imported, n, len(shape), *range(1, 3 if imported.file.has_input(n, 2) else 2))
    if expected is None or [type(term.op) for term in terms] != [Mul, Add][: len(expected)]:
        return None
    for parameter, term, value in zip(("gamma", "beta"), terms, expected, strict=False):
        differences += differ(parameter, term.op.value, value)  # type: ignore[union-attr]
    return differences


def _centred(imported: ImportedSteps, n: int, length: int) -> bool:
    """True if a node normalizes x minus its mean over rows of this length. Covers both nodes.

    onnxruntime fuses only the last part of such a LayerNormalization.
    """
    file = imported.file
    sub = file.producer.get(file.nodes[n].input[0], -1)
    if sub < 0 or imported.steps(sub) or file.nodes[sub].op_type != "Sub":
        return False
    mean = file.producer.get(file.nodes[sub].input[1], -1)
    if mean < 0 or imported.steps(mean) or file.nodes[mean].op_type != "ReduceMean":
        return False
    axes_input = file.constant(mean, 1)
    axes = file.attributes[mean].get("axes", []) if axes_input is None else axes_input.array.ravel().tolist()
    shape = imported.input_shapes(n)[0]
    if not axes or math.prod(shape[a] for a in axes) != length or not file.attributes[mean].get("keepdims", 1):
        return False
    producers = [file.producer.get(file.nodes[m].input[0], -1) for m in (mean, sub)]
    decoded = all(m >= 0 and file.nodes[m].op_type == "DequantizeLinear" for m in producers)
    same_codes = decoded and list(file.nodes[producers[0]].input) == list(file.nodes[producers[1]].input)
    if file.nodes[mean].input[0] != file.nodes[sub].input[0] and not same_codes:
        return False
    imported.covered |= {sub, mean}
    return True


def _compare_normalization(step: Step, kind: NormKind, epsilon: float) -> list[str]:
    assert isinstance(step.op, Normalize)
    differences = (
        []
        if step.op.kind is kind
        else [f"a normalization {step.op.kind.value} was imported, the file has {kind.value}."]
    )
    return [*differences, *differ("epsilon", np.float32(step.op.epsilon), np.float32(epsilon))]


def _decomposed(imported: ImportedSteps, n: int) -> Differences:
    """Div or Mul at the end of a normalization of several nodes. Covers them."""
    step, file = _normalize_step(imported, n), imported.file
    if step is None:
        return None
    nodes, border = _fused_nodes(imported, n)
    if nodes is None or len(border) != 1:
        return None
    kinds = [file.nodes[m].op_type for m in nodes]
    epsilon_inputs = [
        (m, i) for m in nodes if file.nodes[m].op_type == "Add" for i in (0, 1) if file.constant(m, i) is not None
    ]
    means = [m for m in nodes if file.nodes[m].op_type == "ReduceMean"]
    if len(epsilon_inputs) != 1 or len(means) not in (1, 2) or (len(means) == 2) != ("Sub" in kinds):
        return None
    epsilon = file.constant(*epsilon_inputs[0])
    assert epsilon is not None
    differences = _compare_normalization(
        step, NormKind.LAYER if "Sub" in kinds else NormKind.RMS, float(epsilon.array.ravel()[0])
    )
    shape = imported.input_shapes(n)[0]
    for m in means:
        axes_input = file.constant(m, 1)
        axes = file.attributes[m].get("axes", []) if axes_input is None else axes_input.array.ravel().tolist()
        differences += differ("elements of a row", step.shape[-1], math.prod(shape[a] for a in axes))
    for m in nodes:
        powers = file.constant(m, 1) if file.nodes[m].op_type == "Pow" else None
        if powers is not None and float(powers.array.ravel()[0]) not in (2.0, 0.5, -0.5):
            differences += ["the exponent of a Pow does not occur in a normalization."]
    imported.covered |= set(nodes)
    return differences


def _fused_nodes(imported: ImportedSteps, n: int) -> tuple[list[int] | None, set[str]]:
    """The nodes from node n back that have no step of their own, and the tensors that they read."""
    file, nodes, border, worklist = imported.file, [n], set[str](), [n]
    while worklist:
        m = worklist.pop()
        for name in file.nodes[m].input:
            producer = file.producer.get(name, -1)
            if name not in file.computed or producer in nodes:
                continue
            if producer < 0 or imported.steps(producer) or file.nodes[producer].op_type not in _PARTS:
                border.add(name)
                continue
            nodes.append(producer)
            worklist.append(producer)
    return (nodes if len(nodes) > 1 else None), border


#: Operator -> its second reading if the node ends a normalization.
ROWS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "LayerNormalization": _one_node,
    **dict.fromkeys(_RMS, _one_node),
    "Div": _decomposed,
    "Mul": _decomposed,
}
