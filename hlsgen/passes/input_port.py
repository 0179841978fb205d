"""The input port: where the hardware begins, and the host's work before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import Collector, fail
from hlsgen.ir import Encoding, Fixed, FloatKey, HostOp, IntegerEncoding, Model, ModelInput, Op, Value
from hlsgen.ir.evaluate import KEY_POS_INF, apply, code_type, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Cast, Quantizer
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.declared_types import keep_type
from hlsgen.passes.input_mode import InputMode
from hlsgen.passes.partition import Entry, Partition
from hlsgen.passes.pending_value import NamedOps, PendingValue, bounded

#: Types of inputs that the host quantizes.
FLOAT_DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class InputPort:
    """The codes of an input that enter the hardware.

    `encode`: the quantizer with which the host makes them, if it does. `head`: steps of the model that the host does
    before it. `extra_layers`: host steps that become layers nevertheless. `replaced`: core steps that the port
    replaces. `number`: the value of the model that the codes represent, as `tensor`.
    """

    encode: Quantizer | None
    head: tuple[int, ...]
    extra_layers: tuple[int, ...]
    replaced: tuple[int, ...]
    number: int
    tensor: PendingValue


def divided_inputs(model: Model, requested_modes: Mapping[str, InputMode | None], parts: Partition) -> set[int]:
    """Numbers of the inputs that the host quantizes for each branch; one port has the codes of all branches.

    The input must branch, with no other requested mode. The host must be able to compute every path to a quantizer, and
    the input must be unable to enter the hardware as float32. An integer input is divided only if a branch has a step
    that only the host computes.
    """
    divided = set()
    for entry in parts.entries:
        source, number = model.all_inputs[entry.source], entry.source
        requested = requested_modes.get(source.name) or requested_modes.get("")
        if entry.first >= 0 or (requested and requested.kind != "codes"):
            continue
        branches = parts.first_quantizers(model.steps, number)
        computed = any(isinstance(model.steps[i].op, HostOp) for branch in branches for i in branch.head)
        floats = source.type is None and source.dtype in FLOAT_DTYPES
        if len(branches) > 1 and (computed or (floats and (requested or model.inputs))):
            divided.add(number)
    return divided


def check_mode(model: Model, source: ModelInput, mode: InputMode, entry: Entry, problems: Collector) -> None:
    """Report an input mode that does not fit the first layer (HG032, HG042)."""
    if entry.first < 0:
        if mode.kind == "codes":
            problems.error(
                "HG032",
                source.name,
                "several operations use the input, and no quantizer comes first.",
                "Put one quantizer before them, or use --input fixed:W,I or float32.",
            )
        return
    step = model.steps[entry.first]
    if isinstance(step.op, QUANTIZERS):
        return
    if mode.kind == "codes":
        problems.error(
            "HG032",
            step.name,
            "the layer's input is not quantized.",
            "Put a quantizer before it, or use --input fixed:W,I.",
        )
    if mode.kind == "float32":
        problems.error(
            "HG042",
            step.name,
            "float32 input enters a linear layer directly.",
            "Use --input fixed:W,I, or put a quantizer before the layer.",
        )


def input_port(model: Model, source: ModelInput, mode: InputMode, entry: Entry, parts: Partition) -> InputPort:
    """The port for a mode that fits (`check_mode`). Raises HG042."""
    if mode.kind == "codes":
        return _port_of_codes(model, entry, parts)
    return _port_of_numbers(model, source, mode, entry)


def _port_of_codes(model: Model, entry: Entry, parts: Partition) -> InputPort:
    """The port if the host quantizes, including the bounds that follow the first quantizer."""
    steps, core = model.steps, set(parts.core)
    run = [entry.first]
    while len(parts.users[run[-1] + 1]) == 1 and parts.users[run[-1] + 1][0] in core:
        run.append(parts.users[run[-1] + 1][0])
    op, bounds = bounded(steps[run[0]].op, [steps[i].op for i in run[1:]])
    assert isinstance(op, QUANTIZERS)
    value = Value(steps[run[0]].shape, code_type(op), decoding(op))
    return InputPort(op, entry.head, (), tuple(run[: bounds + 1]), run[bounds] + 1, PendingValue(0, value))


def _port_of_numbers(model: Model, source: ModelInput, mode: InputMode, entry: Entry) -> InputPort:
    """The port if the host sends numbers, after the last step that only it can do.

    Later float work becomes hardware.
    """
    steps, head = model.steps, entry.head
    cut = len(entry.on_host(steps))
    host_dtype = np.dtype(_dtype_after([steps[i].op for i in head[:cut]], source.dtype))
    if cut and host_dtype.kind in "iu" and host_dtype.itemsize > 1:  # their products are not exact in float32
        step = steps[head[cut - 1]]
        operation = step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"
        hint = "Put a quantizer or a layer before it, or cast to float32 first (operator Cast)."
        text = f"{operation} of {host_dtype} data, which only the host supports, comes before the hardware."
        raise fail("HG042", step.name, text, hint)
    shape = steps[head[cut - 1]].shape if cut else source.shape
    encoding: Encoding
    if mode.kind == "fixed":
        assert mode.type is not None
        type_, encoding = mode.type, Fixed(mode.fraction)
        if np.dtype(source.dtype).kind in "iu" and not mode.fraction and not cut:
            dtype = "uint16" if model.second_input else source.dtype
            encoding = IntegerEncoding(dtype, np.zeros((1,) * len(shape), np.int64))
    else:
        type_, encoding = IntType(0, KEY_POS_INF), FloatKey()
    value = Value(shape, type_, encoding)
    number = head[cut - 1] + 1 if cut else entry.value
    ops = _to_dtype(source.name, host_dtype.name, mode, type_)
    return InputPort(None, head[:cut], head[cut:], (), number, PendingValue(0, value, ops))


def _to_dtype(name: str, dtype: str, mode: InputMode, type_: IntType) -> NamedOps:
    """The Cast from the port's float32 to the input's other float dtype, if any. Raises HG042."""
    if dtype not in ("float16", "float64"):
        return ()
    if dtype == "float64" and (mode.kind == "float32" or type_.bits > 24):
        raise fail(
            "HG042",
            name,
            "a float64 input does not fit a float32 port.",
            "Use --input codes, or fixed:W,I with W of at most 24.",
        )
    return ((name, Cast(dtype)),)


def _dtype_after(ops: Sequence[Op], dtype: str) -> str:
    """The dtype after host operations on data of `dtype`; operations that only the host has keep it."""
    for op in ops:
        if isinstance(op, FLOATS):
            dtype = str(apply(op, np.zeros((1,), dtype)).dtype)
    return dtype


def as_after_host(model: Model, source: ModelInput, entry: Entry) -> ModelInput:
    """The input as the port receives it: with the dtype after the host's steps.

    A declared type is dropped if these steps may leave it.
    """
    ops = [model.steps[i].op for i in entry.on_host(model.steps)]
    if source.type is None or keep_type(ops, *source.type, source.size):
        return source
    return replace(source, type=None, dtype=_dtype_after(ops, source.dtype))
