"""The longest path between registers of a mapped Xilinx 7 series netlist.

An estimate for comparison: cell delays of about a -1 speed grade, the same delay for every routed net.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Nanoseconds: a routed net; a table; a register from clock to output; setup of a register; read of a block memory
#: without and with its output register; setup of a block memory.
NET, TABLE, CLOCK_TO_Q, SETUP, BLOCK_READ, BLOCK_REGISTER, BLOCK_SETUP = 0.5, 0.124, 0.456, 0.06, 2.45, 0.88, 0.5
#: A multiplier block: from clock to output with register P, M, or neither; through it, and setup in front of M or P, or
#: of the register behind the adder of A and D.
DSP_P, DSP_M, DSP_NONE, DSP_THROUGH = 0.43, 2.0, 4.0, 3.84
DSP_TO_M, DSP_TO_P, DSP_TO_AD, DSP_SETUP = 2.6, 3.6, 1.7, 0.36
SHIFT_TO_Q = 1.47
_CARRY_OUT = (0.16, 0.16, 0.20, 0.114)
_CARRY_SUM = (0.22, 0.334, 0.24, 0.313)
_CLOCKS = {"C", "CLK", "WCLK", "CLKARDCLK", "CLKBWRCLK"}

Arc = tuple[int, float]


@dataclass(frozen=True)
class LongestPath:
    """`tables` and `carries` on the way; `start` and `end` name nets."""

    ns: float
    tables: int
    carries: int
    start: str
    end: str


class _Timing:
    """Arrival times of the nets of a module, each once, in the order of the logic."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.cells = module["cells"]
        self.driver: dict[int, tuple[str, str, int]] = {}
        self.fanout: Counter[int] = Counter()
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                for n, bit in enumerate(bits):
                    if isinstance(bit, int):
                        if cell["port_directions"][port] == "output":
                            self.driver[bit] = (name, port, n)
                        else:
                            self.fanout[bit] += 1
        inputs = (port["bits"] for port in module["ports"].values() if port["direction"] == "input")
        #: Net -> (arrival, tables, carries, the net before it or None at the start)
        self.at: dict[int, tuple[float, int, int, int | None]] = {
            bit: (0.0, 0, 0, None) for bits in inputs for bit in bits if isinstance(bit, int)
        }

    def kind(self, bit: int) -> str:
        return str(self.cells[self.driver[bit][0]]["type"]) if bit in self.driver else ""

    def arrival(self, net: int) -> tuple[float, int, int, int | None]:
        waiting, opened = [net], set()
        while waiting:
            bit = waiting[-1]
            if bit in self.at:
                waiting.pop()
                continue
            if bit not in self.driver:
                self.at[bit] = (0.0, 0, 0, None)
                continue
            name, port, n = self.driver[bit]
            cell = self.cells[name]
            arcs = self.arcs(cell, port, n)
            if arcs is None:
                self.at[bit] = (_start(cell), 0, 0, None)
                continue
            ahead = [before for before, _ in arcs if before not in self.at and before not in opened]
            opened.add(bit)
            if ahead:
                waiting.extend(ahead)
                continue
            table, carry = cell["type"].startswith("LUT"), cell["type"] == "CARRY4"
            best = (0.0, 0, 0, None)
            for before, delay in arcs:
                time, tables, carries, _ = self.at.get(before, best)
                if time + delay > best[0]:
                    best = (time + delay, tables + table, carries + carry, before)  # type: ignore[assignment]
            self.at[bit] = best
            waiting.pop()
        return self.at[net]

    def arcs(self, cell: dict[str, Any], port: str, n: int) -> list[Arc] | None:
        """(net, delay from it) of what an output depends on in the same cycle; None: on a register."""
        kind = cell["type"]
        if kind.startswith("LUT") or kind == "INV":
            return [(bit, NET + TABLE) for _, _, bit in _inputs(cell)]
        if kind.startswith("MUXF"):
            return [(bit, NET + 0.29 if q == "S" else 0.23) for q, _, bit in _inputs(cell)]
        if kind == "CARRY4":
            return self.carry_arcs(cell, port, n)
        if kind.startswith("RAM") and not kind.startswith("RAMB"):
            return [(bit, NET + TABLE) for q, _, bit in _inputs(cell) if q.startswith(("A", "DPRA"))]
        if kind == "DSP48E1" and not _parameter(cell, "PREG", 1) and not _parameter(cell, "MREG", 1):
            free = [q for q, register in (("A", "AREG"), ("B", "BREG")) if not _parameter(cell, register, 1)]
            arcs = [(bit, NET + DSP_THROUGH) for q, _, bit in _inputs(cell) if q in free]
            return arcs + [(bit, NET + 1.52) for q, _, bit in _inputs(cell) if q == "C"] or None
        return None

    def carry_arcs(self, cell: dict[str, Any], port: str, n: int) -> list[Arc]:
        arcs = []
        for q, k, bit in _inputs(cell):
            if q in ("CI", "CYINIT"):
                delay = (_CARRY_OUT if port == "CO" else _CARRY_SUM)[n] + (0.36 if q == "CYINIT" else 0.0)
                arcs.append((bit, delay + (0.0 if self.kind(bit) == "CARRY4" else NET)))
            elif k < n or (k == n and not (port == "O" and q == "DI")):
                delay = 0.4 + 0.05 * (n - k) if port == "CO" else 0.23 if k == n else 0.45 + 0.08 * (n - k)
                beside = q == "S" and self.kind(bit).startswith("LUT") and self.fanout[bit] <= 2
                arcs.append((bit, delay + (0.0 if beside else NET)))
        return arcs

    def ends(self) -> Iterator[tuple[int, float]]:
        """(net, delay from it) of what registers and memories take."""
        for cell in self.cells.values():
            kind = cell["type"]
            for port, _, bit in _inputs(cell):
                if port in _CLOCKS:
                    continue
                if kind.startswith("FD"):
                    beside = port == "D" and self.fanout[bit] == 1
                    beside &= self.kind(bit).startswith(("LUT", "CARRY4", "MUXF"))
                    yield bit, (0.0 if beside else NET) + SETUP
                elif kind.startswith(("RAMB", "SRL", "RAM")):
                    yield bit, NET + (BLOCK_SETUP if kind.startswith("RAMB") else SETUP)
                elif kind == "DSP48E1":
                    yield from ((bit, NET + delay) for delay in _into_dsp(cell, port))


def longest_path(module: dict[str, Any]) -> LongestPath:
    """Of a flat module; ports count as registers."""
    timing = _Timing(module)
    worst, last = 0.0, None
    for bit, delay in timing.ends():
        time = timing.arrival(bit)[0] + delay
        if time > worst:
            worst, last = time, bit
    if last is None:
        return LongestPath(0.0, 0, 0, "", "")
    names = _names(module)
    _, tables, carries, _ = timing.at[last]
    first = last
    while (before := timing.at[first][3]) is not None:
        first = before
    return LongestPath(round(worst, 2), tables, carries, names.get(first, ""), names.get(last, ""))


def _names(module: dict[str, Any]) -> dict[int, str]:
    """A name of each net: short, and one of the source if there is one."""
    found: dict[int, str] = {}
    for name in sorted(module["netnames"], key=lambda name: (name[0] == "$", len(name))):
        for n, bit in enumerate(module["netnames"][name]["bits"]):
            found.setdefault(bit, f"{name}[{n}]")
    return found


def _inputs(cell: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == "input":
            for n, bit in enumerate(bits):
                if isinstance(bit, int):
                    yield port, n, bit


def _parameter(cell: dict[str, Any], name: str, default: int) -> int:
    value = cell["parameters"].get(name, default)
    return value if isinstance(value, int) else int(value, 2) if set(value) <= {"0", "1"} and value else default


def _start(cell: dict[str, Any]) -> float:
    kind = cell["type"]
    if kind.startswith("RAMB"):
        return BLOCK_REGISTER if _parameter(cell, "DOA_REG", 0) or _parameter(cell, "DOB_REG", 0) else BLOCK_READ
    if kind == "DSP48E1":
        return DSP_P if _parameter(cell, "PREG", 1) else DSP_M if _parameter(cell, "MREG", 1) else DSP_NONE
    return SHIFT_TO_Q if kind.startswith("SRL") else CLOCK_TO_Q


def _into_dsp(cell: dict[str, Any], port: str) -> list[float]:
    m, p = _parameter(cell, "MREG", 1), _parameter(cell, "PREG", 1)
    if port in ("A", "B", "D"):
        if _parameter(cell, f"{port}REG", 1):
            return [DSP_SETUP]
        if port != "B" and cell["parameters"].get("USE_DPORT") == "TRUE" and _parameter(cell, "ADREG", 1):
            return [DSP_TO_AD]
        return [DSP_TO_M] if m else [DSP_TO_P] if p else []
    return [1.3] if port == "C" and p else []
