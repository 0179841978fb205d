"""Statements for a certificate about the function of each layer: kinds, types, sums, thresholds and codes.

They are statements, not proofs: `hlsgen.certify` compares them with the model and the emitted files.
docs/certificate.md describes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hlsgen import ir
from hlsgen.dataflow.network import Network
from hlsgen.dataflow.program_statements import program_statement
from hlsgen.dataflow.units import Node, ProgramUnit
from hlsgen.ir.value_ranges import value_range
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice, FloatJoin, FloatUnits, JoinPlan, ThresholdTable

#: Version of the file format.
FORMAT = 2
#: Names of the kinds of layers in the certificate.
KINDS: dict[type[ir.Layer], str] = {
    ir.Map: "quantizer",
    ir.Linear: "linear",
    ir.Convolution: "convolution",
    ir.Pooling: "pool",
    ir.Rearrange: "rearrangement",
    ir.Concatenation: "concatenation",
    ir.BinaryMap: "merge",
    ir.FloatBinary: "float joint",
    ir.PackBytes: "pair",
    ir.ArgMaxLayer: "argmax",
    ir.SoftmaxRows: "softmax",
    ir.NormRows: "normalization",
    ir.MatrixProduct: "product",
    ir.IntegerRows: "integer rows",
    ir.Delay: "state",
}


def layer_statements(network: Network, instance: Callable[[Node], dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    """An entry for each layer. `instance` describes the implementation of a node, or is None if there is none."""
    instances_of, last_instances = _instances(network, instance)
    if instances_of and not network.graph.states:
        instances_of[max(instances_of)] += last_instances
    for i, layer in enumerate(network.graph.layers):
        if isinstance(layer, ir.View | ir.StreamedInput | ir.StreamedOutputs):
            continue
        yield {
            "layer": layer.name,
            "kind": KINDS[type(layer)],
            "instances": instances_of.get(i, []),
            "inputs": [_type(source.type) for source in ir.sources_of(layer)],
            "output": _type(layer.result.type),
            **_meaning(network, i, layer),
        }


def state_instances(network: Network, instance: Callable[[Node], dict[str, Any] | None]) -> list[dict[str, Any]]:
    """The instances of states between frames: those before and of each memory, then those after the last layer."""
    instances_of, last_instances = _instances(network, instance)
    inputs = [i for i, layer in enumerate(network.graph.layers) if isinstance(layer, ir.StreamedInput)]
    return [entry for i in inputs for entry in instances_of.get(i, [])] + last_instances


def removed_elements(graph: ir.Graph) -> dict[str, Any]:
    """The entry about elements of the model's tensors that the network does not compute; empty if there are none."""
    values = [{"value": i, "positions": [list(p) for p in axes]} for i, axes in enumerate(graph.removed) if any(axes)]
    return {"removed": values} if values else {}


def _instances(
    network: Network, instance: Callable[[Node], dict[str, Any] | None]
) -> tuple[dict[int, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The instances of each layer by its position, with the routing before it, and those after the last layer."""
    instances_of: dict[int, list[dict[str, Any]]] = {}
    instances: list[dict[str, Any]] = []
    for node in network.inner:
        entry = instance(node)
        instances += [entry] if entry is not None else []
        if node.position >= 0:
            instances_of[node.position], instances = instances, []
    return instances_of, instances


def _type(type_: IntType) -> dict[str, Any]:
    """The certificate's entry of a type."""
    return {"bits": type_.bits, "signed": type_.signed, "lo": type_.lo, "hi": type_.hi}


def _meaning(network: Network, i: int, layer: ir.Layer) -> dict[str, Any]:
    """The fields that describe the function of a layer."""
    match layer:
        case ir.Linear(weight=weight, lo=lo, hi=hi):
            return {"rows": weight.shape[0], "columns": weight.shape[1], "lo": lo.tolist(), "hi": hi.tolist()}
        case ir.Convolution(weight=weight, lo=lo, hi=hi):
            sums = {"lo": lo.tolist(), "hi": hi.tolist()}
            return {"weights": list(weight.shape), "groups": layer.groups, **_window(layer.window, layer.pad), **sums}
        case ir.MatrixProduct(factors=factors, offsets=offsets):
            operands = {"factors": list(factors), "offsets": list(offsets)}
            return {"columns": layer.depth, **operands, "lo": [layer.interval.lo], "hi": [layer.interval.hi]}
        case ir.Pooling():
            return {"reduction": layer.kind.value, **_window(layer.window, layer.pad)}
        case ir.Map():
            f = network.choices[layer.name].function
            assert f is not None, "every function of one stream is proven"
            return _function(network.choices[layer.name], f.index, {"interval": np.stack([f.lo, f.hi], axis=1)})
        case ir.BinaryMap():
            first, second = (value_range(network.graph, j) for j in layer.inputs)
            joint = ir.binary_function.specialize(layer, network.orders[i + 1], (first, second))
            choice = network.choices[layer.name]
            assert choice.plan is not None
            ends = {
                "a": np.stack([joint.lo[0], joint.hi[0]], axis=1),
                "b": np.stack([joint.lo[1], joint.hi[1]], axis=1),
            }
            steps = choice.steps
            if steps is not None:
                ends["interval"] = np.stack([steps.lo, steps.hi], axis=1)
            return {"way": _join_kind(choice.plan), **_function(choice, joint.index, ends)}
        case ir.IntegerRows(function=function, merged=merged):
            units = (node.unit for node in network.inner if node.layer == layer.name)
            programs = [unit.program for unit in units if isinstance(unit, ProgramUnit)]
            is_stated = programs and (merged or programs[0] != function)
            return {"program": program_statement(programs[0])} if is_stated else {}
        case _:
            return {}


def _join_kind(plan: JoinPlan | FloatJoin) -> str:
    """The operation that joins two streams."""
    if isinstance(plan, FloatJoin):
        return "float32"
    return "packed" if plan.packed else "product" if plan.factors is None else "sum"


def _window(window: Window, pad: int) -> dict[str, Any]:
    return {
        "kernel": list(window.kernel),
        "strides": list(window.strides),
        "dilations": list(window.dilations),
        "pads": list(window.pads),
        "pad": pad,
    }


def _function(choice: Choice, index: Array, ends: dict[str, Array]) -> dict[str, Any]:
    """The statement about a quantizer function.

    `index`: index of the channel parameters of each element of the stream. `ends` (parameter sets, 2): intervals by
    name.
    """
    form, span = _form(choice), period(index)
    sets = []
    for s in range(int(index.max()) + 1):
        entry = {
            "positions": np.flatnonzero(index[:span] == s).tolist(),
            **{name: ends_[s].tolist() for name, ends_ in ends.items()},
        }
        sets.append(entry | (_runs(choice.steps, s) if form == "steps" and choice.steps is not None else {}))
    return {"realization": choice.name, "form": form, "period": span, "sets": sets}


def _form(choice: Choice) -> str:
    """ "steps": the thresholds are listed. "operations": the modules are the model's operations, one by one.
    "constants": too many thresholds to list; parameters and memories define the function."""
    if isinstance(choice.realization, FloatUnits):
        return "operations"
    return "steps" if choice.steps is not None else "constants"


def _runs(steps: ThresholdTable, s: int) -> dict[str, list[int]]:
    """Thresholds of parameter set s inside its interval, and its codes from the low end on."""
    starts = np.unique(np.append(steps.inner(s), steps.lo[s]))
    codes = steps.values[np.searchsorted(steps.table[:, s], starts, side="right"), s]
    keep = np.append(True, codes[1:] != codes[:-1])
    return {"thresholds": starts[keep][1:].tolist(), "codes": codes[keep].tolist()}


def period(index: Array) -> int:
    """The shortest period of an index table that divides its length."""
    for n in range(1, len(index) + 1):
        if len(index) % n == 0 and (index.reshape(-1, n) == index[:n]).all():
            return n
    return max(1, len(index))


def certificate_text(value: object, indent: int = 0) -> str:
    """JSON with lists of numbers on one line."""
    inner = " " * (indent + 1)
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(key)}: {certificate_text(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return (
            "[\n" + ",\n".join(inner + certificate_text(item, indent + 1) for item in value) + "\n" + " " * indent + "]"
        )
    return json.dumps(value)
