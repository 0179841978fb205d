"""State between frames: a pair of an input and an output of the model that becomes state inside the core.

A pair is legal if the host's steps between the two change no code. The output of a frame then has the codes that the
input of the next frame needs. The steps may reshape and transpose.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.interpreter.equivalence import host_encoding
from hlsgen.interpreter.graph import encode_array
from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir.evaluate import decode
from hlsgen.ir.ops import Dequantize
from hlsgen.numerics.fixed import Array, IntType

#: Most codes of a type for which a pair is checked on each code.
_MOST_CODES = 1 << 17
_HINT = "A pair needs one shape, code type, scale and zero point: use the same quantizer for both in the file."
_AS_PORTS = "Build with --state none: variables are then inputs and outputs."
#: In place of pairs: all variables of a TFLite file that no pair names, or none of them.
VARIABLES, NONE = "variables", "none"


@dataclass(frozen=True)
class StatePair:
    """The names of an input and of an output, and the text of the initial real values: a number or nested lists.

    An empty text means the value of the file's variable of this name, else 0. `variable`: the pair is a variable of
    the file, and the user has not named it.
    """

    input: str
    output: str
    initial: str
    variable: bool = False

    @property
    def hint(self) -> str:
        """The way out if the pair cannot be a state."""
        return _AS_PORTS if self.variable else _HINT


def read_pair(text: str, outputs: Sequence[str]) -> StatePair:
    """Reads IN=OUT or IN=OUT:INIT. `outputs`: names of the model's outputs, which may contain colons. Raises HG043."""
    source, equals, output_and_initial = text.partition("=")
    output, colon, initial = output_and_initial.rpartition(":")
    if output_and_initial in outputs or not colon:
        output, initial = output_and_initial, ""
    if not source or not equals or not output:
        raise fail("HG043", "--state", f"{text!r}.", "Write IN=OUT or IN=OUT:INIT, with names of tensors.")
    return StatePair(source, output, initial)


def with_default(model: ir.Model, texts: Sequence[str]) -> list[str]:
    """The texts of --state, with VARIABLES if the file assigns variables and the texts say nothing about them."""
    if VARIABLES in texts or NONE in texts:
        return list(texts)
    return [*texts, VARIABLES] if _unpaired_variables(model, texts) else list(texts)


def _unpaired_variables(model: ir.Model, texts: Sequence[str]) -> list[str]:
    """The names of the variables that are inputs and outputs of the model, and the input of no pair."""
    outputs = [x.name for x in model.all_outputs]
    paired = [read_pair(text, outputs).input for text in texts if text != VARIABLES]
    return [variable.name for variable in model.variables if variable.name in outputs and variable.name not in paired]


def states_last(model: ir.Model, texts: Sequence[str]) -> tuple[ir.Model, tuple[StatePair, ...]]:
    """The model with these inputs and outputs as the last ones, in the order of the pairs. Raises HG043."""
    if not texts:
        return model, ()
    inputs, outputs = [x.name for x in model.all_inputs], [x.name for x in model.all_outputs]
    pairs = tuple(read_pair(text, outputs) for text in texts if text != VARIABLES)
    if VARIABLES in texts:
        names = _unpaired_variables(model, texts)
        if not names:
            raise fail("HG043", "--state", "the file assigns no variables.", "Write IN=OUT, with names of tensors.")
        pairs += tuple(StatePair(name, name, "", variable=True) for name in names)
    problems = Collector()
    for kind, names, tensor_names in (
        ("input", [pair.input for pair in pairs], inputs),
        ("output", [pair.output for pair in pairs], outputs),
    ):
        for name in dict.fromkeys(names):
            if name not in tensor_names:
                problems.error("HG043", name, f"is no {kind} of the model.", f"Its {kind}s: {', '.join(tensor_names)}.")
            elif names.count(name) > 1:
                problems.error("HG043", name, f"two states have this {kind}.", "Name each tensor once.")
        if not problems.items and len(names) == len(tensor_names):
            hint = _AS_PORTS if any(pair.variable for pair in pairs) else "Frames need data of their own."
            problems.error("HG043", names[0], f"no {kind} is left beside the states.", hint)
    problems.finish()
    source_order = _last(inputs, [pair.input for pair in pairs])
    target_order = _last(outputs, [pair.output for pair in pairs])
    offsets = np.cumsum([0, *(model.inputs[n].size for n in source_order)]).tolist()
    new_value = list(range(len(model.steps) + 1))
    steps = list(model.steps)
    for place, number in enumerate(source_order):
        part = model.steps[number]
        assert isinstance(part.op, ir.InputPart)
        new_value[number + 1] = place + 1
        steps[place] = replace(part, op=replace(part.op, number=place, offset=offsets[place]))
    steps = [replace(step, inputs=tuple(new_value[value] for value in step.inputs)) for step in steps]
    ends = steps[-1]
    assert isinstance(ends.op, ir.OutputParts)
    steps[-1] = replace(ends, inputs=tuple(ends.inputs[n] for n in target_order))
    return replace(
        model,
        steps=tuple(steps),
        inputs=tuple(model.inputs[n] for n in source_order),
        outputs=tuple(model.outputs[n] for n in target_order),
    ), pairs


def _last(names: Sequence[str], moved: Sequence[str]) -> list[int]:
    """A permutation of `names`, as positions: the names in `moved` come last, in the order of `moved`."""
    return [n for n, name in enumerate(names) if name not in moved] + [names.index(name) for name in moved]


def with_states(graph: ir.Graph, pairs: Sequence[StatePair], packed: bool) -> ir.Graph:
    """The graph of `states_last`, with its pairs as states. A single port that remains has no name. Raises HG043.

    `packed`: only one input and one output may remain.
    """
    if not pairs:
        return graph
    count, problems, states = len(pairs), Collector(), list[ir.FrameState]()
    last = graph.layers[-1]
    is_undivided = [part.source for part in graph.inputs] == list(range(len(graph.model.inputs)))
    if not isinstance(last, ir.StreamedOutputs) or not is_undivided or any(graph.host_binaries[-count:]):
        raise fail("HG043", pairs[0].input, "a state, or another input, has several quantizers.", pairs[0].hint)
    for pair, source, target in zip(pairs, graph.inputs[-count:], graph.outputs[-count:], strict=True):
        with problems.catching():
            moved = _moved(pair, source, target)
            states.append(ir.FrameState(pair.input, moved, _initial(pair, graph, source)))
    problems.finish()
    inputs, outputs = len(graph.inputs) - count, len(graph.outputs) - count
    if packed and max(inputs, outputs) > 1:
        text = f"{inputs} inputs and {outputs} outputs remain beside the states."
        hint = "Build with --ports separate" + " or --state none" * pairs[-1].variable
        raise fail("HG043", "--state", text, f"{hint}.")
    layers = [
        replace(layer, port="") if isinstance(layer, ir.StreamedInput) and layer.offset == 0 and inputs == 1 else layer
        for layer in graph.layers
    ]
    layers[-1] = replace(last, ports=("", *last.ports[1:])) if outputs == 1 else last
    return replace(graph, states=tuple(states), layers=tuple(layers))


def _moved(pair: StatePair, source: ir.GraphInput, target: ir.GraphOutput) -> Array:
    """For each code of the input the element of the output that it is, int64 (size,). Raises HG043."""
    place = f"{pair.input}={pair.output}"
    output, state = target.value, source.value
    problem = ""
    if output.size != state.size:
        problem = f"the shapes differ: {list(state.shape)} and {list(output.shape)}"
    elif not _contains(state.type, output.type):
        problem = f"the code types differ: {state.type} and {output.type}"
    else:
        problem = _difference(host_encoding(source.encode, state), _output_encoding(target))
    if not problem and output.type.hi - output.type.lo >= _MOST_CODES:
        problem = f"codes of {output.type} are too wide"
    if problem:
        raise fail("HG043", place, f"{problem}.", pair.hint)
    host_steps = [s.name for s in (*target.steps, *source.steps) if isinstance(s.op, ir.HostOp | ir.ArgMax)]
    if host_steps:
        raise fail("HG043", place, f"{host_steps[0]} is between the two, which only the host computes.", pair.hint)
    positions = np.arange(output.size).reshape(1, *output.shape)
    for step in (*target.steps, *source.steps):
        if isinstance(step.op, ir.Reshape | ir.Transpose):
            positions = run_step(step, positions)
    codes = np.arange(output.type.lo, output.type.hi + 1)
    is_unchanged = True
    rows = max(1, (1 << 20) // output.size)
    for start in range(0, len(codes), rows):
        row = codes[start : start + rows]
        is_unchanged &= bool((_next_codes(pair, source, target, row) == row[:, None]).all())
    if not is_unchanged:
        raise fail("HG043", place, "the numbers of the output become other codes at the input.", pair.hint)
    return np.asarray(positions.ravel())


def _contains(state: IntType, output: IntType) -> bool:
    """True if each code of the output has the same bits and meaning as a code of the state."""
    same_bits = (state.bits, state.signed) == (output.bits, output.signed)
    return same_bits and state.lo <= output.lo and output.hi <= state.hi


def _output_encoding(target: ir.GraphOutput) -> ir.Encoding:
    """The encoding of an output after the host's first Dequantize, if there is one."""
    op = target.steps[0].op if target.steps else None
    if isinstance(op, Dequantize) and isinstance(target.value.encoding, ir.IntegerEncoding):
        return ir.Affine(op.scale, op.zero_point)
    return target.value.encoding


def _difference(state: ir.Encoding, output: ir.Encoding) -> str:
    """Names the parameters of two encodings that differ; "" if none does, or if they cannot be compared."""
    if not isinstance(state, ir.Affine) or not isinstance(output, ir.Affine):
        return ""
    for name, ours, theirs in (
        ("scales", state.scale, output.scale),
        ("zero points", state.zero_point, output.zero_point),
    ):
        if np.unique(ours).tolist() != np.unique(theirs).tolist():
            return f"the {name} differ: {_some(ours)} and {_some(theirs)}"
    return ""


def _some(values: Array | np.float32) -> str:
    distinct = np.unique(values)
    return f"{distinct[0]:.9g}" if len(distinct) == 1 else f"{distinct[0]:.9g} to {distinct[-1]:.9g}"


def _next_codes(pair: StatePair, source: ir.GraphInput, target: ir.GraphOutput, codes: Array) -> Array:
    """Codes of the input (frames, size) if all elements of the output hold one of these codes (frames,)."""
    filled = np.broadcast_to(codes.reshape(-1, *(1 for _ in target.value.shape)), (len(codes), *target.value.shape))
    x = filled if target.is_index else decode(target.value.encoding, filled)
    for step in target.steps:
        x = run_step(step, x)
    try:
        encoded = encode_array(pair.input, source.steps, source.encode, source.value, x, False)
    except HlsgenError:
        return np.full((len(codes), source.value.size), source.value.type.hi + 1)
    return encoded.reshape(len(codes), -1)


def _initial(pair: StatePair, graph: ir.Graph, source: ir.GraphInput) -> Array:
    """The codes of the initial values, int64 (size,). Raises HG043."""
    tensor = graph.model.inputs[source.source]
    hint = "Give a number, or a file .npy with the shape of the input; its codes must represent the values."
    variables = {variable.name: variable.initial for variable in graph.model.variables}
    try:
        default = variables.get(pair.input, np.zeros(()))
        numbers = np.asarray(json.loads(pair.initial) if pair.initial else default, np.float64)
    except (ValueError, TypeError, RecursionError):
        raise fail("HG043", pair.input, f"initial value {pair.initial[:40]!r} is no number.", hint) from None
    if numbers.ndim and [n for n in numbers.shape if n > 1] != [n for n in tensor.shape if n > 1]:
        text = f"initial values of shape {list(numbers.shape)}; the input has {list(tensor.shape)}."
        raise fail("HG043", pair.input, text, hint)
    values = np.broadcast_to(numbers.reshape(tensor.shape) if numbers.ndim else numbers, tensor.shape)[None]
    dtype = np.dtype(tensor.dtype)
    typed = values.astype(dtype)
    exact = np.isfinite(values).all() and (dtype.kind == "f" or np.array_equal(typed.astype(np.float64), values))
    codes = encode_array(pair.input, source.steps, source.encode, source.value, typed, False) if exact else None
    if codes is None or not _represents(source, codes, typed):
        raise fail("HG043", pair.input, f"no code represents the initial value {_some(values)}.", hint)
    return codes.reshape(-1)


def _represents(source: ir.GraphInput, codes: Array, numbers: Array) -> bool:
    """True if the codes of the input represent exactly these numbers, one frame of each."""
    x = numbers
    for step in source.steps:
        x = run_step(step, x)
    decoded = decode(host_encoding(source.encode, source.value), codes)
    return np.array_equal(decoded.astype(np.float64).ravel(), x.astype(np.float64).ravel())
