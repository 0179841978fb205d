"""Holds a build against its file, run by an executor that is not ours.

The file is cut behind its quantizers. Every piece runs in the executor on the integers that the Model has in front of
it, and must give those that it has behind: so each rounding that differs stays where it is, and cannot hide another.
The last piece ends with the output, which must be that of the Graph. A difference must be explained
(hlsgen.simulation.explanation), or it is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from hlsgen.diagnostics import Diagnostic, HlsgenError, fail
from hlsgen.frontend.load import read_model
from hlsgen.frontend.onnx_graph import all_nodes, name_all
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import before_codes, model_inputs, nearest_part
from hlsgen.interpreter.model import interpret, resumed
from hlsgen.interpreter.tensor import Tensor, of_codes
from hlsgen.ir import FloatKey, Graph, HostOp, Model, Op, Repeat, Reshape, Transpose, Value
from hlsgen.ir.evaluate import decode
from hlsgen.ir.ops import QUANTIZERS, FixedAdd, Pair, PairOp, Quantizer
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import same
from hlsgen.simulation.explanation import SORTS, Explained
from hlsgen.simulation.file_pieces import ExecutedFile, Piece
from hlsgen.simulation.oracles import CHOICES, PACKAGES, Unable, fitting, installed, one_line
from hlsgen.simulation.unrolled_file import unroll

#: Differences of each sort that are kept with their numbers.
_SHOWN = 10
#: Largest number that the file gets at an input of floats.
_LARGEST = 2.0**15
#: How to get the executors.
_INSTALL = "pip install 'hlsgen[oracle]'"


@dataclass(frozen=True)
class Case:
    """An element that differs: behind a node, in a frame; our value, the executor's, and why they differ.

    `exact`: the number in front of the quantizer in units of its codes, as a fraction; `rounded`: the executor's float
    there, in the same units. Both are "" where no quantizer follows.
    """

    node: str
    frame: int
    index: tuple[int, ...]
    ours: str
    executor: str
    why: str
    exact: str = ""
    rounded: str = ""


@dataclass
class OracleVerdict:
    """What an executor that is not ours says of the file.

    `ran`: its name and version, "" if none did; then `reason` says why. `compared`: tensors behind quantizers, and the
    output; `elements` of them, in all frames. `explained`: elements that differ, by sort. `unexplained`: how many.
    `cases`: the first of each sort. `left`: nodes that could not be compared, and why.
    """

    asked: str
    ran: str = ""
    reason: str = ""
    frames: int = 0
    compared: int = 0
    elements: int = 0
    explained: dict[str, int] = field(default_factory=dict)
    unexplained: int = 0
    cases: dict[str, list[Case]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Nothing differs without an explanation, and an executor that was asked for by name did run."""
        return not self.unexplained and (bool(self.ran) or self.asked in ("auto", "none"))

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """HG058 for each node, HG059."""
        if not self.ok and not self.ran:
            return [Diagnostic("HG059", self.asked, f"{self.reason}.", "Choose another --oracle, or none.")]
        first: dict[str, Case] = {}
        for case in self.cases.get("unexplained", []):
            first.setdefault(case.node, case)
        return [
            Diagnostic(
                "HG058", name,
                f"element {list(case.index)}, frame {case.frame}: {self.ran} gives {case.executor}, hlsgen "
                f"{case.ours}; {case.why}.",
                "Please report it, with the model.",
            )
            for name, case in first.items()
        ]  # fmt: skip


def hold_file(
    path: Path, model: Model, graph: Graph, codes: Array, asked: str = "auto",
    progress: Callable[[str], None] = lambda text: None,
) -> OracleVerdict:  # fmt: skip
    """Runs the file on what codes (frames, *shape) of the graph's input port stand for.

    `asked`: see `executor_of`, which raises. Raises HG001 to HG004 for a file that cannot be read.
    """
    verdict = OracleVerdict(asked)
    if asked == "none":
        verdict.reason = "not asked for"
        return verdict
    proto = read_model(path)
    name_all(proto.graph)
    name = fitting(list(all_nodes(proto.graph))) if asked == "auto" else asked
    if not installed(name):
        verdict.reason = f"{name} is not installed; {_INSTALL}"
        return verdict
    try:
        unroll(proto.graph, name, _any_numbers(model), {o.domain: o.version for o in proto.opset_import})
        file = ExecutedFile(proto, name, _input_names(model))
    except Unable as error:
        verdict.reason = f"{name} could not run: {error}"
        return verdict
    verdict.ran, verdict.frames = _with_version(name), len(codes)
    _Held(file, model, graph, verdict).run(codes, progress)
    return verdict


def _input_names(model: Model) -> list[str]:
    return [*(source.name for source in model.sources), *([model.second_input] if model.second_input else [])]


def _any_numbers(model: Model) -> dict[str, Array]:
    """One frame of the inputs: numbers for which everything in the file runs."""
    rng = np.random.default_rng(0)
    found = {}
    for source in model.sources:
        dtype = np.dtype(source.dtype)
        x = rng.normal(0, 1, source.shape) if dtype.kind == "f" else rng.integers(0, 64, source.shape)
        found[source.name] = np.asarray(x).astype(dtype)
    if model.second_input:
        found[model.second_input] = found[model.input_name]
    return found


def _with_version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:  # a variant, whose package has another name
        return name


def check_choice(asked: str) -> None:
    """Raises HG040 for a name that is none of `CHOICES`, HG059 for an executor of that name that is missing."""
    if asked not in CHOICES:
        raise fail("HG040", "--oracle", f"{asked!r}.", f"Supported: {', '.join(CHOICES)}.")
    if asked in PACKAGES and not installed(asked):
        raise fail("HG059", asked, "not installed.", f"{_INSTALL}, or choose --oracle auto or none.")


def between_codes(x: Array, graph: Graph, seed: int) -> Array:
    """Numbers for a quantizer on the host: every second frame off its codes, by quarters and halves of a step."""
    return _between(x, graph.encode, bool(graph.head), graph.input, seed)


def _between(x: Array, encode: Quantizer | None, head: bool, port: Value, seed: int) -> Array:
    """The same for one input, whose codes `port` are; `head`: steps in front of the quantizer."""
    if encode is None or isinstance(port.encoding, FloatKey) or x.dtype.kind != "f" or head:
        return x
    shape, lowest = port.shape, port.type.lo
    low, next_ = (decode(before_codes(encode, port), np.full((1, *shape), code)) for code in (lowest, lowest + 1))
    step = np.broadcast_to(np.abs(next_ - low), (1, *shape)).reshape(-1)
    if step.size != x[0].size:
        return x
    rng = np.random.default_rng(seed)
    moved = x + rng.choice([-0.5, -0.25, 0.25, 0.5], x.shape) * step.reshape(x.shape[1:])
    odd = (np.arange(len(x)) % 2 == 1).reshape(-1, *(1,) * (x.ndim - 1))
    return np.where(odd, moved, x).astype(x.dtype)


def _limited(x: Array) -> Array:
    """Floats within bounds: beyond, codes saturate by contract where floats go on."""
    return np.clip(np.nan_to_num(x), -_LARGEST, _LARGEST) if x.dtype.kind == "f" else x


def _is_host(op: Op, op_type: str) -> bool:
    """Whether it is that operator of the file; a HostOp may also stand for several of its nodes."""
    return isinstance(op, HostOp) and op.op_type == op_type


class _Held:
    """One file in an executor, against a Model and a Graph."""

    def __init__(self, file: ExecutedFile, model: Model, graph: Graph, verdict: OracleVerdict) -> None:
        self.file, self.model, self.graph, self.verdict = file, model, graph, verdict
        #: Our values of tensors of the file, frame by frame.
        self.own: dict[str, list[Array]] = {}
        #: Numbers of the values that the Model's steps of a name make.
        self.places: dict[str, list[int]] = {}
        for number, step in enumerate(model.steps, 1):
            self.places.setdefault(step.name.removesuffix(" (rescaled)"), []).append(number)

    def run(self, codes: Array, progress: Callable[[str], None]) -> None:
        try:
            values, x, outputs = self._ours(codes)
        except HlsgenError as error:  # what the host makes of numbers for the file does not fit the port
            self.verdict.ran, self.verdict.reason = "", f"no inputs for the file: {one_line(error)}"
            return
        self.own = {name: list(array) for name, array in x.items()}
        ends = self._ends(values, outputs)
        for number, (target, wanted) in enumerate(ends, 1):
            progress(f"{self.verdict.ran}: {number} of {len(ends)}, {self.file.makers[target].name}")
            self._compare(target, wanted)
        if not self.verdict.compared:
            why = next(iter(self.verdict.left.values()))
            self.verdict.ran, self.verdict.reason = "", f"{self.file.executor} could not run: {why}"

    def _ours(self, codes: Array) -> tuple[list[Tensor], dict[str, Array], dict[str, Array]]:
        """The values of the Model, the file's inputs by name, (frames, *shape), and the outputs of the Graph."""
        model, graph = self.model, self.graph
        if model.second_input:
            halves = (codes & 0xFF, codes >> 8 & 0xFF)
            names, dtype = (model.input_name, model.second_input), np.dtype(model.input_dtype)
            x = {name: half.astype(np.uint8).view(dtype) for name, half in zip(names, halves, strict=True)}
            values = resumed(model, 0, of_codes(graph.input.encoding, codes))
        else:
            given = self._given(codes)
            codes = reference.encode_input(graph, given)
            x = {s.name: own for s, own in zip(model.inputs, reference.parts_of(model.inputs, given), strict=True)}
            x, values = x or {model.input_name: given}, interpret(model, given)
        last = reference.run_output(graph, codes)
        if model.outputs:
            shapes = {one.name: (-1, *one.shape) for one in model.outputs}
            return values, x, {n: y.reshape(shapes[n]) for n, y in reference.named_outputs(graph, last).items()}
        return values, x, {model.output_name: reference.decode_output(graph, last).reshape(values[-1].value.shape)}

    def _given(self, codes: Array) -> Array:
        """Numbers for the file, about where codes lie."""
        model, graph = self.model, self.graph
        near = model_inputs(model, graph, codes)
        if not graph.inputs:
            return _limited(between_codes(near, graph, 1))
        parts = []
        for number, own in enumerate(reference.each_input(model, near)):
            part = nearest_part(graph, number)
            parts.append(_limited(_between(own, part.encode, bool(part.steps), part.value, 1)))
        if not model.inputs:
            return parts[0]
        parts = [part.reshape(len(part), -1) for part in parts]
        return np.concatenate([part.astype(near.dtype) for part in parts], axis=1)

    def _ends(self, values: list[Tensor], results: dict[str, Array]) -> list[tuple[str, list[Array]]]:
        """Tensors to compare, in order: the name in the file, and what they may be here, (frames, *shape).

        Those behind quantizers, and behind what only the host computes.
        """
        steps, found = self.model.steps, []
        for node in self.file.nodes:
            outputs = [o for o in node.output if o]
            numbers = self.places.get(node.name, [])
            ends = any(isinstance(op := steps[n - 1].op, QUANTIZERS) or _is_host(op, node.op_type) for n in numbers)
            if len(outputs) == 1 and outputs[0] in self.file.computed and outputs[0] not in results and ends:
                found.append((outputs[0], [values[n].value for n in self._renamed(numbers[-1])]))
        return [*found, *((name, [own]) for name, own in self._in_order(results))]

    def _in_order(self, results: dict[str, Array]) -> list[tuple[str, Array]]:
        """The outputs, in the order of the nodes that make them."""
        made = [o for node in self.file.nodes for o in node.output]
        return [(name, results[name]) for name in made if name in results]

    def _renamed(self, number: int) -> list[int]:
        """The value, and those behind it that only rename or repeat its elements."""
        names = [number]
        for n, step in enumerate(self.model.steps, 1):
            if isinstance(step.op, Reshape | Transpose | Repeat) and step.inputs == (names[-1],):
                names.append(n)
        return names

    def _compare(self, target: str, wanted: list[Array]) -> None:
        """Holds a tensor in all frames. What cannot be held is noted, and taken from the Model."""
        piece = self.file.piece(target, self.own)
        verdict, name = self.verdict, self.file.makers[target].name
        try:
            self._check_meaning(piece)
            theirs = np.stack([self.file.run(piece, self._feeds(piece, frame)) for frame in range(verdict.frames)])
        except Unable as error:
            verdict.left[name] = str(error)
            self.own[target] = list(wanted[0])
            return
        shaped = [w for w in wanted if w.shape == theirs.shape]
        if not shaped and wanted[0].size == theirs.size:
            shaped = [wanted[0].reshape(theirs.shape)]
        if not shaped:
            verdict.left[name] = f"its shape {list(theirs.shape[1:])} is {list(wanted[0].shape[1:])} in the Model"
            return
        ours = next((w for w in shaped if same(w, theirs)), shaped[0])
        self.own[target] = list(ours.astype(theirs.dtype))
        if not same(ours, theirs) and (host := self._of_host(piece)):
            verdict.left[name] = f"{host} on the host, which rounds otherwise"
            return
        verdict.compared += 1
        verdict.elements += theirs.size
        for frame in range(verdict.frames):
            if not same(ours[frame], theirs[frame]):
                self._explain(piece, frame, ours[frame], theirs[frame])

    def _feeds(self, piece: Piece, frame: int) -> dict[str, Array]:
        return {name: self.own[name][frame] for name in piece.sources}

    def _of_host(self, piece: Piece) -> str:
        """An operator in the piece that only the host computes, "" if there is none."""
        found = [op.op_type for op in self._ops(piece) if isinstance(op, HostOp)]
        return found[0] if found else ""

    def _ops(self, piece: Piece) -> list[Op]:
        """What the Model has for the nodes of a piece."""
        return [self.model.steps[n - 1].op for node in piece.nodes for n in self.places.get(node.name, ())]

    def _check_meaning(self, piece: Piece) -> None:
        """Raises Unable where the numeric contract takes the meaning of a piece from elsewhere."""
        if any(
            isinstance(op, FixedAdd) or (isinstance(op, Pair) and op.kind is PairOp.FIXED) for op in self._ops(piece)
        ):
            raise Unable("a sum in fixed point")
        fused = any(n.op_type == "DequantizeLinear" and n.name not in self.places for n in piece.nodes)
        if fused and self.file.executor != "onnxruntime" and piece.nodes[-1].op_type == "QuantizeLinear":
            raise Unable("an integer layer as onnxruntime has it")

    def _explain(self, piece: Piece, frame: int, ours: Array, theirs: Array) -> None:
        """Counts the elements of a frame that differ, by the sort of their explanation."""
        verdict, found = self.verdict, None
        try:
            found = Explained(self.file, piece, self._feeds(piece, frame), ours, theirs)
            why = found.why
        except Exception as error:  # an explanation that fails, in whatever way, is none
            why = f"it cannot be recomputed: {one_line(error)}"
        for place in np.argwhere((ours != theirs) & ~((ours != ours) & (theirs != theirs))):
            index = tuple(int(i) for i in place)
            sort = "unexplained" if found is None or why else found.sort(index)
            if sort == "unexplained":
                verdict.unexplained += 1
            else:
                verdict.explained[sort] = verdict.explained.get(sort, 0) + 1
            kept = verdict.cases.setdefault(sort, [])
            if len(kept) < _SHOWN:
                numbers = found.numbers(index) if found is not None else ("", "")
                name = self.file.makers[piece.target].name
                text = why or SORTS.get(sort, "the same nodes one by one give another value")
                kept.append(Case(name, frame, index, str(ours[index]), str(theirs[index]), text, *numbers))
