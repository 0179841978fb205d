"""LUTs of a graph of adders with its registers, from the bits of its sums."""

from __future__ import annotations

from functools import lru_cache

from hlsgen.adder_graph import Adder, AdderGraph, Pipeline, width
from hlsgen.adder_graph.graph import NOTHING, Output, carry_place, grows, lowest
from hlsgen.verilog.adder_text import operator_of, output_forms
from hlsgen.verilog.mapped_luts import MINUS, PLUS, PLUS_NOT, Bit, MappedLuts, Value, inverse


@lru_cache(maxsize=256)
def adder_luts(pipeline: Pipeline, x_bits: int, family: str, *, bare: bool) -> dict[str, float]:
    """LUTs by part, see `mapped_luts`. `x_bits`: of a code. `bare`: see `adder_text.module_text`."""
    count = _Count(pipeline, x_bits, family, {} if bare else output_forms(pipeline.graph))
    for n, adder in enumerate(pipeline.graph.adders, len(pipeline.graph.inputs)):
        count.bits.append(count.sum_of(n, lowest(adder)))
    count.hold()
    if not bare:
        count.invert_outputs()
    return count.luts.parts


class _Count:
    """The bits of the nodes so far, the lowest first, and their LUTs. `forms`: see `output_forms`."""

    def __init__(self, pipeline: Pipeline, x_bits: int, family: str, forms: dict[int, bool]) -> None:
        self.pipeline, self.forms = pipeline, forms
        self.luts = MappedLuts(family)
        self.bits: list[list[Value]] = []
        for n, (low, high) in enumerate(self.graph.inputs):
            code = [Bit((n, k)) for k in range(min(x_bits, width(low, high)))]
            # The module inverts the highest bit of a code that can be negative.
            self.bits.append([*code[:-1], Bit(code[-1].name, inverted=low < 0)])

    @property
    def graph(self) -> AdderGraph:
        return self.pipeline.graph

    def sum_of(self, n: int, adder: Adder) -> list[Value]:
        """The bits of a sum; counts its LUTs. `adder`: with the unshifted term first."""
        ends, cycle = self.graph.intervals, self.pipeline.computed[n]
        low, bits = carry_place(adder, ends), width(*ends[n])
        a, b, c = ((node, shift, cycle) for node, shift in ((adder.a, adder.i), (adder.b, adder.j), (adder.c, adder.k)))
        below = [self._bit(adder.a, k, cycle) for k in range(low)]
        operator = operator_of(adder)
        if grows(adder, ends, ends[n]):
            first = [*self._moved(*a, bits - 1), int(operator == MINUS)][low:]
            second = [*self._moved(*b, bits - 1), int(operator == PLUS_NOT)][low:]
        else:
            is_moved = ends[n][0] < 0 and n not in self.forms
            first = (self._moved if is_moved else self._plain)(*a, bits)[low:]
            second = self._plain(*b, bits)[low:]
        if adder.c == NOTHING:
            return below + self.luts.sum(n, first, second, operator)
        columns = list(zip(first, second, self._plain(*c, bits)[low:], strict=True))
        parity = [self.luts.function((n, k, "parity"), column) for k, column in enumerate(columns)]
        majority = [
            self.luts.function((n, k, "majority"), column) if column.count(0) < 2 else 0
            for k, column in enumerate(columns[:-1])
        ]
        carry = int((adder.minus == (adder.extra == 0)) or bool(self.forms.get(n)))
        return below + self.luts.sum(n, [carry, *majority], parity, PLUS)

    def _bit(self, node: int, place: int, cycle: int) -> Value:
        """A bit of a node as it is in this cycle."""
        value = self.bits[node][place]
        registered = self.pipeline.computed[node] < cycle and not isinstance(value, int)
        return Bit((node, place, "register")) if registered else value

    def _plain(self, node: int, shift: int, cycle: int, bits: int) -> list[Value]:
        """A shifted node in two's complement. A node that can be negative has its highest bit inverted."""
        if node == NOTHING:
            return [0] * bits
        stored = [self._bit(node, k, cycle) for k in range(len(self.bits[node]))]
        if self.graph.intervals[node][0] < 0:
            stored += [inverse(stored.pop())] * (bits - shift - len(stored) + 1)
        return ([0] * shift + stored + [0] * bits)[:bits]

    def _moved(self, node: int, shift: int, cycle: int, bits: int) -> list[Value]:
        """A shifted node plus half the range of `bits`."""
        plain = self._plain(node, shift, cycle, bits)
        return [*plain[:-1], inverse(plain[-1])]

    def hold(self) -> None:
        """LUTs of the bits that registers and outputs hold."""
        outputs = {output.node for output in self.graph.outputs}
        spans = zip(self.bits, self.pipeline.computed, self.pipeline.needed, strict=True)
        for n, (bits, computed, needed) in enumerate(spans):
            if needed > computed or n in outputs:
                for bit in bits:
                    self.luts.build(bit, as_is=needed > computed)

    def invert_outputs(self) -> None:
        """Inverters of the outputs. Larger LUTs of the consumer invert themselves."""
        if not self.luts.cells.takes_function:
            self.luts.inverters += sum(map(self._inverted_bits, self.graph.outputs))

    def _inverted_bits(self, output: Output) -> int:
        if output.node == NOTHING or output.node in self.forms:
            return 0
        negative = self.graph.intervals[output.node][0] < 0
        return len(self.bits[output.node]) - negative if output.inverted else int(negative)
