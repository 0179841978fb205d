"""Prints a graph of adders with its registers as a Verilog module between two streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlsgen.adder_graph import Adder, Pipeline, width
from hlsgen.adder_graph.graph import NOTHING, carry_place, grows, lowest
from hlsgen.verilog.stage_text import between_streams

#: Registers in a row that a bit may pass. Of three and more, tools make a shift register, out of which it comes a nanosecond
#: later than out of a register; not of those that are reset.
_MOST_WAITS = 2


def module_text(
    name: str, pipeline: Pipeline, x_bits: int, y_bits: int, *, joined: bool = False, bare: bool = False
) -> str:
    """The module `name`: codes of `x_bits` in, sums of `y_bits` out.

    joined: its stages advance with the taker's. bare: the taker inverts what comes inverted, see `inverted_bits`.
    """
    graph = pipeline.graph
    columns, rows = len(graph.inputs), len(graph.outputs)
    about = [
        f"// {name}: product of a constant matrix, {rows} rows by {columns} columns.",
        "//",
        f"// Purpose     sums of codes times constant weights, in {len(graph.adders)} adders that rows share.",
        "//             nK_C is code or sum K, C cycles after the codes that it is made of came in. One that can be",
        "//             negative is held with its highest bit inverted: so the highest bit of a sum is a carry. A row",
        "//             that is a sum of three is held as it leaves.",
        "//             a + ~b is 1 less than a - b, but needs no carry: in each row such constants add up to 0.",
    ]
    exact = "every sum has the bits that the ranges of the codes and the weights need. Written by"
    lines = _Text(pipeline, x_bits).lines(y_bits, bare=bare)
    bits = columns * x_bits, rows * y_bits
    return between_streams(name, about, exact, pipeline.latency, bits, lines, joined=joined)


class _Text:
    """Lines of nodes, registers and outputs."""

    def __init__(self, pipeline: Pipeline, x_bits: int) -> None:
        self.pipeline, self.x_bits = pipeline, x_bits
        graph = pipeline.graph
        self.widths = [x_bits] * len(graph.inputs) + [width(*ends) for ends in graph.intervals[len(graph.inputs) :]]
        #: Of each bit of a node, how many registers it has passed in a row.
        self.waits = {n: [0] * x_bits for n in range(len(graph.inputs))}

    def lines(self, y_bits: int, *, bare: bool) -> Iterator[str]:
        pipeline, graph = self.pipeline, self.pipeline.graph
        first, kept = len(graph.inputs), self._kept()
        rows = dict[int, bool]() if bare else self._rows()
        for n in range(first):
            if pipeline.needed[n] >= 0:
                yield f"    wire [{self.x_bits - 1}:0] n{n}_0 = {self._code(n)};"
        for cycle in range(pipeline.latency + 1):
            if cycle:
                yield from self._registers(cycle)
            for n, adder in enumerate(graph.adders, first):
                if pipeline.computed[n] == cycle:
                    yield from self._node(n, adder, cycle, keep=n in kept, row=rows.get(n))
        for row, (node, shift, inverted) in enumerate(graph.outputs):
            held = bare or node in rows
            value = _together(self._plain(node, pipeline.latency, shift, y_bits, 0, "" if held else "~"))
            invert = "~" if inverted and not held else ""
            yield f"    assign m_data[{(row + 1) * y_bits - 1}:{row * y_bits}] = {invert}{value};"
        cut = [node for node, shift, _ in graph.outputs if node != NOTHING and self.widths[node] + shift > y_bits]
        if cut:
            names = ", ".join(f"n{node}_{pipeline.latency}" for node in dict.fromkeys(cut))
            yield f"    wire unused_sums = &{{1'b0, {names}}};"

    def _kept(self) -> set[int]:
        """Sums of three terms that one of two takes in the same cycle: Yosys would make one sum of both."""
        graph, made = self.pipeline.graph, self.pipeline.computed
        first, found = len(graph.inputs), set[int]()
        for n, adder in enumerate(graph.adders, first):
            if adder.c == NOTHING:
                own = [node for node, _ in adder.terms if node >= first and made[node] == made[n]]
                found.update(node for node in own if graph.adders[node - first].c != NOTHING)
        return found

    def _rows(self) -> dict[int, bool]:
        """Sums of three terms that can be negative and are a row, and nothing else; and whether that is their complement.

        They are summed as the row has them, in two's complement: no inverter is behind them.
        """
        graph, first = self.pipeline.graph, len(self.pipeline.graph.inputs)
        uses = Counter([node for adder in graph.adders for node, _ in adder.terms])
        uses.update(output.node for output in graph.outputs)
        own = {output.node: output.inverted for output in graph.outputs if output.node >= first}
        return {
            node: inverted
            for node, inverted in own.items()
            if uses[node] == 1 and graph.intervals[node][0] < -1 and graph.adders[node - first].c != NOTHING
        }

    def _code(self, n: int) -> str:
        """The code of column n, its top bit inverted if it is signed."""
        low, top = n * self.x_bits, (n + 1) * self.x_bits - 1
        if self.pipeline.graph.inputs[n][0] >= 0:
            return _slice("s_data", top, low)
        rest = [_slice("s_data", top - 1, low)] if top > low else []
        return _together([f"~s_data[{top}]", *rest])

    def _registers(self, cycle: int) -> Iterator[str]:
        """Those that hold values in this cycle."""
        made, needed = self.pipeline.computed, self.pipeline.needed
        held = [n for n in range(len(made)) if made[n] < cycle <= needed[n]]
        reset = []
        for n in held:
            self.waits[n] = [waits + 1 for waits in self.waits[n]]
            if max(self.waits[n]) > _MOST_WAITS:
                self.waits[n] = [0] * self.widths[n]
                reset.append(n)
        for n in held:
            yield f"    reg [{self.widths[n] - 1}:0] n{n}_{cycle};"
        for own in (reset, [n for n in held if n not in reset]):
            if not own:
                continue
            yield f"    always @(posedge clk) if ({'rst' if own is reset else 'en'}) begin"
            if own is reset:
                yield from (f"        n{n}_{cycle} <= {self.widths[n]}'h0;" for n in own)
                yield "    end else if (en) begin"
            yield from (f"        n{n}_{cycle} <= n{n}_{cycle - 1};" for n in own)
            yield "    end"

    def _node(self, n: int, adder: Adder, cycle: int, *, keep: bool, row: bool | None) -> Iterator[str]:
        """The wire of a sum. `row`: one of `_rows`."""
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
            yield f"        .a({first}), .b({second}), .c({third}), .sum({_slice(name, bits - 1, low) if low else name})"
            yield "    );"
            if low:
                yield f"    assign {_slice(name, low - 1, 0)} = {below};"
            return
        total = self._sign(adder).join(terms)
        total = f"{{({total}), {below}}}" if low else total
        yield f"{wire} = {total};"

    @staticmethod
    def _sign(adder: Adder) -> str:
        """Between two terms. A carry comes with a difference only: a + b + 1 is a - ~b, and a - b - 1 is a + ~b."""
        if adder.extra:
            return " + ~" if adder.minus else " - ~"
        return " - " if adder.minus else " + "

    def _terms(self, n: int, adder: Adder, cycle: int, low: int, *, moved: bool) -> list[str]:
        """The numbers that are added, without their lowest bits. `moved`: by half of the range, if the sum can be negative."""
        ends, bits = self.pipeline.graph.intervals, self.widths[n]
        left, right = (adder.a, cycle, adder.i), (adder.b, cycle, adder.j)
        if grows(adder, ends, ends[n]):
            # Numbers of a bit less, each moved up by half their range: the highest bit is the carry.
            first = [f"1'h{int(self._sign(adder) == ' - ')}", *self._moved(*left, bits - 1, low)]
            second = [f"1'h{int(self._sign(adder) == ' + ~')}", *self._moved(*right, bits - 1, low)]
        else:
            first = (self._moved if moved and ends[n][0] < 0 else self._plain)(*left, bits, low)
            second = self._plain(*right, bits, low)
        third = [] if adder.c == NOTHING else [self._plain(adder.c, cycle, adder.k, bits, low)]
        return [_together(term) for term in (first, second, *third)]

    def _plain(self, node: int, cycle: int, shift: int, bits: int, low: int, turn: str = "~") -> list[str]:
        """Bits low..bits - 1 of a node that is shifted, in two's complement: parts, the highest first.

        turn: in front of a highest bit that is held inverted.
        """
        if node == NOTHING:
            return [f"{bits}'h0"]
        name, own = f"n{node}_{cycle}", self.widths[node]
        above = bits - shift - own
        if above < 0:  # of an output, whose sum fits although that of the nodes might not
            return self._rest(name, bits - shift, shift, low)
        if self._signed(node) and (above or turn):
            head = _repeated(f"{turn}{name}[{own - 1}]", above + 1)
            return [head, *self._rest(name, own - 1, shift, low)]
        return [*([f"{above}'h0"] if above else []), *self._rest(name, own, shift, low)]

    def _moved(self, node: int, cycle: int, shift: int, bits: int, low: int) -> list[str]:
        """The same of that number and half of the range of `bits`."""
        if node == NOTHING:
            return [f"{bits}'h{1 << (bits - 1):x}"]
        name, own = f"n{node}_{cycle}", self.widths[node]
        above = bits - shift - own
        top = f"{name}[{own - 1}]"
        if not self._signed(node):
            if not above:  # modulo 2 to `bits`, as the sum fits
                return [f"~{top}", *self._rest(name, own - 1, shift, low)]
            return [f"{above}'h{1 << (above - 1):x}", *self._rest(name, own, shift, low)]
        if not above:
            return self._rest(name, own, shift, low)
        return [top, _repeated(f"~{top}", above), *self._rest(name, own - 1, shift, low)]

    def _rest(self, name: str, count: int, shift: int, low: int) -> list[str]:
        """The low `count` bits of a wire and the zeros of its shift, without the lowest `low` of all."""
        zeros, start = max(0, shift - low), max(0, low - shift)
        bits = [_slice(name, count - 1, start)] if count > start else []
        return [*bits, *([f"{zeros}'h0"] if zeros else [])]

    def _signed(self, node: int) -> bool:
        return self.pipeline.graph.intervals[node][0] < 0


def _slice(name: str, high: int, low: int) -> str:
    return f"{name}[{high}:{low}]" if high > low else f"{name}[{high}]"


def _repeated(bit: str, count: int) -> str:
    return f"{{{count}{{{bit}}}}}" if count > 1 else bit


def _together(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
