"""Why a runtime gives another value than ours for a piece of a file, or that nothing explains it.

A difference is explained if

- the nodes that the runtime executes give our values, all of that frame, on the runtime's own inputs, with sums that
  are exact and functions that are rounded once: integers and scales are read from the file, a sum is a fraction that is
  rounded once, everything else runs in the executor; and
- the runtime's own sums and functions are no farther from the exact ones than float32 operations in any order can
  bring them.

So the difference is one of operators whose definition leaves the order of float operations, or the last place, open.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import onnx

from hlsgen.frontend.domains import ONNX
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import exact_attention, exact_softmax, exact_values, host_rounding
from hlsgen.simulation import exact_nodes as exact
from hlsgen.simulation.exact_nodes import Rounding
from hlsgen.simulation.exact_values import Known, same
from hlsgen.simulation.file_pieces import ExecutedFile, Piece
from hlsgen.simulation.oracles import Unable, run_node

#: Reasons of explained differences by the kind of rounding.
REASONS = {
    "sum": "float products added in another order",
    "bias": "bias added in another order",
    "tensors": "sum of tensors rounded more than once",
    "function": "last place of {}",
}
#: How two tensors may be added: as the contract says, in the order of the file, exactly. The first and the others
#: differ where a tensor is on a grid that its values do not show.
_ADDITIONS = (None, False, True)
#: Operators behind which a difference is one of codes.
_TO_CODES = frozenset(["Quant", "IntQuant", "QuantizeLinear", "BipolarQuant", "MultiThreshold", "Trunc", "FloatQuant"])


class Explained:
    """A piece of one frame once more: with the runtime's sums, and with exact ones.

    `trace`: the tensors of the run. `ours`, `theirs`: arrays of the target's shape that differ. `why`: why that is not
    explained, or "". Raises Unable if it cannot be computed.
    """

    def __init__(
        self, file: ExecutedFile, piece: Piece, trace: Mapping[str, Array], ours: Array, theirs: Array
    ) -> None:
        self.file, self.piece, self.trace, self.theirs = file, piece, trace, theirs
        self.why, self.nodes = "", piece.nodes
        with np.errstate(all="ignore"):
            self._compute(ours)

    def _compute(self, ours: Array) -> None:
        file, piece = self.file, self.piece
        self.alone = file.walk(piece, self.trace)
        for self.is_float, adds in product((False, True), _ADDITIONS):
            self.roundings: list[Rounding] = []
            self.contract = self._by_contract({name: self.trace[name] for name in piece.sources}, adds)
            got = self.contract[piece.target].value
            if same(got.astype(ours.dtype).reshape(ours.shape), ours):
                break
        else:
            at = tuple(np.argwhere(got.reshape(ours.shape) != ours)[0])
            place = [int(i) for i in at]
            self.why = f"also with exact sums the file's own nodes give {got.reshape(ours.shape)[at]} at {place}"
            return
        self._check_roundings()
        if not self.why and not any(r.differs for r in self.roundings):
            self.why = "no sum and no function of it is open in the order of its operations"

    def _check_roundings(self) -> None:
        """Sets `why` where the runtime's own sums and functions are farther from the exact ones than rounding reaches."""
        far = next((r for r in self.roundings if not r.within), None)
        if far is not None:
            gap = np.abs(far.executor.astype(np.float64) - far.contract.astype(np.float64)) - far.reach
            at = np.unravel_index(int(np.argmax(gap)), gap.shape)
            self.why = (
                f"its {far.node} gives {far.executor[at]} in place of {far.contract[at]}, farther than rounding "
                f"reaches ({far.reach[at]:.3g})"
            )

    def reason(self, index: tuple[int, ...]) -> str:
        """Why an element differs, in words."""
        differing = [r for r in self.roundings if r.differs]
        texts = [REASONS[r.kind].format(r.operator) for r in differing]
        return " and ".join(sorted(set(texts)))

    def numbers(self, index: tuple[int, ...]) -> tuple[str, str]:
        """The exact number in front of the quantizer, and the executor's, in units of codes; "" without one."""
        if self.piece.nodes[-1].op_type not in _TO_CODES:
            return "", ""
        x = self.alone.get(self.piece.nodes[-1].input[0])
        known = x is not None and x.shape == self.theirs.shape and np.isfinite(x[index])
        rounded = self._in_codes(index, Fraction(float(x[index]))) if x is not None and known else None
        exact_one = self._exact_argument(index)
        return ("" if exact_one is None else str(exact_one), "" if rounded is None else str(float(rounded)))

    def _exact_argument(self, index: tuple[int, ...]) -> Fraction | None:
        """In front of the last node: the exact sum, where that comes directly before it, else the contract's float."""
        name = self.piece.nodes[-1].input[0]
        before = self.contract.get(name)
        if before is None or before.value.shape != self.theirs.shape or not np.isfinite(before.value[index]):
            return None
        maker = self.file.makers.get(name)
        sums = [r.number(index) for r in self.roundings if maker is not None and r.node == maker.name]
        number = sums[0] if sums and sums[0] is not None else Fraction(float(before.value[index]))
        return self._in_codes(index, number)

    def _in_codes(self, index: tuple[int, ...], x: Fraction) -> Fraction:
        """x / scale + zero point at a place, of the last node; x of nodes without them."""
        node, constants, shape = self.piece.nodes[-1], self.file.constants, self.theirs.shape
        if node.op_type not in ("Quant", "IntQuant", "QuantizeLinear"):
            return x
        scale, zero = constants[node.input[1]], np.zeros(())
        if node.op_type == "QuantizeLinear" and scale.size > 1:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % len(shape)
            scale = scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        elif node.op_type != "QuantizeLinear":
            zero = constants[node.input[2]]
        at_scale, at_zero = (np.broadcast_to(a, shape)[index] for a in (scale, zero))
        return x / Fraction(float(at_scale)) + Fraction(float(at_zero))

    def _by_contract(self, feeds: Mapping[str, Array], adds: bool | None) -> dict[str, Known]:
        """Node by node, with sums that are exact. Notes what the executor rounds otherwise. Raises Unable."""
        file = self.file
        values: dict[str, Known] = {}
        for name, value in feeds.items():
            maker = file.makers.get(name)
            none = onnx.NodeProto() if maker is None else maker
            values[name] = exact_values.quantized(none, value, file.constants)
        for node in self.nodes:
            outputs = [o for o in node.output if o]
            arrays = file.arrays(node, {k: v.value for k, v in values.items()})
            inputs = [values.get(i, file.constants.get(i)) for i in node.input if i]
            given = [i for i in inputs if i is not None]
            found = self._executed(node, arrays)
            whole = file.normalizations.get(outputs[0])
            result: Known | Array | None
            if whole is not None and whole.input[0] in values:
                node, known = whole, values[whole.input[0]]
                result = self._rows(whole, known, [known.value], found[0])
            elif node.op_type == "Softmax" and node.domain in ONNX:
                shares = exact_softmax.softmax(node, values, file.makers, file.constants, file.opsets)
                result = shares and self._noted(node, "function", found[0], *shares)
                if result is not None:
                    result = Known(result, (exact_attention.in_multiples(result),))
            elif exact_attention.is_attention(node):
                places = iter(inputs)
                own = exact_attention.attention(node, [next(places) if i else None for i in node.input])
                if own is None:
                    raise Unable(f"the numbers in front of {node.name} are not known exactly")
                result = self._noted(node, "function", found[0], *own)
            else:
                result = self._node(node, arrays, given, found[0], adds)
            if isinstance(result, Known):
                values[outputs[0]] = result
                continue
            for number, (name, value) in enumerate(zip(outputs, found if result is None else [result], strict=False)):
                values[name] = exact_values.behind(
                    file.executor, node, number, value, given, file.constants, file.opsets
                )
        return values

    def _executed(self, node: onnx.NodeProto, arrays: list[Array]) -> list[Array]:
        """What the executor makes of these inputs: where they are those of the run, what it did give there."""
        outputs = [o for o in node.output if o]
        given = self.file.arrays(node, self.alone)
        if all(o in self.alone for o in outputs) and all(map(same, arrays, given)):
            return [self.alone[o] for o in outputs]
        return run_node(self.file.executor, node, arrays, self.file.opsets)

    def _node(
        self, node: onnx.NodeProto, arrays: list[Array], inputs: list[Known | Array], own: Array, adds: bool | None
    ) -> Known | Array | None:  # fmt: skip
        """The result of a node that executors round otherwise; None for the others, which give `own`."""
        file = self.file
        kind, floats = node.op_type, arrays[0].dtype.kind == "f"
        data = [i for i in inputs if isinstance(i, Known)]
        if kind in exact.LINEAR and floats:
            second = data[1] if len(data) == 2 else None
            made = exact.linear(node, data[0], second, file.constants, file.grids, file.opsets)
            if made is None:
                raise Unable(f"the numbers in front of {node.name} are not known exactly")
            reach = exact.linear_reach(file.executor, node, arrays, file.opsets)
            if kind == "MatMul" and any(exact_attention.are_rounded(d) for d in data):
                reach = reach + exact_attention.shares_reach(inputs)
            biased = len(node.input) > 2 and bool(node.input[2])
            self._noted(node, "bias" if biased else "sum", own, made[0].value, reach, made[1])
            return made[0]
        if kind == exact.INTEGER_TO_FLOAT and self.is_float:
            value, sums, reach = exact.integer_to_float(node, arrays)
            biased = len(node.input) > 6 and bool(node.input[6])
            self._noted(node, "bias" if biased else "sum", own, value, reach)
            return Known(value, sums, sums, plain=sums is not None)
        if kind in exact.POOLS and floats:
            found = exact.averaged(node, data[0], arrays[1:], file.executor, file.opsets)
            if found is None:
                return None
            positive = run_node(file.executor, node, [np.abs(arrays[0]), *arrays[1:]], file.opsets)[0]
            return self._noted(node, "sum", own, found[0], exact.average_reach(positive, found[1]))
        if kind in exact.ROUNDED_ONCE and floats:
            value = exact.function(node, arrays, file.opsets)
            return self._noted(node, "function", own, value, exact.function_reach(node, own, value))
        if kind in exact.ROWS and floats:
            return self._rows(node, data[0], arrays, own)
        if kind == "BatchNormalization" and node.domain in ONNX and len(arrays) == 5:
            return self._noted(node, "function", own, *exact.normalized(node, arrays))
        if kind in ("Add", "Sub") and len(data) == 2 and own.dtype == np.float32:
            total = exact_values.sum_of(data[0], data[1], 1 if kind == "Add" else -1, adds)
            if total is None:
                return None
            if not total.exact:
                return total.known(own)
            terms = tuple((term.whole, term.scale) for term in total.terms)
            value = exact_values.once(*terms)
            magnitude = sum((np.abs(term.whole * term.scale) for term in total.terms), start=np.float64(0))
            return total.known(self._noted(node, "tensors", own, value, magnitude * len(terms) * 4 * 2.0**-24, terms))
        return None

    def _rows(self, node: onnx.NodeProto, data: Known, arrays: list[Array], own: Array) -> Array | None:
        """A normalization of rows, of one node or put together of several. Raises Unable."""
        found = exact.rows(node, data, arrays, self.file.opsets.get("", 0))
        if found is None:
            raise Unable(f"the numbers in front of {node.name} are not known exactly")
        return self._noted(node, "function", own, *found)

    def _noted(
        self, node: onnx.NodeProto, kind: str, own: Array, contract: Array, reach: Array,
        terms: tuple[tuple[Array, ...], ...] = (),
    ) -> Array:  # fmt: skip
        """The contract's value, after a note of the executor's."""
        if own.shape != contract.shape:
            raise Unable(f"{node.name} has another shape")
        self.roundings.append(Rounding(node.name, kind, own, contract, reach, terms, node.op_type))
        return contract


class OnHost(Explained):
    """A piece whose last operator the host computes: its results, ours and the runtime's, are each near the exact one.

    Ours is that of exact sums in front of it, the runtime's that of its own.
    """

    def _compute(self, ours: Array) -> None:
        *self.nodes, last = self.piece.nodes
        self.operator = last.op_type
        self.alone = self.file.walk(self.piece, self.trace)
        for self.is_float, adds in product((False, True), _ADDITIONS):
            self.roundings: list[Rounding] = []
            values = self._by_contract({name: self.trace[name] for name in self.piece.sources}, adds)
            self.exact, far = self._far(last, {name: known.value for name, known in values.items()}, ours)
            if not len(far) or not self.nodes:
                break
        _, far_theirs = self._far(last, self.alone, self.theirs)
        places = [*far, *far_theirs]
        self.why = f"the exact result is {self.exact[tuple(places[0])]}" if places else ""
        if not self.why:
            self._check_roundings()

    def _far(self, node: onnx.NodeProto, values: Mapping[str, Array], result: Array) -> tuple[Array, Array]:
        """The exact result on these inputs, and the places where `result` is farther from it than rounding reaches."""
        exact_one, reach = host_rounding.exact_result(node, self.file.arrays(node, values), self.file.opsets)
        gap = np.abs(result.astype(np.float64) - exact_one.reshape(result.shape))
        return exact_one.reshape(result.shape), np.argwhere(~(gap <= reach.reshape(result.shape)))

    def reason(self, index: tuple[int, ...]) -> str:
        texts = {REASONS[r.kind].format(r.operator) for r in self.roundings if r.differs}
        return " and ".join(sorted(texts | {REASONS["function"].format(self.operator)}))

    def numbers(self, index: tuple[int, ...]) -> tuple[str, str]:
        """The exact result, and the runtime's."""
        return str(self.exact[index]), str(self.theirs[index])
