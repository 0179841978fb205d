"""Second reading of normalizations: kind, axes, epsilon, gamma, beta; of one node, or of several that compute one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hlsgen.certify.second_reading.steps import Found, Told, differ, parameters
from hlsgen.ir import Normalize, NormKind, Step
from hlsgen.ir.ops import Add, Mul

_RMS = ("RMSNormalization", "SimplifiedLayerNormalization")
#: What takes part in a normalization that was taken apart, from its last node back to its input.
_PARTS = frozenset("ReduceMean Sub Pow Mul Add Sqrt Div Reciprocal Cast Identity".split())


def _own(found: Found, n: int) -> Step | None:
    own = found.steps(n, Normalize)
    return own[0] if len(own) == 1 else None


def _one_node(found: Found, n: int) -> Told:
    """Trailing axes, and gamma and beta of their shape."""
    step, attributes = _own(found, n), found.file.attributes[n]
    if step is None or found.file.attributes[n].get("stash_type", 1) != 1:
        return None
    shape = found.taken(n)[0]
    axis = attributes.get("axis", -1) % len(shape)
    rms = found.file.nodes[n].op_type in _RMS and not _centred(found, n, math.prod(shape[axis:]))
    told = _normalize(step, NormKind.RMS if rms else NormKind.LAYER, attributes.get("epsilon", 1e-5))
    told += differ("elements of a row", step.shape[-1], math.prod(shape[axis:]))
    terms = found.steps(n, Mul, Add)
    wanted = parameters(found, n, len(shape), *range(1, 3 if found.file.given(n, 2) else 2))
    if wanted is None or [type(term.op) for term in terms] != [Mul, Add][: len(wanted)]:
        return None
    for what, term, value in zip(("gamma", "beta"), terms, wanted, strict=False):
        told += differ(what, term.op.value, value)  # type: ignore[union-attr]
    return told


def _centred(found: Found, n: int, length: int) -> bool:
    """Whether what a node normalizes is x less its mean over rows of that length: onnxruntime fuses the rest of a
    LayerNormalization alone. Covers both nodes."""
    file = found.file
    sub = file.producer.get(file.nodes[n].input[0], -1)
    if sub < 0 or found.steps(sub) or file.nodes[sub].op_type != "Sub":
        return False
    mean = file.producer.get(file.nodes[sub].input[1], -1)
    if mean < 0 or found.steps(mean) or file.nodes[mean].op_type != "ReduceMean":
        return False
    given = file.constant(mean, 1)
    axes = file.attributes[mean].get("axes", []) if given is None else given.array.ravel().tolist()
    shape = found.taken(n)[0]
    if not axes or math.prod(shape[a] for a in axes) != length or not file.attributes[mean].get("keepdims", 1):
        return False
    made = [file.producer.get(file.nodes[m].input[0], -1) for m in (mean, sub)]
    decoded = all(m >= 0 and file.nodes[m].op_type == "DequantizeLinear" for m in made)
    same = decoded and list(file.nodes[made[0]].input) == list(file.nodes[made[1]].input)
    if file.nodes[mean].input[0] != file.nodes[sub].input[0] and not same:
        return False
    found.covered |= {sub, mean}
    return True


def _normalize(step: Step, kind: NormKind, epsilon: float) -> list[str]:
    assert isinstance(step.op, Normalize)
    told = (
        []
        if step.op.kind is kind
        else [f"a normalization {step.op.kind.value} was imported, the file has {kind.value}."]
    )
    return [*told, *differ("epsilon", np.float32(step.op.epsilon), np.float32(epsilon))]


def _apart(found: Found, n: int) -> Told:
    """Div or Mul at the end of a normalization of several nodes: covers them."""
    step, file = _own(found, n), found.file
    if step is None:
        return None
    parts, border = _between(found, n)
    if parts is None or len(border) != 1:
        return None
    kinds = [file.nodes[m].op_type for m in parts]
    sums = [(m, i) for m in parts if file.nodes[m].op_type == "Add" for i in (0, 1) if file.constant(m, i) is not None]
    means = [m for m in parts if file.nodes[m].op_type == "ReduceMean"]
    if len(sums) != 1 or len(means) not in (1, 2) or (len(means) == 2) != ("Sub" in kinds):
        return None
    epsilon = file.constant(*sums[0])
    assert epsilon is not None
    told = _normalize(step, NormKind.LAYER if "Sub" in kinds else NormKind.RMS, float(epsilon.array.ravel()[0]))
    shape = found.taken(n)[0]
    for m in means:
        given = file.constant(m, 1)
        axes = file.attributes[m].get("axes", []) if given is None else given.array.ravel().tolist()
        told += differ("elements of a row", step.shape[-1], math.prod(shape[a] for a in axes))
    for m in parts:
        powers = file.constant(m, 1) if file.nodes[m].op_type == "Pow" else None
        if powers is not None and float(powers.array.ravel()[0]) not in (2.0, 0.5, -0.5):
            told += ["a power is none of a normalization."]
    found.covered |= set(parts)
    return told


def _between(found: Found, n: int) -> tuple[list[int] | None, set[str]]:
    """The nodes of which none has a step of its own, from node n back, and the tensors that they take."""
    file, parts, border, waiting = found.file, [n], set[str](), [n]
    while waiting:
        m = waiting.pop()
        for name in file.nodes[m].input:
            before = file.producer.get(name, -1)
            if name not in file.computed or before in parts:
                continue
            if before < 0 or found.steps(before) or file.nodes[before].op_type not in _PARTS:
                border.add(name)
                continue
            parts.append(before)
            waiting.append(before)
    return (parts if len(parts) > 1 else None), border


#: Operator -> its second reading, where the node ends a normalization.
ROWS: dict[str, Callable[[Found, int], Told]] = {
    "LayerNormalization": _one_node, **dict.fromkeys(_RMS, _one_node), "Div": _apart, "Mul": _apart,
}  # fmt: skip
