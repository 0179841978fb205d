"""Prints a graph of adders with its registers as a Verilog module between two streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlsgen.adder_graph import Adder, AdderGraph, Pipeline, width
from hlsgen.adder_graph.graph import NOTHING, carry_place, grows, lowest
from hlsgen.verilog.mapped_luts import MINUS, MINUS_NOT, PLUS, PLUS_NOT
from hlsgen.verilog.stage_text import MOST_WAITS, between_streams, clocked_lines


def module_text(
    name: str, pipeline: Pipeline, x_bits: int, y_bits: int, *, joined: bool = False, bare: bool = False
) -> str:
    """The module `name`: codes of `x_bits` in, sums of `y_bits` out.

    joined: its stages advance with the consumer's. bare: the consumer inverts the bits of `inverted_bits` itself.
    """
    graph = pipeline.graph
    columns, rows = len(graph.inputs), len(graph.outputs)
    head = [
        f"// {name}: product of a constant matrix, {rows} rows by {columns} columns.",
        "//",
        f"// Purpose     sums of codes times constant weights, in {len(graph.adders)} adders that rows share.",
        "//             nK_C is code or sum K, C cycles after its codes entered. A sum that can be negative is stored",
        "//             with its highest bit inverted, so that this bit is a carry. A row that is a sum of three terms",
        "//             is stored in two's complement.",
        "//             a + ~b is 1 less than a - b, but needs no carry: in each row such constants add up to 0.",
    ]
    contract = "every sum has the bits that the ranges of the codes and the weights need. Written by"
    lines = _Text(pipeline, x_bits).lines(y_bits, bare=bare)
    bits = columns * x_bits, rows * y_bits
    return between_streams(name, head, contract, pipeline.latency, bits, lines, joined=joined)


def output_forms(graph: AdderGraph) -> dict[int, bool]:
    """Sums of three terms that can be negative and are one row, nothing else; True if inverted in that row.

    They are computed in the row's own form, in two's complement, so that no inverter follows them.
    """
    first = len(graph.inputs)
    uses = Counter([node for adder in graph.adders for node, _ in adder.terms])
    uses.update(output.node for output in graph.outputs)
    inverted_by_row = {output.node: output.inverted for output in graph.outputs if output.node >= first}
    return {
        node: inverted
        for node, inverted in inverted_by_row.items()
        if uses[node] == 1 and graph.intervals[node][0] < -1 and graph.adders[node - first].c != NOTHING
    }


def operator_of(adder: Adder) -> str:
    """The operator between two terms.

    Only a difference has a carry: a + b + 1 is a - ~b, and a - b - 1 is a + ~b.
    """
    if adder.extra:
        return PLUS_NOT if adder.minus else MINUS_NOT
    return MINUS if adder.minus else PLUS


class _Text:
    """Lines of nodes, registers and outputs."""

    def __init__(self, pipeline: Pipeline, x_bits: int) -> None:
        self.pipeline, self.x_bits = pipeline, x_bits
        graph = pipeline.graph
        self.widths = [
            min(x_bits, width(*ends)) if n < len(graph.inputs) else width(*ends)
            for n, ends in enumerate(graph.intervals)
        ]
        #: For each bit of a node, the number of registers that it has passed in series.
        self.waits = {n: [0] * self.widths[n] for n in range(len(graph.inputs))}

    def lines(self, y_bits: int, *, bare: bool) -> Iterator[str]:
        pipeline, graph = self.pipeline, self.pipeline.graph
        first, kept_sums = len(graph.inputs), self._unmerged_sums()
        rows = dict[int, bool]() if bare else output_forms(graph)
        for n in range(first):
            if pipeline.needed[n] >= 0:
                yield f"    wire [{self.widths[n] - 1}:0] n{n}_0 = {self._code(n)};"
        for cycle in range(pipeline.latency + 1):
            if cycle:
                yield from self._registers(cycle)
            for n, adder in enumerate(graph.adders, first):
                if pipeline.computed[n] == cycle:
                    yield from self._node(n, adder, cycle, keep=n in kept_sums, row=rows.get(n))
        for row, (node, shift, inverted) in enumerate(graph.outputs):
            in_output_form = bare or node in rows
            value = _concatenation(self._plain(node, pipeline.latency, shift, y_bits, 0, "" if in_output_form else "~"))
            invert = "~" if inverted and not in_output_form else ""
            yield f"    assign m_data[{(row + 1) * y_bits - 1}:{row * y_bits}] = {invert}{value};"
        truncated = [node for node, shift, _ in graph.outputs if node != NOTHING and self.widths[node] + shift > y_bits]
        if truncated:
            names = ", ".join(f"n{node}_{pipeline.latency}" for node in dict.fromkeys(truncated))
            yield f"    wire unused_sums = &{{1'b0, {names}}};"

    def _unmerged_sums(self) -> set[int]:
        """Sums of three terms that a sum of two consumes in the same cycle: Yosys would merge them into one sum."""
        graph, cycles = self.pipeline.graph, self.pipeline.computed
        first, kept_sums = len(graph.inputs), set[int]()
        for n, adder in enumerate(graph.adders, first):
            if adder.c == NOTHING:
                same_cycle_terms = [node for node, _ in adder.terms if node >= first and cycles[node] == cycles[n]]
                kept_sums.update(node for node in same_cycle_terms if graph.adders[node - first].c != NOTHING)
        return kept_sums

    def _code(self, n: int) -> str:
        """The code of column n in the bits of its range, its top bit inverted if it can be negative."""
        low, top = n * self.x_bits, n * self.x_bits + self.widths[n] - 1
        if self.pipeline.graph.inputs[n][0] >= 0:
            return _slice("s_data", top, low)
        low_bits = [_slice("s_data", top - 1, low)] if top > low else []
        return _concatenation([f"~s_data[{top}]", *low_bits])

    def _registers(self, cycle: int) -> Iterator[str]:
        """The registers that hold values in this cycle."""
        cycles, needed = self.pipeline.computed, self.pipeline.needed
        registered = [n for n in range(len(cycles)) if cycles[n] < cycle <= needed[n]]
        reset = []
        for n in registered:
            self.waits[n] = [waits + 1 for waits in self.waits[n]]
            if max(self.waits[n]) > MOST_WAITS:
                self.waits[n] = [0] * self.widths[n]
                reset.append(n)
        yield from clocked_lines({n: self.widths[n] for n in registered}, reset, cycle)

    def _node(self, n: int, adder: Adder, cycle: int, *, keep: bool, row: bool | None) -> Iterator[str]:
        """The wire of a sum. `row`: the sum's entry in `output_forms`, if any."""
        name, bits = f"n{n}_{cycle}", self.widths[n]
        adder = lowest(adder)
        low = carry_place(adder, self.pipeline.graph.intervals)
        self.waits[n] = [*self.waits[adder.a][:low], *[0] * (bits - low)] if low else [0] * bits
        below = _slice(f"n{adder.a}_{cycle}", low - 1, 0)
        wire = f"    {'(* keep *) ' if keep else ''}wire [{bits - 1}:0] {name}"
        terms = self._terms(n, adder, cycle, low, moved=row is None)
        if adder.c != NOTHING:
            signs = ["~" if bool(row) != (k == 1 and adder.minus) else "" for k in range(3)]
            first, second, third = (f"{sign}{term}" for sign, term in zip(signs, terms, strict=True))
            carry = int(adder.minus == (adder.extra == 0))
            carry, below = (2 - carry, f"~{below}") if row else (carry, below)
            yield f"{wire};"
            yield f"    hg_add3 #(.WIDTH({bits - low}), .CARRY({carry})) n{n} ("
            sum_name = _slice(name, bits - 1, low) if low else name
            yield f"        .a({first}), .b({second}), .c({third}), .sum({sum_name})"
            yield "    );"
            if low:
                yield f"    assign {_slice(name, low - 1, 0)} = {below};"
            return
        total = operator_of(adder).join(terms)
        total = f"{{({total}), {below}}}" if low else total
        yield f"{wire} = {total};"

    def _terms(self, n: int, adder: Adder, cycle: int, low: int, *, moved: bool) -> list[str]:
        """The numbers that are added, without their `low` lowest bits.

        `moved`: the sum is moved up by half its range if it can be negative.
        """
        ends, bits = self.pipeline.graph.intervals, self.widths[n]
        first_operand, second_operand = (adder.a, cycle, adder.i), (adder.b, cycle, adder.j)
        if grows(adder, ends, ends[n]):
            # Numbers with one bit less, each moved up by half their range: the highest bit is the carry.
            first = [f"1'h{int(operator_of(adder) == MINUS)}", *self._moved(*first_operand, bits - 1, low)]
            second = [f"1'h{int(operator_of(adder) == PLUS_NOT)}", *self._moved(*second_operand, bits - 1, low)]
        else:
            first = (self._moved if moved and ends[n][0] < 0 else self._plain)(*first_operand, bits, low)
            second = self._plain(*second_operand, bits, low)
        third = [] if adder.c == NOTHING else [self._plain(adder.c, cycle, adder.k, bits, low)]
        return [_concatenation(term) for term in (first, second, *third)]

    def _plain(self, node: int, cycle: int, shift: int, bits: int, low: int, inverter: str = "~") -> list[str]:
        """Bits low..bits - 1 of a shifted node, in two's complement: parts, the highest first.

        inverter: printed before a highest bit that is stored inverted.
        """
        if node == NOTHING:
            return [f"{bits}'h0"]
        name, width = f"n{node}_{cycle}", self.widths[node]
        above = bits - shift - width
        # The sum of an output fits, although the range of its node might not.
        if above < 0:
            return self._low_part(name, bits - shift, shift, low)
        if self._signed(node) and (above or inverter):
            head = _repeated(f"{inverter}{name}[{width - 1}]", above + 1)
            return [head, *self._low_part(name, width - 1, shift, low)]
        return [*([f"{above}'h0"] if above else []), *self._low_part(name, width, shift, low)]

    def _moved(self, node: int, cycle: int, shift: int, bits: int, low: int) -> list[str]:
        """Bits low..bits - 1 of a shifted node plus half the range of `bits`: parts, the highest first."""
        if node == NOTHING:
            return [f"{bits}'h{1 << (bits - 1):x}"]
        name, width = f"n{node}_{cycle}", self.widths[node]
        above = bits - shift - width
        top = f"{name}[{width - 1}]"
        if not self._signed(node):
            # Computed modulo 2 to the power of `bits`, as the sum fits.
            if not above:
                return [f"~{top}", *self._low_part(name, width - 1, shift, low)]
            return [f"{above}'h{1 << (above - 1):x}", *self._low_part(name, width, shift, low)]
        if not above:
            return self._low_part(name, width, shift, low)
        return [top, _repeated(f"~{top}", above), *self._low_part(name, width - 1, shift, low)]

    def _low_part(self, name: str, count: int, shift: int, low: int) -> list[str]:
        """The low `count` bits of a wire and the zeros of its shift, without the `low` lowest bits."""
        zeros, start = max(0, shift - low), max(0, low - shift)
        bits = [_slice(name, count - 1, start)] if count > start else []
        return [*bits, *([f"{zeros}'h0"] if zeros else [])]

    def _signed(self, node: int) -> bool:
        return self.pipeline.graph.intervals[node][0] < 0


def _slice(name: str, high: int, low: int) -> str:
    return f"{name}[{high}:{low}]" if high > low else f"{name}[{high}]"


def _repeated(bit: str, count: int) -> str:
    return f"{{{count}{{{bit}}}}}" if count > 1 else bit


def _concatenation(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
