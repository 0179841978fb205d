"""Explains why a runtime gives another value for a piece of a file, or finds that nothing explains it.

A difference is explained if two conditions hold:

- The runtime's nodes give our values for the whole frame, on the runtime's own inputs, if sums are exact and functions
  are rounded once. Integers and scales are read from the file; a sum is a fraction that is rounded once; everything
  else runs in the executor.
- The runtime's own sums and functions are no farther from the exact ones than float32 operations in any order can be.

The difference then comes from operators whose definition leaves the order of float operations, or the last place, open.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import onnx

from hlsgen.frontend.domains import ONNX
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import exact_attention, exact_pools, exact_softmax, exact_values, host_rounding
from hlsgen.simulation import exact_nodes as exact
from hlsgen.simulation.exact_nodes import Rounding
from hlsgen.simulation.exact_values import Known, all_equal
from hlsgen.simulation.file_pieces import ExecutedFile, Piece
from hlsgen.simulation.oracles import Unable, run_node

#: Reasons for explained differences, by the kind of rounding.
REASONS = {
    "sum": "float products added in another order",
    "bias": "bias added in another order",
    "tensors": "sum of tensors rounded more than once",
    "function": "last place of {}",
}
#: Ways to add two tensors: by the numeric contract, in the order of the file, exactly. The first differs from the
#: others if a tensor is on a grid that its values do not show.
_ADDITIONS = (None, False, True)
#: Operators whose output differences are differences of codes.
_TO_CODES = frozenset(["Quant", "IntQuant", "QuantizeLinear", "BipolarQuant", "MultiThreshold", "Trunc", "FloatQuant"])


class Explanation:
    """Computes a piece for one frame again: with the runtime's sums, and with exact ones.

    trace: the tensors of the run. ours, theirs: arrays of the target's shape that differ. why: the reason why that is
    not
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
        """Sets `why`."""
        file, piece = self.file, self.piece
        self.alone = file.walk(piece, self.trace)
        for self.is_float, adds in product((False, True), _ADDITIONS):
            self.roundings: list[Rounding] = []
            self.contract = self._by_contract({name: self.trace[name] for name in piece.sources}, adds)
            exact_value = self.contract[piece.target].value
            if all_equal(exact_value.astype(ours.dtype).reshape(ours.shape), ours):
                break
        else:
            index = tuple(np.argwhere(exact_value.reshape(ours.shape) != ours)[0])
            place = [int(i) for i in index]
            self.why = f"the file's nodes give {exact_value.reshape(ours.shape)[index]} at {place} even with exact sums"
            return
        self._check_roundings()
        if not self.why and not any(r.differs for r in self.roundings):
            self.why = "none of its sums and functions may be rounded differently"

    def _check_roundings(self) -> None:
        """Sets `why` if the runtime's own sums and functions are farther from the exact ones than rounding allows."""
        too_far = next((r for r in self.roundings if not r.is_within_reach), None)
        if too_far is not None:
            gap = np.abs(too_far.executor.astype(np.float64) - too_far.contract.astype(np.float64)) - too_far.reach
            index = np.unravel_index(int(np.argmax(gap)), gap.shape)
            self.why = (
                f"its {too_far.node} gives {too_far.executor[index]} instead of {too_far.contract[index]}; "
                f"rounding explains at most {too_far.reach[index]:.3g}"
            )

    def reason(self, index: tuple[int, ...]) -> str:
        """The reason why an element differs, in words."""
        differing = [r for r in self.roundings if r.differs]
        texts = [REASONS[r.kind].format(r.operator) for r in differing]
        return " and ".join(sorted(set(texts)))

    def numbers(self, index: tuple[int, ...]) -> tuple[str, str]:
        """The exact number before the quantizer, and the executor's, in units of codes; "" if there is none."""
        if self.piece.nodes[-1].op_type not in _TO_CODES:
            return "", ""
        x = self.alone.get(self.piece.nodes[-1].input[0])
        is_finite = x is not None and x.shape == self.theirs.shape and np.isfinite(x[index])
        rounded = self._in_codes(index, Fraction(float(x[index]))) if x is not None and is_finite else None
        exact_number = self._exact_argument(index)
        return ("" if exact_number is None else str(exact_number), "" if rounded is None else str(float(rounded)))

    def _exact_argument(self, index: tuple[int, ...]) -> Fraction | None:
        """The input of the last node: the exact sum if a sum comes directly before it, else the contract's float."""
        name = self.piece.nodes[-1].input[0]
        argument = self.contract.get(name)
        if argument is None or argument.value.shape != self.theirs.shape or not np.isfinite(argument.value[index]):
            return None
        maker = self.file.producers.get(name)
        sums = [r.number(index) for r in self.roundings if maker is not None and r.node == maker.name]
        number = sums[0] if sums and sums[0] is not None else Fraction(float(argument.value[index]))
        return self._in_codes(index, number)

    def _in_codes(self, index: tuple[int, ...], x: Fraction) -> Fraction:
        """x / scale + zero point of the last node at a place; x if the node has neither."""
        node, constants, shape = self.piece.nodes[-1], self.file.constants, self.theirs.shape
        if node.op_type not in ("Quant", "IntQuant", "QuantizeLinear"):
            return x
        scale, zero = constants[node.input[1]], np.zeros(())
        if node.op_type == "QuantizeLinear" and scale.size > 1:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % len(shape)
            scale = scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        elif node.op_type != "QuantizeLinear":
            zero = constants[node.input[2]]
        element_scale, element_zero = (np.broadcast_to(a, shape)[index] for a in (scale, zero))
        return x / Fraction(float(element_scale)) + Fraction(float(element_zero))

    def _by_contract(self, feeds: Mapping[str, Array], adds: bool | None) -> dict[str, Known]:
        """All values of the piece, node by node, with exact sums. Records nodes that the executor rounds differently.

        Raises Unable.
        """
        file = self.file
        values: dict[str, Known] = {}
        for name, value in feeds.items():
            maker = file.producers.get(name)
            producer = onnx.NodeProto() if maker is None else maker
            values[name] = exact_values.quantized(producer, value, file.constants)
        for node in self.nodes:
            outputs = [o for o in node.output if o]
            arrays = file.arrays(node, {k: v.value for k, v in values.items()})
            inputs = [values.get(i, file.constants.get(i)) for i in node.input if i]
            known_inputs = [i for i in inputs if i is not None]
            executed = self._executed(node, arrays)
            normalization = file.normalizations.get(outputs[0])
            contract_result: Known | Array | None
            if normalization is not None and normalization.input[0] in values:
                node, data = normalization, values[normalization.input[0]]
                contract_result = self._rows(normalization, data, [data.value], executed[0])
            elif node.op_type == "Softmax" and node.domain in ONNX:
                shares = exact_softmax.softmax(file.executor, node, values, file.producers, file.constants, file.opsets)
                contract_result = shares and self._noted(node, "function", executed[0], *shares)
                if contract_result is not None:
                    contract_result = Known(contract_result, (exact_attention.in_multiples(contract_result),))
            elif exact_attention.is_attention(node):
                remaining_inputs = iter(inputs)
                attention_result = exact_attention.attention(
                    node, [next(remaining_inputs) if i else None for i in node.input]
                )
                if attention_result is None:
                    raise Unable(f"the inputs of {node.name} are not known exactly")
                contract_result = self._noted(node, "function", executed[0], *attention_result)
            else:
                contract_result = self._node(node, arrays, known_inputs, executed[0], adds)
            if isinstance(contract_result, Known):
                values[outputs[0]] = contract_result
                continue
            for number, (name, value) in enumerate(
                zip(outputs, executed if contract_result is None else [contract_result], strict=False)
            ):
                values[name] = exact_values.after_node(
                    file.executor, node, number, value, known_inputs, file.constants, file.opsets
                )
        return values

    def _executed(self, node: onnx.NodeProto, arrays: list[Array]) -> list[Array]:
        """The executor's outputs for these inputs; from the run itself if its inputs were the same."""
        outputs = [o for o in node.output if o]
        run_inputs = self.file.arrays(node, self.alone)
        if all(o in self.alone for o in outputs) and all(map(all_equal, arrays, run_inputs)):
            return [self.alone[o] for o in outputs]
        return run_node(self.file.executor, node, arrays, self.file.opsets)

    def _node(
        self,
        node: onnx.NodeProto,
        arrays: list[Array],
        inputs: list[Known | Array],
        executor_result: Array,
        adds: bool | None,
    ) -> Known | Array | None:
        """The result of a node that executors may round differently, or None for other nodes, whose result is
        `executor_result`."""
        file = self.file
        kind, floats = node.op_type, arrays[0].dtype.kind == "f"
        data = [i for i in inputs if isinstance(i, Known)]
        if kind in exact.LINEAR and floats:
            second = data[1] if len(data) == 2 else None
            linear_result = exact.linear(node, data[0], second, file.constants, file.grids, file.opsets)
            if linear_result is None:
                raise Unable(f"the inputs of {node.name} are not known exactly")
            reach = exact.linear_reach(file.executor, node, arrays, file.opsets)
            if kind == "MatMul" and any(exact_attention.are_rounded(d) for d in data):
                reach = reach + exact_attention.shares_reach(inputs)
            biased = len(node.input) > 2 and bool(node.input[2])
            self._noted(
                node, "bias" if biased else "sum", executor_result, linear_result[0].value, reach, linear_result[1]
            )
            return linear_result[0]
        if kind == exact.INTEGER_TO_FLOAT and self.is_float:
            value, sums, reach = exact.integer_to_float(node, arrays)
            biased = len(node.input) > 6 and bool(node.input[6])
            self._noted(node, "bias" if biased else "sum", executor_result, value, reach)
            return Known(value, sums, sums, plain=sums is not None)
        if kind in exact.POOLS and floats:
            average = exact.averaged(node, data[0], arrays[1:], file.executor, file.opsets)
            if average is None:
                return None
            positive = run_node(file.executor, node, [np.abs(arrays[0]), *arrays[1:]], file.opsets)[0]
            return self._noted(node, "sum", executor_result, average[0], exact.average_reach(positive, average[1]))
        if kind in exact_pools.OPERATORS:
            codes = exact_pools.average_of_codes(node, arrays, file.opsets)
            return codes and self._noted(node, "sum", executor_result, *codes)
        if kind in exact.ROUNDED_ONCE and floats:
            value = exact.function(node, arrays, file.opsets)
            return self._noted(
                node, "function", executor_result, value, exact.function_reach(node, executor_result, value)
            )
        if kind in exact.ROWS and floats:
            return self._rows(node, data[0], arrays, executor_result)
        if kind == "BatchNormalization" and node.domain in ONNX and len(arrays) == 5:
            return self._noted(node, "function", executor_result, *exact.normalized(node, arrays))
        if kind in ("Add", "Sub") and len(data) == 2 and executor_result.dtype == np.float32:
            total = exact_values.sum_of(data[0], data[1], 1 if kind == "Add" else -1, adds)
            if total is None:
                return None
            if not total.exact:
                return total.with_value(executor_result)
            terms = tuple((term.integers, term.scale) for term in total.terms)
            value = exact_values.rounded_sum(*terms)
            magnitude = sum((np.abs(term.integers * term.scale) for term in total.terms), start=np.float64(0))
            return total.with_value(
                self._noted(node, "tensors", executor_result, value, magnitude * len(terms) * 4 * 2.0**-24, terms)
            )
        return None

    def _rows(self, node: onnx.NodeProto, data: Known, arrays: list[Array], executor_result: Array) -> Array | None:
        """A normalization of rows, of one node or of several. Raises Unable."""
        normalized_rows = exact.rows(node, data, arrays, self.file.opsets.get("", 0))
        if normalized_rows is None:
            raise Unable(f"the inputs of {node.name} are not known exactly")
        return self._noted(node, "function", executor_result, *normalized_rows)

    def _noted(
        self,
        node: onnx.NodeProto,
        kind: str,
        executor_result: Array,
        contract: Array,
        reach: Array,
        terms: tuple[tuple[Array, ...], ...] = (),
    ) -> Array:
        """Records the executor's value; returns the contract's value."""
        if executor_result.shape != contract.shape:
            raise Unable(f"{node.name} has another shape")
        self.roundings.append(Rounding(node.name, kind, executor_result, contract, reach, terms, node.op_type))
        return contract


class HostExplanation(Explanation):
    """A piece whose last operator the host computes: our result and the runtime's must each be near the exact result.

    Our result has exact sums before the operator, the runtime's has its own.
    """

    def _compute(self, ours: Array) -> None:
        *self.nodes, last = self.piece.nodes
        self.operator = last.op_type
        self.alone = self.file.walk(self.piece, self.trace)
        for self.is_float, adds in product((False, True), _ADDITIONS):
            self.roundings: list[Rounding] = []
            values = self._by_contract({name: self.trace[name] for name in self.piece.sources}, adds)
            self.exact, our_places = self._too_far(last, {name: tensor.value for name, tensor in values.items()}, ours)
            if not len(our_places) or not self.nodes:
                break
        _, their_places = self._too_far(last, self.alone, self.theirs)
        places = [*our_places, *their_places]
        self.why = f"the exact result is {self.exact[tuple(places[0])]}" if places else ""
        if not self.why:
            self._check_roundings()

    def _too_far(self, node: onnx.NodeProto, values: Mapping[str, Array], result: Array) -> tuple[Array, Array]:
        """The exact result on these inputs, and the places where `result` is farther from it than rounding allows."""
        exact_value, reach = host_rounding.exact_result(node, self.file.arrays(node, values), self.file.opsets)
        gap = np.abs(result.astype(np.float64) - exact_value.reshape(result.shape))
        return exact_value.reshape(result.shape), np.argwhere(~(gap <= reach.reshape(result.shape)))

    def reason(self, index: tuple[int, ...]) -> str:
        """The reason why an element differs, in words."""
        texts = {REASONS[r.kind].format(r.operator) for r in self.roundings if r.differs}
        return " and ".join(sorted(texts | {REASONS["function"].format(self.operator)}))

    def numbers(self, index: tuple[int, ...]) -> tuple[str, str]:
        """The exact result, and the runtime's."""
        return str(self.exact[index]), str(self.theirs[index])
