"""Second reading of nodes that move elements or reduce axes: runs onnx's evaluator and the Model's steps on test data.

The test data are whole numbers, so every sum is exact. All numbers differ if elements only move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hlsgen.certify.second_reading.step_results import bordered, convolved, moved, taps
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ
from hlsgen.ir import Conv, MatMul, Pad, Pool, Reduction, Step, Window
from hlsgen.ir.ops import Constant, Div, Where
from hlsgen.numerics.fixed import Array

#: Larger tensors are not tried.
_MAX_ELEMENTS = 1 << 24


def check_moved(imported: ImportedSteps, n: int) -> Differences:
    """Compare the place of every element: the input elements are numbered from 1 on."""
    start, arrays = 1, []
    for shape in imported.input_shapes(n):
        size = int(np.prod(shape))
        arrays.append(np.arange(start, start + size, dtype=np.float64).reshape(shape))
        start += size
    return _compare_results(imported, n, arrays)


def check_reduced(imported: ImportedSteps, n: int) -> Differences:
    """Compare sums, averages and maxima over axes, on random whole numbers."""
    rng = np.random.default_rng(0)
    return _compare_results(
        imported, n, [rng.integers(-99, 100, shape).astype(np.float64) for shape in imported.input_shapes(n)]
    )


def _compare_results(imported: ImportedSteps, n: int, arrays: list[Array]) -> Differences:
    if (
        not arrays
        or sum(a.size for a in arrays) > _MAX_ELEMENTS
        or imported.file.nodes[n].domain not in ("", "ai.onnx")
    ):
        return None
    results, expected = run_steps(imported, n, arrays), _run_node(imported, n, arrays)
    if results is None or expected is None:
        return None
    used_outputs = [
        y for name, y in zip(imported.file.nodes[n].output, expected, strict=True) if imported.file.is_used(name)
    ]
    differences: list[str] = []
    for output_index, y in enumerate(used_outputs):
        if len(used_outputs) > 1 or not results:  # each of several outputs is one step; an unchanged output has no step
            unchanged = y.shape == arrays[0].shape and bool((y == arrays[0]).all())
            if unchanged and (not results or results[0].shape != y.shape or bool((results[0] != y).any())):
                continue
            if not results:
                return None if len(used_outputs) == 1 else ["a part was imported as the entire tensor."]
            result = results.pop(0)
        else:
            result = results[-1]
        if result.shape != y.shape:
            differences.append(f"a result of shape {list(result.shape)} was imported, the file has {list(y.shape)}.")
        else:
            differences += differ(f"element {output_index}" if len(used_outputs) > 1 else "element", result, y)
    return differences


def _run_node(imported: ImportedSteps, n: int, arrays: list[Array]) -> list[Array] | None:
    """The outputs of the node by onnx's evaluator, which supports GlobalMaxPool only for two spatial axes.

    Returns None if it fails.
    """
    file, node = imported.file, imported.file.nodes[n]
    if node.op_type == "GlobalMaxPool":
        return [arrays[0].max(axis=tuple(range(2, arrays[0].ndim)), keepdims=True)]
    inputs, remaining_arrays = {}, list(arrays)
    for name in dict.fromkeys(filter(None, node.input)):
        if name in file.computed and remaining_arrays:
            inputs[name] = remaining_arrays.pop(0)
        elif name in file.constants:
            inputs[name] = file.constants[name].array
        else:
            return None
    ins = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()
    ]
    outs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    versions = [helper.make_opsetid("", file.opset)]
    single_node_model = helper.make_model(
        helper.make_graph([node], "g", ins, outs), opset_imports=versions, ir_version=10
    )
    try:
        results: Any = ReferenceEvaluator(single_node_model).run(None, inputs)
    except Exception:  # the evaluator does not support this form
        return None
    values = iter(np.asarray(y) for y in results)
    return [next(values) if name else np.zeros(0) for name in node.output]


def run_steps(
    imported: ImportedSteps, n: int, arrays: list[Array], weights: Mapping[int, Array] | None = None
) -> list[Array] | None:
    """The results of all steps of node n, computed for `arrays` in place of its inputs.

    Returns None if a step is of an unknown kind.

    `weights`: the weights of a Conv or MatMul, by the id of its operation.
    """
    values: dict[int, Array] = {}
    external_inputs = imported.external_inputs(n)
    if len(external_inputs) not in (1, len(arrays)):
        return None
    for value, array in zip(external_inputs, arrays, strict=len(external_inputs) == len(arrays)):
        values[value] = array
    results = []
    for number, step in enumerate(imported.model.steps, 1):
        if any(step is node_step for node_step in imported.steps(n)):
            result = _run_step(step, [values[i] for i in step.inputs], weights or {})
            if result is None:
                return None
            values[number] = result
            results.append(result)
    return results


def _run_step(step: Step, inputs: list[Array], weights: Mapping[int, Array]) -> Array | None:
    x = inputs[0]
    match step.op:
        case Pad(pads, value):
            return bordered(x, pads, value)
        case Where(((Constant(condition),), (Constant(value),), ())):
            return np.where(condition, value, x)
        case Pool(kind, window):
            windows = _windows(x, window, 0.0 if kind is Reduction.SUM else -np.inf)
            return np.asarray(windows.sum(axis=(-2, -1)) if kind is Reduction.SUM else windows.max(axis=(-2, -1)))
        case Div(value):
            return np.asarray(x / value.astype(np.float64))
        case MatMul() as op if id(op) in weights:
            return np.asarray(x @ weights[id(op)].T)
        case Conv() as op if id(op) in weights:
            return convolved(_windows(x, op.window, 0.0), weights[id(op)], op.groups)
        case _:
            return moved(step.op, inputs, step.shape)


def _windows(x: Array, window: Window, filler: float) -> Array:
    """All windows of an image, as (n, height, width, channels, kernel height, kernel width)."""
    return taps(x, window.kernel, window.strides, window.dilations, window.pads, filler)


#: Operator -> its second reading.
PROBES: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    **dict.fromkeys(
        "Slice Split Gather Concat DepthToSpace SpaceToDepth Squeeze Unsqueeze Resize Upsample Expand Tile".split(),
        check_moved,
    ),
    **dict.fromkeys("GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum ReduceMax".split(), check_reduced),
}
