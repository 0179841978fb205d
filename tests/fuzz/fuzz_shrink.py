"""Shrinks a model with the same outcome: fewer nodes, an inner tensor as input or output, plain constants."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import fuzz_oracle
import numpy as np
from fuzz_graphs import Case
from fuzz_phrases import Array, assembled
from onnx import NodeProto, numpy_helper

#: Seconds for one model.
PATIENCE = 60


def shrunk(fuzz_case: Case, holds: Callable[[Case], bool]) -> Case:
    """The smallest case found for which `holds` is true, as it is for the given one."""
    end = time.monotonic() + PATIENCE
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for smaller in _smaller(fuzz_case):
            if time.monotonic() > end:
                break
            if _size(smaller) < _size(fuzz_case) and holds(smaller):
                fuzz_case, changed = smaller, True
                break
    return fuzz_case


def _size(c: Case) -> tuple[int, int, int]:
    numbers = [numpy_helper.to_array(k) for k in c.model.graph.initializer]
    odd = sum(int((k != np.round(k)).sum()) + int((abs(k.astype(np.float64)) > 1).sum()) for k in numbers)
    return len(c.model.graph.node), sum(k.size for k in numbers) + len(c.x), odd


def _smaller(c: Case) -> Iterator[Case]:
    """Candidates, those that take away most first."""
    model = c.model
    version = next((o.version for o in model.opset_import if o.domain == fuzz_oracle.DOMAIN), 1)
    first, last = model.graph.input[0].name, model.graph.output[0].name
    constants = {k.name: numpy_helper.to_array(k) for k in model.graph.initializer}
    nodes = list(model.graph.node)
    tensor_values = fuzz_oracle.values(model, c.x)
    values = {k: v for k, v in tensor_values.items() if k not in constants}
    depends = {first}
    for node in nodes:
        if depends & set(node.input):
            depends |= set(node.output)

    def case(kept_nodes: list[NodeProto], numbers: dict[str, Array], start: str, stop: str, x: Array) -> Case:
        return Case(
            assembled(kept_nodes, numbers, values, start, stop, version),
            x,
            c.input if start == first else None,
            c.fused,
        )

    inner = [o for n in nodes for o in n.output if o in depends and tensor_values[o].dtype != np.bool_]
    alone = {n.output[0] for n in nodes if len(n.output) == 1}
    for name in inner:  # the output earlier
        if name != last:
            yield case(nodes, constants, first, name, c.x)
    for name in reversed(inner):  # the input later
        if name != last and name in alone and first not in _needed(nodes, name, last):
            yield case(nodes, constants, name, last, tensor_values[name])
    for node in nodes:  # without a node
        if node.output[0] in depends:
            for i in node.input:
                same_shape = i in depends and tensor_values[i].shape == tensor_values[node.output[0]].shape
                if (
                    same_shape
                    and tensor_values[i].dtype == tensor_values[node.output[0]].dtype
                    and len(node.output) == 1
                ):
                    stop = i if node.output[0] == last else last
                    yield case(_without(nodes, node, i), constants, first, stop, c.x)
        else:
            kept_nodes = [n for n in nodes if n is not node]
            yield case(kept_nodes, {**constants, node.output[0]: tensor_values[node.output[0]]}, first, last, c.x)
    for count in (1, 4, 16):  # fewer frames
        for start in range(0, len(c.x), count) if len(c.x) > count else ():
            yield Case(model, c.x[start : start + count], c.input, c.fused)
    for name, value in constants.items():  # plainer constants
        if value.dtype == np.int64:
            continue
        plain = [value.ravel()[0]] if value.ndim and value.size > 1 else []
        plain += [np.broadcast_to(v, value.shape) for v in (0, 1)] + [np.round(value), np.round(value * 4) / 4]
        for v in plain:
            yield case(nodes, {**constants, name: np.asarray(v, value.dtype)}, first, last, c.x)


def _needed(nodes: list[NodeProto], first: str, last: str) -> set[str]:
    """The tensors from which `last` is made without `first`."""
    needed = {last}
    for node in reversed(nodes):
        if needed & set(node.output) and first not in node.output:
            needed |= set(node.input)
    return needed


def _without(nodes: list[NodeProto], gone: NodeProto, instead: str) -> list[NodeProto]:
    kept_nodes = []
    for node in nodes:
        if node is gone:
            continue
        new = NodeProto()
        new.CopyFrom(node)
        del new.input[:]
        new.input.extend(instead if i == gone.output[0] else i for i in node.input)
        kept_nodes.append(new)
    return kept_nodes
