"""Prints a graph of agreements as a Verilog module between two streams."""

from __future__ import annotations

from collections.abc import Iterator

from hlsgen.adder_graph.agreements import ROW, AgreementGraph, Bit, Counter, Literal
from hlsgen.verilog.stage_text import between_streams


def count_module_text(name: str, graph: AgreementGraph, counters_per_stage: int, y_bits: int) -> str:
    """The module `name`: bits in, sums of `y_bits` out, with a register after every `counters_per_stage` counters."""
    rows, columns, triples = len(graph.rows), graph.columns, graph.triples
    latency = graph.latency(counters_per_stage)
    shared = f"{triples} times three columns in LUTs that rows share"
    head = [
        f"// {name}: agreements with a constant matrix of bits, {rows} rows by {columns} columns.",
        "//",
        f"// Purpose     counts the columns that are equal to the bits of a row: {shared}.",
        "//             `odd` is the parity of three columns, `most` their majority with no column inverted, the",
        "//             first, the second, the third. `bits` are the bits that the rows add, all rows alike.",
    ]
    contract = "sums count all columns, modulo a power of two that is greater. Written by"
    lines = _Text(graph, counters_per_stage).lines(y_bits)
    return between_streams(name, head, contract, latency, (columns, rows * y_bits), lines)


class _Text:
    """Lines of the shared LUTs, of the bits of rows, and of the counters and adders."""

    def __init__(self, graph: AgreementGraph, counters_per_stage: int) -> None:
        self.graph = graph
        self.latency = graph.counters.cycles(counters_per_stage)
        self.made = [graph.counters.ready_cycle(n, counters_per_stage) for n in range(len(graph.counters.counters))]
        self.held = graph.counters.registered(counters_per_stage)
        self.places = [{bit: n for n, bit in enumerate(bits)} for bits in self.held]

    def lines(self, y_bits: int) -> Iterator[str]:
        graph = self.graph
        rows, each = len(graph.rows), graph.counters.ones + graph.counters.twos
        if graph.triples:
            yield from self._triples(graph.triples)
        yield f"    wire [{rows * each - 1}:0] bits;"
        for r, row in enumerate(graph.rows):
            value = _concatenation([self._literal(literal) for literal in reversed(row)])
            yield f"    assign bits[{(r + 1) * each - 1}:{r * each}] = {value};"
        yield "    genvar r;"
        yield "    generate"
        yield f"        for (r = 0; r < {rows}; r = r + 1) begin : row"
        yield f"            wire [{each - 1}:0] own = bits[{each}*r +: {each}];"
        for cycle in range(self.latency):
            yield from self._registers(cycle)
            for n, counter in enumerate(graph.counters.counters):
                if self.made[n] == cycle:
                    yield from self._counter(n, counter, cycle)
        yield from self._sum(y_bits)
        yield f"            assign m_data[{y_bits}*r +: {y_bits}] = sum;"
        yield "        end"
        yield "    endgenerate"

    def _triples(self, triples: int) -> Iterator[str]:
        parts = [f"s_data[{(n + 1) * triples - 1}:{n * triples}]" for n in range(3)]
        for name, part in zip("abc", parts, strict=True):
            yield f"    wire [{triples - 1}:0] {name} = {part};"
        yield f"    reg  [{triples - 1}:0] odd;"
        yield f"    reg  [{4 * triples - 1}:0] most;"
        remaining_columns = self.graph.columns - 3 * triples
        if remaining_columns:
            yield f"    reg  [{remaining_columns - 1}:0] rest;"
        yield "    always @(posedge clk) if (en) begin"
        yield "        odd  <= a ^ b ^ c;"
        yield "        most <= {"
        yield "            (a & b) | (a & ~c) | (b & ~c), (a & ~b) | (a & c) | (~b & c),"
        yield "            (~a & b) | (~a & c) | (b & c), (a & b) | (a & c) | (b & c)"
        yield "        };"
        if remaining_columns:
            yield f"        rest <= s_data[{self.graph.columns - 1}:{3 * triples}];"
        yield "    end"
        yield "    wire unused_triples = &{1'b0, odd, most};"

    def _literal(self, literal: Literal) -> str:
        graph, signal = self.graph, literal.signal
        if signal < graph.columns:
            name = f"rest[{signal - 3 * graph.triples}]" if graph.triples else f"s_data[{signal}]"
        elif signal < graph.columns + graph.triples:
            name = f"odd[{signal - graph.columns}]"
        else:
            name = f"most[{signal - graph.columns - graph.triples}]"
        return "~" * literal.inverted + name

    def _bit(self, bit: Bit | None, cycle: int) -> str:
        if bit is None:
            return "1'h0"
        if cycle > (0 if bit.source == ROW else self.made[bit.source]):
            return f"held{cycle}[{self.places[cycle][bit]}]"
        return f"own[{bit.place}]" if bit.source == ROW else f"c{bit.source}[{bit.place}]"

    def _registers(self, cycle: int) -> Iterator[str]:
        bits = self.held[cycle]
        if bits:
            value = _concatenation([self._bit(bit, cycle - 1) for bit in reversed(bits)])
            yield f"            reg [{len(bits) - 1}:0] held{cycle};"
            yield f"            always @(posedge clk) if (en) held{cycle} <= {value};"

    def _counter(self, n: int, counter: Counter, cycle: int) -> Iterator[str]:
        counted, plain = (
            _concatenation([self._bit(bit, cycle) for bit in reversed(bits)])
            for bits in (counter.counted, counter.plain)
        )
        sizes = f".COUNTED({len(counter.counted)}), .PLACES({len(counter.plain)}), .SUM_W({counter.width})"
        yield f"            wire [{counter.width - 1}:0] c{n};"
        yield f"            hg_count #({sizes}) count{n} ("
        yield f"                .x({counted}), .a({plain}), .carry({self._bit(counter.carry, cycle)}), .sum(c{n})"
        yield "            );"

    def _sum(self, y_bits: int) -> Iterator[str]:
        """The last adder, of places that have two bits and all places above, and its register."""
        ends, last = self.graph.counters.ends, self.latency - 1
        zero = f"{y_bits - len(ends)}'h0" if y_bits > len(ends) else ""
        low = next((n for n, end in enumerate(ends) if len(end) > 1), len(ends))
        rows = [
            [zero] * bool(zero) + [self._bit(end[n] if n < len(end) else None, last) for end in reversed(ends)]
            for n in range(2)
        ]
        value = _concatenation(rows[0])
        if low < len(ends):
            first, second = (_concatenation(row[: len(row) - low]) for row in rows)
            yield f"            wire [{y_bits - low - 1}:0] high = {first} + {second};"
            value = _concatenation(["high", *rows[0][len(rows[0]) - low :]])
        yield f"            reg [{y_bits - 1}:0] sum;"
        yield f"            always @(posedge clk) if (en) sum <= {value};"


def _concatenation(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
