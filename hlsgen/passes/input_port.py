"""Where hardware begins: what its input port carries, and what the host does before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import Collector, fail
from hlsgen.ir import Encoding, Fixed, FloatKey, HostOp, IntegerEncoding, Model, ModelInput, Op, Value
from hlsgen.ir.evaluate import KEY_POS_INF, apply, code_type, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Cast, Quantizer
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.declared_types import holds
from hlsgen.passes.input_mode import InputMode
from hlsgen.passes.partition import Entry, Partition
from hlsgen.passes.pending_value import NamedOps, PendingValue, bounded

#: Types of inputs that hosts quantize.
FLOAT_DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True, eq=False)
class InputPort:
    """The codes of an input that enter hardware.

    `encode`: the quantizer with which the host makes them, if it does. `head`: steps of the model that the host does
    before; `added`: those that become layers all the same, and `taken`: those of the core that the port stands for.
    `number`: the value of the model that the codes stand for, as `tensor`.
    """

    encode: Quantizer | None
    head: tuple[int, ...]
    added: tuple[int, ...]
    taken: tuple[int, ...]
    number: int
    tensor: PendingValue


def divided_inputs(model: Model, wishes: Mapping[str, InputMode | None], parts: Partition) -> set[int]:
    """Inputs that the host quantizes for every branch: one port has the codes of all of them.

    Where nothing else is asked for, of an input that branches, all ways of which the host can go to a quantizer, and which
    could not go to hardware as float32. Integers only where a branch has a step that the host alone computes.
    """
    found = set()
    for entry in parts.entries:
        source, number = model.all_inputs[entry.source], entry.source
        wish = wishes.get(source.name) or wishes.get("")
        if entry.first >= 0 or (wish and wish.kind != "codes"):
            continue
        ways = parts.first_quantizers(model.steps, number)
        computed = any(isinstance(model.steps[i].op, HostOp) for way in ways for i in way.head)
        floats = source.type is None and source.dtype in FLOAT_DTYPES
        if len(ways) > 1 and (computed or (floats and (wish or model.inputs))):
            found.add(number)
    return found


def check_mode(model: Model, source: ModelInput, mode: InputMode, entry: Entry, problems: Collector) -> None:
    """Reports an input mode that does not fit the first layer (HG032, HG042)."""
    if entry.first < 0:
        if mode.kind == "codes":
            problems.error(
                "HG032", source.name, "several operations use the input, and no quantizer comes first.",
                "Put one quantizer in front, or say --input fixed:W,I or float32.",
            )  # fmt: skip
        return
    step = model.steps[entry.first]
    if isinstance(step.op, QUANTIZERS):
        return
    if mode.kind == "codes":
        problems.error(
            "HG032", step.name, "the layer's input is not quantized.",
            "Put a quantizer in front, or say --input fixed:W,I.",
        )  # fmt: skip
    if mode.kind == "float32":
        problems.error(
            "HG042", step.name, "float32 input goes straight into a linear layer.",
            "Use --input fixed:W,I, or put a quantizer in front of the layer.",
        )  # fmt: skip


def input_port(model: Model, source: ModelInput, mode: InputMode, entry: Entry, parts: Partition) -> InputPort:
    """The port for a mode that fits (`check_mode`). Raises HG042."""
    if mode.kind == "codes":
        return _port_of_codes(model, entry, parts)
    return _port_of_numbers(model, source, mode, entry)


def _port_of_codes(model: Model, entry: Entry, parts: Partition) -> InputPort:
    """The host quantizes, with the bounds that follow the first quantizer."""
    steps, core = model.steps, set(parts.core)
    run = [entry.first]
    while len(parts.users[run[-1] + 1]) == 1 and parts.users[run[-1] + 1][0] in core:
        run.append(parts.users[run[-1] + 1][0])
    op, bounds = bounded(steps[run[0]].op, [steps[i].op for i in run[1:]])
    assert isinstance(op, QUANTIZERS)
    value = Value(steps[run[0]].shape, code_type(op), decoding(op))
    return InputPort(op, entry.head, (), tuple(run[: bounds + 1]), run[bounds] + 1, PendingValue(0, value))


def _port_of_numbers(model: Model, source: ModelInput, mode: InputMode, entry: Entry) -> InputPort:
    """The host hands over numbers behind the last step that only it can do; float work after that is hardware's."""
    steps, head = model.steps, entry.head
    cut = len(entry.on_host(steps))
    kind = np.dtype(_dtype_after([steps[i].op for i in head[:cut]], source.dtype))
    if cut and kind.kind in "iu" and kind.itemsize > 1:  # their products are not exact in float32
        step = steps[head[cut - 1]]
        what = step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"
        hint = "Put a quantizer or a layer in front, or cast to float32 first (operator Cast)."
        raise fail("HG042", step.name, f"{what} of {kind} data, which only hosts have, is in front of hardware.", hint)
    shape = steps[head[cut - 1]].shape if cut else source.shape
    meaning: Encoding
    if mode.kind == "fixed":
        assert mode.type is not None
        type_, meaning = mode.type, Fixed(mode.fraction)
        if np.dtype(source.dtype).kind in "iu" and not mode.fraction and not cut:
            dtype = "uint16" if model.second_input else source.dtype
            meaning = IntegerEncoding(dtype, np.zeros((1,) * len(shape), np.int64))
    else:
        type_, meaning = IntType(0, KEY_POS_INF), FloatKey()
    value = Value(shape, type_, meaning)
    number = head[cut - 1] + 1 if cut else entry.value
    ops = _to_dtype(source.name, kind.name, mode, type_)
    return InputPort(None, head[:cut], head[cut:], (), number, PendingValue(0, value, ops))


def _to_dtype(name: str, dtype: str, mode: InputMode, type_: IntType) -> NamedOps:
    """The port gives float32; data of another float dtype goes on in that. Raises HG042."""
    if dtype not in ("float16", "float64"):
        return ()
    if dtype == "float64" and (mode.kind == "float32" or type_.bits > 24):
        raise fail(
            "HG042", name, "a float64 input does not fit a float32 port.",
            "Use --input codes, or fixed:W,I with W of at most 24.",
        )  # fmt: skip
    return ((name, Cast(dtype)),)


def _dtype_after(ops: Sequence[Op], dtype: str) -> str:
    """The dtype behind operations of the host on data of `dtype`; those of the host alone keep it."""
    for op in ops:
        if isinstance(op, FLOATS):
            dtype = str(apply(op, np.zeros((1,), dtype)).dtype)
    return dtype


def as_after_host(model: Model, source: ModelInput, entry: Entry) -> ModelInput:
    """What the port takes of an input: of the dtype behind the host's steps, without a declared type that they may break."""
    ops = [model.steps[i].op for i in entry.on_host(model.steps)]
    if source.type is None or holds(ops, *source.type, source.size):
        return source
    return replace(source, type=None, dtype=_dtype_after(ops, source.dtype))
