"""Compares a build with its ONNX model, which an independent runtime runs unmodified from end to end.

The inputs go through host preprocessing, the hardware's integers and host postprocessing. The outputs must equal the
runtime's outputs. Inner tensors of the same run are compared as well. The Model is computed step by step: each
difference from the runtime's value is explained (hlsgen.simulation.explanation) or is a failure. Later steps continue
from the runtime's value, so that differences do not spread, and the chain ends in the file's outputs.
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
from hlsgen.frontend import runtimes
from hlsgen.frontend.file_kind import ALIR, ONNX, kind_of
from hlsgen.frontend.load import read_bytes, read_model
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.installation import install_command
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.frame_sequence import in_sequence
from hlsgen.interpreter.model import interpret_from
from hlsgen.interpreter.tensor import Tensor, tensor_of_codes, tensor_of_numbers
from hlsgen.ir import Graph, HostOp, Model, Op, OutputParts, Repeat, Reshape, Step, Transpose
from hlsgen.ir.evaluate import decoding
from hlsgen.ir.ops import QUANTIZERS, Dequantize, FixedAdd, Pair, PairOp
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import alir_oracle, tflite_oracle
from hlsgen.simulation.exact_values import all_equal
from hlsgen.simulation.explanation import Explanation, HostExplanation
from hlsgen.simulation.file_inputs import any_numbers, numbers_for_file
from hlsgen.simulation.file_pieces import ExecutedFile, Piece
from hlsgen.simulation.file_verdict import Case, OracleVerdict
from hlsgen.simulation.host_rounding import NORMALIZED_SUMS
from hlsgen.simulation.oracles import CHOICES, PACKAGES, Unable, executor_of, installed, one_line
from hlsgen.simulation.unrolled_file import unroll
from hlsgen.simulation.whole_file import WholeFile, open_file

#: Most differences of each reason that are recorded with their numbers.
_SHOWN = 10
#: Command that installs the runtimes.
_INSTALL = install_command("oracle")
#: Largest distance between an explained code and ours, in codes.
_NEAR = 64
_FIXED_POINT = "a sum in fixed point, by --add fixed-point"


def compare_file(
    path: Path,
    model: Model,
    graph: Graph,
    codes: Array,
    choice: str = "auto",
    progress: Callable[[str], None] = lambda text: None,
) -> OracleVerdict:
    """Runs the file on the numbers that codes (frames, *shape) of the graph's input port represent; compares.

    choice: one of `CHOICES`; "auto" is the build's own runtime. Raises HG001 to HG004 for a file that cannot be read.
    """
    verdict = OracleVerdict(choice)
    if choice == "none":
        verdict.reason = "not requested"
        return verdict
    runtime = model.runtime if choice == "auto" else choice
    data = read_bytes(path)
    if kind_of(data) is not ONNX:
        return _compare_whole(data, model, graph, codes, OracleVerdict(runtime), progress)
    proto = read_model(path)
    if not installed(runtime):
        verdict.reason = f"{runtime} is not installed; {_INSTALL}"
        if runtime in (*runtimes.TFLITE, runtimes.ALIR):
            verdict.reason = f"{runtime} does not run ONNX files"
        return verdict
    try:
        inputs = _Inputs.of(model, graph, codes)
        file = open_file(proto, runtime, any_numbers(model))
        progress(f"{runtime}: the whole file, {len(codes)} frames")
        theirs, numbers = _run_frames(file, model, inputs, verdict)
    except Unable as error:
        verdict.reason = f"{runtime} could not run it: {error}"
        return verdict
    except HlsgenError as error:  # host preprocessing gives numbers that are no codes of the port
        verdict.reason = f"there are no inputs for the file: {one_line(error)}"
        return verdict
    verdict.ran, verdict.frames = _with_version(runtime), len(numbers)
    try:
        _Comparison(file, model, inputs.chosen(numbers), verdict).run(theirs, progress)
    except Unable as error:
        verdict.ran, verdict.reason = "", f"{runtime} does not give these outputs: {error}"
    for reason, cases in verdict.cases.items():
        verdict.cases[reason] = [replace(case, frame=numbers[case.frame]) for case in cases]
    return verdict


def _run_frames(
    file: WholeFile, model: Model, inputs: _Inputs, verdict: OracleVerdict
) -> tuple[list[dict[str, Array]], list[int]]:
    """(the file's outputs, the number of the frame) for each frame that the runtime can run.

    Frames in which the Model has NaN or infinities may be left out: ONNX does not define their conversion to integers,
    for example. The verdict counts them. Raises Unable if another frame fails, or all of them.
    """
    outputs, numbers = [], []
    is_finite = lru_cache(lambda: _finite_frames(model, inputs))
    for number in range(len(inputs.start.value)):
        try:
            outputs.append(file.run(inputs.frame(number)))
        except Unable as error:
            if is_finite()[number]:
                raise
            verdict.left_out += 1
            verdict.left_out_because = verdict.left_out_because or str(error)
        else:
            numbers.append(number)
    if not numbers:
        raise Unable(verdict.left_out_because)
    return outputs, numbers


def _finite_frames(model: Model, inputs: _Inputs) -> Array:
    """A mask of the frames in which every value of the Model is finite."""
    mask = np.ones(len(inputs.start.value), bool)
    for tensor in interpret_from(model, 0, inputs.start):
        mask &= np.isfinite(tensor.value).reshape(len(mask), -1).all(axis=1)
    return mask


def _compare_whole(
    data: bytes, model: Model, graph: Graph, codes: Array, verdict: OracleVerdict, progress: Callable[[str], None]
) -> OracleVerdict:
    """The comparison with a TFLite or ALIR file in the runtime `verdict.asked`."""
    is_alir = kind_of(data) is ALIR
    verdict.reason = (alir_oracle if is_alir else tflite_oracle).missing(verdict.asked)
    if verdict.reason:
        return verdict
    try:
        inputs = _Inputs.of(model, graph, in_sequence(graph, codes))
        progress(f"{verdict.asked}: the whole file, {len(codes)} frames")
        if is_alir:
            alir_oracle.compare(data, model, inputs.feeds, inputs.outputs, verdict)
        else:
            tflite_oracle.compare(data, model, inputs.feeds, inputs.outputs, progress, verdict)
    except Unable as error:
        verdict.reason = f"{verdict.asked} could not run it: {error}"
    except HlsgenError as error:  # host preprocessing gives numbers that are no codes of the port
        verdict.reason = f"there are no inputs for the file: {one_line(error)}"
    return verdict


def _with_version(runtime: str) -> str:
    """The runtime's name with the version of its package."""
    try:
        return f"{runtime} {version(executor_of(runtime))}"
    except PackageNotFoundError:  # a variant, whose package has another name
        return runtime


def check_choice(choice: str) -> None:
    """Raises HG040 for a name that is not in `CHOICES`, HG059 for a runtime that is not installed."""
    if choice not in CHOICES:
        raise fail("HG040", "--oracle", f"{choice!r}.", f"Supported: {', '.join(CHOICES)}.")
    if choice in PACKAGES and not installed(choice):
        raise fail("HG059", choice, "is not installed.", f"{_INSTALL}, or choose --oracle auto or none.")
    reason = tflite_oracle.missing(choice) if choice in runtimes.TFLITE else ""
    reason = alir_oracle.missing(choice) if choice == runtimes.ALIR else reason
    if reason:
        raise fail("HG059", choice, f"cannot run: {reason}.", "Install it, or choose --oracle auto or none.")


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Inputs of the compared runs, and our outputs. All arrays are (frames, *shape).

    start: the Model's value 0. feeds: the file's inputs by name. outputs: the Graph's outputs by name.
    """

    start: Tensor
    feeds: dict[str, Array]
    outputs: dict[str, Array]

    @staticmethod
    def of(model: Model, graph: Graph, codes: Array) -> _Inputs:
        """Inputs for codes. Raises HG054 if host preprocessing gives numbers that are no codes of the port."""
        if model.second_input:
            halves = (codes & 0xFF, codes >> 8 & 0xFF)
            names, dtype = (model.input_name, model.second_input), np.dtype(model.input_dtype)
            feeds = {name: half.astype(np.uint8).view(dtype) for name, half in zip(names, halves, strict=True)}
            return _Inputs(tensor_of_codes(graph.input.encoding, codes), feeds, _outputs(model, graph, codes))
        x = numbers_for_file(model, graph, codes)
        parts = reference.split_inputs(model.inputs, x)
        feeds = {source.name: part for source, part in zip(model.inputs, parts, strict=True)} or {model.input_name: x}
        start = replace(tensor_of_numbers(x), parts=tuple(tensor_of_numbers(part) for part in parts))
        return _Inputs(start, feeds, _outputs(model, graph, reference.encode_input(graph, x)))

    def chosen(self, numbers: Sequence[int]) -> _Inputs:
        """The frames with these numbers only."""
        if len(numbers) == len(next(iter(self.feeds.values()))):
            return self
        feeds, outputs = ({name: x[numbers] for name, x in part.items()} for part in (self.feeds, self.outputs))
        parts = tuple(tensor_of_numbers(part.value[numbers]) for part in self.start.parts)
        return _Inputs(replace(tensor_of_numbers(self.start.value[numbers]), parts=parts), feeds, outputs)

    def frame(self, number: int) -> dict[str, Array]:
        """The file's inputs of one frame, by name."""
        return {name: array[number] for name, array in self.feeds.items()}


def _outputs(model: Model, graph: Graph, codes: Array) -> dict[str, Array]:
    """Outputs of the hardware's integers and host postprocessing, by name, in the Model's shapes (frames, *shape)."""
    last = reference.run_output(graph, codes)
    if model.outputs:
        shapes = {output.name: (-1, *output.shape) for output in model.outputs}
        return {name: y.reshape(shapes[name]) for name, y in reference.named_outputs(graph, last).items()}
    return {model.output_name: reference.decode_output(graph, last).reshape(-1, *model.steps[-1].shape)}


@dataclass(frozen=True)
class _Target:
    """A tensor of the file that equals value `number` of the Model; `node`: the file's node that produces it."""

    tensor: str
    node: str
    number: int
    is_output: bool


class _Comparison:
    """Compares a Model with the tensors of one run of its file."""

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
        interpret_from(self.model, 0, self.inputs.start, self._corrected)
        self._compare_graph()

    def _executed(self) -> ExecutedFile:
        """The nodes that the runtime executes. Raises Unable."""
        files: list[ExecutedFile] = []
        for source in (self.file.proto, self.file.executed):
            proto = onnx.ModelProto()
            proto.CopyFrom(source)
            name_all(proto.graph)
            grids = files[-1].grids if files else None
            files.append(ExecutedFile(proto, self.file.executor, list(self.inputs.feeds), grids))
        return files[-1]

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
        with suppress(Unable):  # then tensors within loops are not compared
            unroll(named.graph, self.file.executor, self.file.any_numbers, opsets)
        numbers_by_name: dict[str, list[int]] = {}
        for number, step in enumerate(steps, 1):
            numbers_by_name.setdefault(step.name.removesuffix(" (rescaled)"), []).append(number)
        self.makers = {o: node.name for node in named.graph.node for o in node.output}
        targets = [_Target(name, self.makers.get(name, name), ends[name], True) for name in outputs]
        before_host = _before_host(steps)
        for node in named.graph.node:
            tensors = [o for o in node.output if o]
            node_numbers = numbers_by_name.get(node.name, [])
            if not node_numbers or len(tensors) != 1 or tensors[0] in outputs:
                continue
            if node_numbers[-1] in before_host or _is_target(steps, node_numbers, node.op_type):
                targets.append(_Target(tensors[0], node.name, node_numbers[-1], False))
        return targets

    # ------------------------------------------------------------------- the chain

    def _corrected(self, number: int, tensor: Tensor) -> Tensor:
        """A value of the Model after its comparison; the runtime's value if they differ."""
        for target in sorted(self.targets.get(number, ()), key=lambda target_: target_.is_output):
            theirs = np.stack(self.theirs[target.tensor])
            if target.is_output and self.model.outputs == ():
                tensor = replace(tensor, value=tensor.value.astype(self.model.output_dtype))
            layouts = [order for order in self._layouts(number) if order.shape == theirs.shape[1:]]
            if not layouts and tensor.value[0].size == theirs[0].size:
                layouts = [np.arange(theirs[0].size).reshape(theirs.shape[1:])]
            if not layouts:
                shapes = f"{list(theirs.shape[1:])}, in the Model {list(tensor.value.shape[1:])}"
                self._skip(target, f"its shape is {shapes}")
                continue
            flat = tensor.value.reshape(len(theirs), -1)
            order = next((order for order in layouts if all_equal(flat[:, order], theirs)), layouts[0])
            tensor = self._compared(target, tensor, flat[:, order], theirs, order)
        return tensor

    def _layouts(self, number: int) -> list[Array]:
        """Orders of the elements of a value: its own, and the orders after later steps that only rename or repeat
        elements."""
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

    def _skip(self, target: _Target, why: str) -> None:
        """Records a tensor that cannot be compared. For an output this is a failure."""
        self.verdict.left[target.node] = why
        if target.is_output:
            self._fail(target.node, 0, (0,), "nothing", "nothing", why)

    def _compared(self, target: _Target, tensor: Tensor, ours: Array, theirs: Array, order: Array) -> Tensor:
        """Counts and explains the differences; returns the tensor with the runtime's values."""
        verdict, different = self.verdict, _differs(ours, theirs)
        verdict.compared += 1
        verdict.elements += theirs.size
        op = self.model.steps[target.number - 1].op
        is_float = target.is_output and theirs.dtype.kind == "f" and not isinstance(op, (*QUANTIZERS, Dequantize))
        verdict.floats += theirs.size if is_float else 0
        if different.any():
            if isinstance(op, FixedAdd) or (isinstance(op, Pair) and op.kind is PairOp.FIXED):
                verdict.left[target.node] = _FIXED_POINT
            else:
                verdict.integers_differ += 0 if is_float else int(different.sum())
                verdict.floats_differ += int(different.sum()) if is_float else 0
                if is_float:
                    verdict.last_places = max(verdict.last_places, _last_places(ours, theirs))
                for frame in np.flatnonzero(different.reshape(len(different), -1).any(axis=1)):
                    self._explain(target, int(frame), ours[frame], theirs[frame])
            tensor = _replaced(op, tensor, theirs, order)
        self.known.add(target.tensor)
        return tensor

    def _explain(self, target: _Target, frame: int, ours: Array, theirs: Array) -> None:
        """Counts the differing elements of a frame, by reason."""
        explained: Explanation | None = None
        try:
            if self.pieces is None:
                raise Unable(self.why)
            piece: Piece = self.pieces.piece(target.tensor, self.known)
            is_bounded = len(piece.nodes) == 1 or piece.nodes[-1].op_type in NORMALIZED_SUMS
            on_host = isinstance(self.model.steps[target.number - 1].op, HostOp) and is_bounded
            explained = (HostExplanation if on_host else Explanation)(
                self.pieces, piece, self._trace(frame), ours, theirs
            )
            why = explained.why
        except Exception as error:  # an explanation that fails in any way is none
            why = f"it cannot be recomputed: {one_line(error)}"
        for place in np.argwhere(_differs(ours, theirs)):
            index = tuple(int(i) for i in place)
            values = str(ours[index]), str(theirs[index])
            if why or explained is None:
                self._fail(target.node, frame, index, *values, why)
                continue
            reason = explained.reason(index)
            self.verdict.explained[reason] = self.verdict.explained.get(reason, 0) + 1
            cases = self.verdict.cases.setdefault(reason, [])
            if len(cases) < _SHOWN:
                cases.append(Case(target.node, frame, index, *values, reason, *explained.numbers(index)))

    def _fail(self, node: str, frame: int, index: tuple[int, ...], ours: str, theirs: str, why: str) -> None:
        """Records a difference without an explanation."""
        self.verdict.unexplained += 1
        cases = self.verdict.cases.setdefault("unexplained", [])
        if len(cases) < _SHOWN or node not in {case.node for case in cases}:
            cases.append(Case(node, frame, index, ours, theirs, why))

    def _compare_graph(self) -> None:
        """Compares the hardware's outputs with the Model's on the same input: then the chain above also holds for the
        hardware."""
        values = interpret_from(self.model, 0, self.inputs.start)
        last = self.model.steps[-1]
        numbers = last.inputs if isinstance(last.op, OutputParts) else (len(self.model.steps),)
        for target, number in zip(self.model.all_outputs, numbers, strict=True):
            ours = self.inputs.outputs[target.name]
            model_output = values[number].value.astype(target.dtype).reshape(ours.shape)
            for place in np.argwhere(_differs(ours, model_output)):
                index = tuple(int(i) for i in place)
                why = "the hardware's integers differ from the steps of the model"
                node = self.makers.get(target.name, target.name)
                self._fail(node, index[0], index[1:], str(ours[index]), str(model_output[index]), why)


def _before_host(steps: Sequence[Step]) -> set[int]:
    """Values that an operator of the host consumes, directly or through moves of elements."""
    numbers: set[int] = set()
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        if isinstance(step.op, HostOp) or (number in numbers and isinstance(step.op, Reshape | Transpose)):
            numbers.update(step.inputs)
    return numbers


def _is_target(steps: Sequence[Step], numbers: Sequence[int], op_type: str) -> bool:
    """True if one of these steps of a node is a quantizer, or the node's operator on the host."""
    ops: list[Op] = [steps[n - 1].op for n in numbers]
    return any(isinstance(op, QUANTIZERS) or (isinstance(op, HostOp) and op.op_type == op_type) for op in ops)


def _in_shape(ours: Array, theirs: Array) -> Array:
    """Our values in the runtime's shape."""
    return ours.reshape(theirs.shape) if ours.size == theirs.size else ours


def _differs(ours: Array, theirs: Array) -> Array:
    """A mask of the differing elements; NaN equals NaN."""
    if ours.shape != theirs.shape:
        return np.ones(theirs.shape, bool)
    return np.asarray((ours != theirs) & ~((ours != ours) & (theirs != theirs)))


def _last_places(ours: Array, theirs: Array) -> int:
    """The largest distance of finite values, in units in the last place of the largest value of its frame."""
    flat = [a.reshape(len(a), -1).astype(np.float64) for a in (ours, theirs)]
    is_finite = np.isfinite(flat[0]) & np.isfinite(flat[1])
    flat = [np.where(is_finite, a, 0) for a in flat]
    largest = np.maximum(*(np.abs(a).max(axis=1) for a in flat))
    unit = np.spacing(largest.astype(np.float32)).astype(np.float64)
    return int(np.ceil((np.abs(flat[0] - flat[1]).max(axis=1) / unit).max(initial=0)))


def _replaced(op: Op, tensor: Tensor, theirs: Array, order: Array) -> Tensor:
    """The runtime's values as a tensor of the Model; for a quantizer with the codes of these values."""
    value = tensor.value.reshape(len(theirs), -1).copy()
    value[:, order.reshape(-1)] = theirs.reshape(len(theirs), -1)
    value = value.reshape(tensor.value.shape)
    if not isinstance(op, QUANTIZERS) or tensor.codes is None:
        return replace(tensor_of_numbers(value), origin=tensor.origin)
    meaning, codes = decoding(op), tensor.codes.copy()
    without_code = _differs(tensor.value, value)
    for step in range(1, _NEAR + 1):
        for offset in (step, -step):
            equal = without_code & (tensor_of_codes(meaning, tensor.codes + offset).value == value)
            codes[equal] += offset
            without_code &= ~equal
        if not without_code.any():
            return replace(tensor_of_codes(meaning, codes), origin=tensor.origin)
    return replace(tensor_of_numbers(value), origin=tensor.origin)
