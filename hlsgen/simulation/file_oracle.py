"""Compares a build with its ONNX file, which a runtime that is not hlsgen's runs whole and unmodified.

The file's inputs go through the host's head, the integers of the hardware and the host's tail; the outputs must be those
of the runtime. The tensors of the same run are compared as well: the Model is computed step by step, and where its value
differs from the runtime's, the difference is explained (hlsgen.simulation.explanation) or is a failure. The steps after it
continue from the runtime's value, so that each difference stays where it is, and the chain ends in the file's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import onnx

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.load import read_model
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.installation import install_command
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import resumed
from hlsgen.interpreter.tensor import Tensor, of_codes, plain
from hlsgen.ir import Graph, HostOp, Model, Op, OutputParts, Repeat, Reshape, Step, Transpose
from hlsgen.ir.evaluate import decoding
from hlsgen.ir.ops import QUANTIZERS, FixedAdd, Pair, PairOp
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import same
from hlsgen.simulation.explanation import Explained, OnHost
from hlsgen.simulation.file_inputs import any_numbers, numbers_for_file
from hlsgen.simulation.file_pieces import ExecutedFile, Piece
from hlsgen.simulation.file_verdict import Case, OracleVerdict
from hlsgen.simulation.host_rounding import NORMALIZED_SUMS
from hlsgen.simulation.oracles import CHOICES, PACKAGES, Unable, executor_of, installed, one_line
from hlsgen.simulation.unrolled_file import unroll
from hlsgen.simulation.whole_file import WholeFile, open_file

#: Differences of each reason that are kept with their numbers.
_SHOWN = 10
#: How to get the runtimes.
_INSTALL = install_command("oracle")
#: How far an explained code is from ours at most, in steps.
_NEAR = 64
_FIXED_POINT = "a sum in fixed point, as --add has it"


def hold_file(
    path: Path, model: Model, graph: Graph, codes: Array, asked: str = "auto",
    progress: Callable[[str], None] = lambda text: None,
) -> OracleVerdict:  # fmt: skip
    """Runs the file on the numbers that codes (frames, *shape) of the graph's input port mean.

    `asked`: one of `CHOICES`; "auto" is the build's own runtime. Raises HG001 to HG004 for a file that cannot be read.
    """
    verdict = OracleVerdict(asked)
    if asked == "none":
        verdict.reason = "not asked for"
        return verdict
    proto = read_model(path)
    runtime = model.runtime if asked == "auto" else asked
    if not installed(runtime):
        verdict.reason = f"{runtime} is not installed; {_INSTALL}"
        return verdict
    try:
        inputs = _Inputs.of(model, graph, codes)
        file = open_file(proto, runtime, any_numbers(model))
        progress(f"{runtime}: the whole file, {len(codes)} frames")
        theirs = [file.run(inputs.frame(number)) for number in range(len(codes))]
    except Unable as error:
        verdict.reason = f"{runtime} could not run it: {error}"
        return verdict
    except HlsgenError as error:  # the host's head gives numbers that the port does not have
        verdict.reason = f"no inputs for the file: {one_line(error)}"
        return verdict
    verdict.ran, verdict.frames = _with_version(runtime), len(codes)
    try:
        _Comparison(file, model, inputs, verdict).run(theirs, progress)
    except Unable as error:
        verdict.ran, verdict.reason = "", f"{runtime} does not give these outputs: {error}"
    return verdict


def _with_version(runtime: str) -> str:
    try:
        return f"{runtime} {version(executor_of(runtime))}"
    except PackageNotFoundError:  # a variant, whose package has another name
        return runtime


def check_choice(asked: str) -> None:
    """Raises HG040 for a name that is none of `CHOICES`, HG059 for a runtime of that name that is missing."""
    if asked not in CHOICES:
        raise fail("HG040", "--oracle", f"{asked!r}.", f"Supported: {', '.join(CHOICES)}.")
    if asked in PACKAGES and not installed(asked):
        raise fail("HG059", asked, "not installed.", f"{_INSTALL}, or choose --oracle auto or none.")


@dataclass(frozen=True, eq=False)
class _Inputs:
    """`start`: the Model's value 0. `feeds`: the file's inputs by name. `outputs`: those of the Graph, by name.

    All arrays are (frames, *shape).
    """

    start: Tensor
    feeds: dict[str, Array]
    outputs: dict[str, Array]

    @staticmethod
    def of(model: Model, graph: Graph, codes: Array) -> _Inputs:
        """Raises HG054 where the host's head gives what the port does not hold."""
        if model.second_input:
            halves = (codes & 0xFF, codes >> 8 & 0xFF)
            names, dtype = (model.input_name, model.second_input), np.dtype(model.input_dtype)
            feeds = {name: half.astype(np.uint8).view(dtype) for name, half in zip(names, halves, strict=True)}
            return _Inputs(of_codes(graph.input.encoding, codes), feeds, _outputs(model, graph, codes))
        x = numbers_for_file(model, graph, codes)
        parts = reference.parts_of(model.inputs, x)
        feeds = {s.name: part for s, part in zip(model.inputs, parts, strict=True)} or {model.input_name: x}
        start = replace(plain(x), parts=tuple(plain(part) for part in parts))
        return _Inputs(start, feeds, _outputs(model, graph, reference.encode_input(graph, x)))

    def frame(self, number: int) -> dict[str, Array]:
        return {name: array[number] for name, array in self.feeds.items()}


def _outputs(model: Model, graph: Graph, codes: Array) -> dict[str, Array]:
    """The outputs of the hardware's integers and the host's tail, by name, (frames, *shape) as far as the Model has it."""
    last = reference.run_output(graph, codes)
    if model.outputs:
        shapes = {one.name: (-1, *one.shape) for one in model.outputs}
        return {name: y.reshape(shapes[name]) for name, y in reference.named_outputs(graph, last).items()}
    return {model.output_name: reference.decode_output(graph, last).reshape(-1, *model.steps[-1].shape)}


@dataclass(frozen=True)
class _Target:
    """A tensor of the file that value `number` of the Model is; `node`: the file's node that gives it."""

    tensor: str
    node: str
    number: int
    is_output: bool


class _Comparison:
    """A Model against the tensors of one run of its file."""

    def __init__(self, file: WholeFile, model: Model, inputs: _Inputs, verdict: OracleVerdict) -> None:
        self.file, self.model, self.inputs, self.verdict = file, model, inputs, verdict
        self.known = set(inputs.feeds)
        #: The runtime's values of the targets, frame by frame.
        self.theirs: dict[str, list[Array]] = {}
        self._trace = lru_cache(maxsize=2)(lambda frame: file.trace(inputs.frame(frame)))

    def run(self, theirs: list[dict[str, Array]], progress: Callable[[str], None]) -> None:
        """Fills the verdict; `theirs`: the outputs of the whole file, frame by frame."""
        verdict, frames = self.verdict, range(self.verdict.frames)
        names = list(self.inputs.outputs)
        if any(name not in theirs[0] for name in names):  # --outputs names tensors within the file
            theirs = [self._trace(frame) for frame in frames]
            missing = next((name for name in names if name not in theirs[0]), None)
            if missing is not None:
                raise Unable(f"the runtime has fused the nodes around {missing}")
        self.theirs = {name: [outputs[name] for outputs in theirs] for name in names}
        for name in names:
            stacked = np.stack(self.theirs[name])
            verdict.outputs += stacked.size
            verdict.outputs_differ += int(_differs(_in_shape(self.inputs.outputs[name], stacked), stacked).sum())
        targets = self._targets(names)
        try:
            for frame in frames:
                progress(f"{verdict.ran}: tensors of frame {frame + 1} of {len(frames)}")
                trace = self._trace(frame)
                for target in targets:
                    if not target.is_output and target.tensor in trace:
                        self.theirs.setdefault(target.tensor, []).append(trace[target.tensor])
            self.pieces: ExecutedFile | None = self._executed()
        except Unable as error:
            self.pieces = None
            self.theirs = {name: self.theirs[name] for name in names}
            self.why = str(error)
        self.targets: dict[int, list[_Target]] = {}
        for target in targets:
            if target.tensor in self.theirs:
                self.targets.setdefault(target.number, []).append(target)
        progress(f"{verdict.ran}: the model, step by step")
        resumed(self.model, 0, self.inputs.start, self._corrected)
        self._compare_graph()

    def _executed(self) -> ExecutedFile:
        proto = onnx.ModelProto()
        proto.CopyFrom(self.file.executed)
        name_all(proto.graph)
        return ExecutedFile(proto, self.file.executor, list(self.inputs.feeds))

    # ------------------------------------------------------------------- targets

    def _targets(self, outputs: Sequence[str]) -> list[_Target]:
        """The tensors after quantizers and host operators, and the outputs."""
        steps, last = self.model.steps, self.model.steps[-1]
        numbers = last.inputs if isinstance(last.op, OutputParts) else (len(steps),)
        ends = dict(zip((t.name for t in self.model.all_outputs), numbers, strict=True))
        named = onnx.ModelProto()
        named.CopyFrom(self.file.proto)
        name_all(named.graph)
        opsets = {o.domain: o.version for o in named.opset_import}
        with suppress(Unable):  # then the tensors of its loops are not compared
            unroll(named.graph, self.file.executor, self.file.any_numbers, opsets)
        places: dict[str, list[int]] = {}
        for number, step in enumerate(steps, 1):
            places.setdefault(step.name.removesuffix(" (rescaled)"), []).append(number)
        self.makers = {o: node.name for node in named.graph.node for o in node.output}
        targets = [_Target(name, self.makers.get(name, name), ends[name], True) for name in outputs]
        before_host = _before_host(steps)
        for node in named.graph.node:
            tensors = [o for o in node.output if o]
            at = places.get(node.name, [])
            if not at or len(tensors) != 1 or tensors[0] in outputs:
                continue
            if at[-1] in before_host or _is_target(steps, at, node.op_type):
                targets.append(_Target(tensors[0], node.name, at[-1], False))
        return targets

    # ------------------------------------------------------------------- the chain

    def _corrected(self, number: int, tensor: Tensor) -> Tensor:
        """A value of the Model after its comparison: where it differs, the runtime's value."""
        for target in sorted(self.targets.get(number, ()), key=lambda one: one.is_output):
            theirs = np.stack(self.theirs[target.tensor])
            if target.is_output and self.model.outputs == ():
                tensor = replace(tensor, value=tensor.value.astype(self.model.output_dtype))
            layouts = [order for order in self._layouts(number) if order.shape == theirs.shape[1:]]
            if not layouts and tensor.value[0].size == theirs[0].size:
                layouts = [np.arange(theirs[0].size).reshape(theirs.shape[1:])]
            if not layouts:
                shapes = f"{list(theirs.shape[1:])} is {list(tensor.value.shape[1:])} in the Model"
                self._leave(target, f"its shape {shapes}")
                continue
            flat = tensor.value.reshape(len(theirs), -1)
            order = next((order for order in layouts if same(flat[:, order], theirs)), layouts[0])
            tensor = self._compared(target, tensor, flat[:, order], theirs, order)
        return tensor

    def _layouts(self, number: int) -> list[Array]:
        """Orders of the elements of a value: its own, and those of the steps that only rename or repeat them."""
        shape = self.model.steps[number - 1].shape
        orders = [np.arange(int(np.prod(shape))).reshape(shape)]
        for n, step in enumerate(self.model.steps[number:], number + 1):
            if step.inputs != (number,) or not isinstance(step.op, Reshape | Transpose | Repeat):
                continue
            moved, number = orders[-1], n
            match step.op:
                case Transpose(perm):
                    moved = moved.transpose(perm)
                case Repeat(rows, columns):
                    moved = np.repeat(np.repeat(moved, rows, axis=-3), columns, axis=-2)
                case _:
                    moved = moved.reshape(step.shape)
            orders.append(moved)
        return orders

    def _leave(self, target: _Target, why: str) -> None:
        """A tensor that cannot be compared; of an output that is a failure."""
        self.verdict.left[target.node] = why
        if target.is_output:
            self._fail(target.node, 0, (0,), "nothing", "nothing", why)

    def _compared(self, target: _Target, tensor: Tensor, ours: Array, theirs: Array, order: Array) -> Tensor:
        """Counts and explains what differs; the tensor with the runtime's values."""
        verdict, wrong = self.verdict, _differs(ours, theirs)
        verdict.compared += 1
        verdict.elements += theirs.size
        op = self.model.steps[target.number - 1].op
        is_float = target.is_output and theirs.dtype.kind == "f" and not isinstance(op, QUANTIZERS)
        verdict.floats += theirs.size if is_float else 0
        if wrong.any():
            if isinstance(op, FixedAdd) or (isinstance(op, Pair) and op.kind is PairOp.FIXED):
                verdict.left[target.node] = _FIXED_POINT
            else:
                verdict.integers_differ += 0 if is_float else int(wrong.sum())
                verdict.floats_differ += int(wrong.sum()) if is_float else 0
                if is_float:
                    verdict.last_places = max(verdict.last_places, _last_places(ours, theirs))
                for frame in np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1)):
                    self._explain(target, int(frame), ours[frame], theirs[frame])
            tensor = _replaced(op, tensor, theirs, order)
        self.known.add(target.tensor)
        return tensor

    def _explain(self, target: _Target, frame: int, ours: Array, theirs: Array) -> None:
        """Counts the elements of a frame that differ, by reason."""
        explained: Explained | None = None
        try:
            if self.pieces is None:
                raise Unable(self.why)
            piece: Piece = self.pieces.piece(target.tensor, self.known)
            is_bounded = len(piece.nodes) == 1 or piece.nodes[-1].op_type in NORMALIZED_SUMS
            on_host = isinstance(self.model.steps[target.number - 1].op, HostOp) and is_bounded
            explained = (OnHost if on_host else Explained)(self.pieces, piece, self._trace(frame), ours, theirs)
            why = explained.why
        except Exception as error:  # an explanation that fails, in whatever way, is none
            why = f"it cannot be recomputed: {one_line(error)}"
        for place in np.argwhere(_differs(ours, theirs)):
            index = tuple(int(i) for i in place)
            values = str(ours[index]), str(theirs[index])
            if why or explained is None:
                self._fail(target.node, frame, index, *values, why)
                continue
            reason = explained.reason(index)
            self.verdict.explained[reason] = self.verdict.explained.get(reason, 0) + 1
            kept = self.verdict.cases.setdefault(reason, [])
            if len(kept) < _SHOWN:
                kept.append(Case(target.node, frame, index, *values, reason, *explained.numbers(index)))

    def _fail(self, node: str, frame: int, index: tuple[int, ...], ours: str, theirs: str, why: str) -> None:
        self.verdict.unexplained += 1
        kept = self.verdict.cases.setdefault("unexplained", [])
        if len(kept) < _SHOWN or node not in {case.node for case in kept}:
            kept.append(Case(node, frame, index, ours, theirs, why))

    def _compare_graph(self) -> None:
        """The hardware's outputs must be the Model's on the same input: then the chain above speaks of them."""
        values = resumed(self.model, 0, self.inputs.start)
        last = self.model.steps[-1]
        numbers = last.inputs if isinstance(last.op, OutputParts) else (len(self.model.steps),)
        for target, number in zip(self.model.all_outputs, numbers, strict=True):
            ours = self.inputs.outputs[target.name]
            wanted = values[number].value.astype(target.dtype).reshape(ours.shape)
            for place in np.argwhere(_differs(ours, wanted)):
                index = tuple(int(i) for i in place)
                why = "the hardware's integers do not give what the steps of the model give"
                node = self.makers.get(target.name, target.name)
                self._fail(node, index[0], index[1:], str(ours[index]), str(wanted[index]), why)


def _before_host(steps: Sequence[Step]) -> set[int]:
    """Values that an operator of the host consumes."""
    numbers: set[int] = set()
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        if isinstance(step.op, HostOp) or (number in numbers and isinstance(step.op, Reshape | Transpose)):
            numbers.update(step.inputs)
    return numbers


def _is_target(steps: Sequence[Step], numbers: Sequence[int], op_type: str) -> bool:
    ops: list[Op] = [steps[n - 1].op for n in numbers]
    return any(isinstance(op, QUANTIZERS) or (isinstance(op, HostOp) and op.op_type == op_type) for op in ops)


def _in_shape(ours: Array, theirs: Array) -> Array:
    """Our values in the shape that the runtime gives them."""
    return ours.reshape(theirs.shape) if ours.size == theirs.size else ours


def _differs(ours: Array, theirs: Array) -> Array:
    """Where two arrays differ; NaN equals NaN."""
    if ours.shape != theirs.shape:
        return np.ones(theirs.shape, bool)
    return np.asarray((ours != theirs) & ~((ours != ours) & (theirs != theirs)))


def _last_places(ours: Array, theirs: Array) -> int:
    """The largest distance, in units in the last place of the largest value of its frame."""
    flat = [np.nan_to_num(a.reshape(len(a), -1).astype(np.float64)) for a in (ours, theirs)]
    largest = np.maximum(*(np.abs(a).max(axis=1) for a in flat))
    unit = np.spacing(largest.astype(np.float32)).astype(np.float64)
    return int(np.ceil((np.abs(flat[0] - flat[1]).max(axis=1) / unit).max(initial=0)))


def _replaced(op: Op, tensor: Tensor, theirs: Array, order: Array) -> Tensor:
    """The runtime's values as a tensor of the Model; of a quantizer with the codes that they are."""
    value = tensor.value.reshape(len(theirs), -1).copy()
    value[:, order.reshape(-1)] = theirs.reshape(len(theirs), -1)
    value = value.reshape(tensor.value.shape)
    if not isinstance(op, QUANTIZERS) or tensor.codes is None:
        return replace(plain(value), origin=tensor.origin)
    meaning, codes = decoding(op), tensor.codes.copy()
    missing = _differs(tensor.value, value)
    for step in range(1, _NEAR + 1):
        for by in (step, -step):
            fits = missing & (of_codes(meaning, tensor.codes + by).value == value)
            codes[fits] += by
            missing &= ~fits
        if not missing.any():
            return replace(of_codes(meaning, codes), origin=tensor.origin)
    return replace(plain(value), origin=tensor.origin)
