"""Estimates the carried delay of every loop of an emitted C++ core from LLVM IR, without a vendor's HLS tool.

A loop starts an iteration per cycle only if every recurrence fits in a cycle. A recurrence is a value that one iteration
leaves and the next one needs. clang compiles the core to IR, with integers of exact width and streams as opaque calls.
This module finds the loops in that IR and sums the delays of the operators along each recurrence.

The delays are of a Xilinx 7-series device of speed grade -1. A clock of 5 ns less 27 % of uncertainty leaves
`BUDGET` ns. All of this is an estimate: a vendor's tool narrows, shares and retimes operators by rules of its own.
"""

from __future__ import annotations

import argparse
import heapq
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from ir_widths import needed_bits, width_of
from llvm_ir import Function, Instruction, functions

#: Nanoseconds of a cycle that operators may use: 5 ns less 27 % of clock uncertainty.
BUDGET = 5.0 * (1 - 0.27)
#: Delays in ns by width in bits, of a 7-series device; between the widths they are interpolated.
_ADD = {1: 0.97, 2: 1.56, 4: 1.73, 8: 1.91, 16: 2.08, 32: 2.55, 64: 3.52, 128: 5.5}
_COMPARE = {1: 0.97, 2: 0.97, 4: 1.30, 8: 1.55, 16: 2.08, 32: 2.47, 64: 2.77, 128: 3.6}
_MULTIPLY = {1: 0.97, 4: 2.7, 8: 4.17, 16: 5.6, 32: 8.5, 64: 15.0}
_SHIFT = {1: 0.97, 8: 2.0, 32: 4.4, 64: 4.9}
_LOGIC, _SELECT, _MEMORY = 0.97, 0.70, 3.25
_FLOAT = {"fadd": 18.0, "fsub": 18.0, "fmul": 11.0, "fdiv": 50.0, "fcmp": 3.6}
_FREE = {"zext", "sext", "trunc", "bitcast", "freeze", "getelementptr", "alloca", "fneg", "inttoptr", "ptrtoint"}
#: Operators whose results depend on nothing but their operands.
_PURE = {*"add sub mul and or xor shl lshr ashr icmp select trunc zext sext freeze".split()}
#: Choice of a branch that does not lead to a phi.
_NOT_REACHED = 0
#: Source of arrival times: the start of an iteration.
_START = "start"
_HEADERS = Path(__file__).parent / "ir_headers"


@dataclass(frozen=True)
class LoopDelay:
    """Carried delay of a loop in ns, with the names of the values of its longest recurrence.

    `function`: the library's function. `instance`: its mangled name. `ratio`: delay per iteration of the slowest
    recurrence, if registers may move. `path`: the longest delay from one register of a recurrence to the next.
    `latency`: the longest delay from the start of an iteration to its end.
    """

    function: str
    instance: str
    ratio: float
    path: float
    values: tuple[str, ...]
    latency: float


# ------------------------------------------------------------------------------------------- from C++ to IR


def clang_command() -> list[str] | None:
    """The command of a clang for C++, or None: clang++ on PATH, or the one in the package ziglang."""
    if path := shutil.which("clang++"):
        return [path]
    return [sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-musl"] if find_spec("ziglang") else None


def _prepared(text: str) -> str:
    """Source with clang's loop pragmas instead of the HLS pragmas. Functions are inlined where the source says so.

    Structures of counters are made larger, as clang puts small ones into one register, which mixes their delays.
    """
    text = re.sub(
        r"^struct (counter|countdown|ring|ring_step|position) \{\n",
        r"\g<0>    char apart[32];\n",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^([ \t]*)(for \([^\n]*\{|while \([^\n]*\{)\n(?=[ \t]*#pragma HLS UNROLL)",
        r'\1_Pragma("clang loop unroll(full)")\n\1\2\n',
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^([ \t]*)(for \([^\n]*\{)\n(?=[ \t]*#pragma HLS PIPELINE)",
        r'\1_Pragma("clang loop unroll(disable)")\n\1\2\n',
        text,
        flags=re.MULTILINE,
    )
    return re.sub(
        r"^(?![^{]*\{(?:\}|\n#pragma HLS INLINE\n))((?:static )?void \w+\()",
        r"__attribute__((noinline)) \1",
        text,
        flags=re.MULTILINE,
    )


def ir_of(core: Path, top: str) -> str:
    """LLVM IR of the core `top`.cpp in a build's folder hls/. Raises RuntimeError with clang's message."""
    command = clang_command()
    assert command is not None, "no clang"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        (copy / "hg").mkdir()
        for source in (*core.glob("*.[ch]pp"), *core.glob("hg/*.hpp")):
            (copy / source.relative_to(core)).write_text(_prepared(source.read_text()))
        for source in core.glob("csim/ap_axi_sdata.h"):
            (copy / source.name).write_text(source.read_text())
        result = subprocess.run(
            [
                *command,
                *"-DHG_EXACT_COUNTERS -std=c++14 -O1 -g0 -w -fno-discard-value-names -ffp-contract=off -fno-exceptions".split(),
                *"-fno-vectorize -fno-slp-vectorize -fno-sanitize=all -fno-builtin -S -emit-llvm".split(),
                *"-mllvm -inline-threshold=1000000 -mllvm -indvars-widen-indvars=false -mllvm -enable-pre=false".split(),
                *"-I. -isystem".split(),
                str(_HEADERS),
                f"{top}.cpp",
                "-o",
                "core.ll",
            ],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise RuntimeError(result.stderr[:4000])
        return (copy / "core.ll").read_text()


# ------------------------------------------------------------------------------------------- control flow


def _dominators(function: Function) -> dict[str, set[str]]:
    """Dominating blocks of each block."""
    order = list(function.blocks)
    predecessors = _predecessors(function)
    entry = order[0]
    result = {block: set(order) for block in order}
    result[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            sources = [result[p] for p in predecessors[block]]
            dominators = (set.intersection(*sources) if sources else set()) | {block}
            if dominators != result[block]:
                result[block] = dominators
                changed = True
    return result


def _predecessors(function: Function) -> dict[str, list[str]]:
    predecessors: dict[str, list[str]] = {block: [] for block in function.blocks}
    for block, targets in function.successors.items():
        for target in dict.fromkeys(targets):
            predecessors[target].append(block)
    return predecessors


def _innermost_loops(function: Function) -> Iterator[tuple[str, set[str], list[str]]]:
    """Header, blocks and latches of each loop without another one inside."""
    dominators, predecessors = _dominators(function), _predecessors(function)
    latches: dict[str, list[str]] = defaultdict(list)
    for block, targets in function.successors.items():
        for target in targets:
            if target in dominators[block]:
                latches[target].append(block)
    loops = {}
    for header, ends in latches.items():
        members, pending = {header}, [*ends]
        while pending:
            block = pending.pop()
            if block not in members:
                members.add(block)
                pending += predecessors[block]
        loops[header] = members
    for header, members in loops.items():
        if not any(inner != header and inner in members for inner in loops):
            yield header, members, latches[header]


# ------------------------------------------------------------------------------------------- delays


def _at(points: Mapping[int, float], bits: int) -> float:
    widths = sorted(points)
    if bits >= widths[-1]:
        return points[widths[-1]] * bits / widths[-1]
    for low, high in pairwise(widths):
        if low <= bits <= high:
            return points[low] + (points[high] - points[low]) * (bits - low) / (high - low)
    return points[widths[0]]


def _delay(instruction: Instruction, needed: int) -> float:
    """Delay of an operator in ns, without memories and phis. `needed`: low bits of its result that anything needs."""
    op, text = instruction.op, instruction.text
    if op in _FREE or op in {"br", "switch", "store", "ret", "unreachable"}:
        return 0.0
    if op in _FLOAT:
        return _FLOAT[op]
    bits = width_of(instruction)
    if op in {"add", "sub", "mul"}:
        bits = min(bits, needed)
    constant = len(instruction.operands) < 2
    match op:
        case "add" | "sub":
            return _at(_ADD, bits)
        case "icmp":
            if re.search(r"icmp (samesign )?(slt i\d+ %\S+ 0|sgt i\d+ %\S+ -1)$", text):
                return 0.0  # the sign bit
            return _at(_COMPARE, bits)
        case "select":
            return _LOGIC if re.search(r"select i1 [^,]+, i1 ", text) else _SELECT
        case "and" | "or" | "xor":
            return 0.0 if constant else _LOGIC
        case "shl" | "lshr" | "ashr":
            return 0.0 if re.search(r", \d+$", text) else _at(_SHIFT, bits)
        case "mul":
            return _at(_ADD, bits) if constant else _at(_MULTIPLY, bits)
        case "udiv" | "sdiv" | "urem" | "srem":
            return bits * _at(_ADD, bits)
        case "call":
            if re.search(r"@llvm\.(umin|umax|smin|smax|usub\.sat)", text):
                return _at(_COMPARE, bits) + _SELECT
            return _SHIFT[32] if "@llvm." in text and not re.search(r"@llvm\.(mem|lifetime|assume)", text) else 0.0
        case _:
            return 0.0


@dataclass(frozen=True)
class _Arrays:
    """Directives of a function's arrays. `registers`: names of completely partitioned ones. `distance`: by name."""

    registers: frozenset[str]
    distance: Mapping[str, int]


def _arrays(headers: Iterable[Path]) -> dict[str, _Arrays]:
    """Directives by function of the library."""
    result: dict[str, _Arrays] = {}
    for header in headers:
        for match in re.finditer(r"^void (\w+)\((.*?)^\}", header.read_text(), re.MULTILINE | re.DOTALL):
            registers = re.findall(r"ARRAY_PARTITION variable=(\w+) complete(?: dim=0)?$", match[2], re.MULTILINE)
            distances = re.findall(r"DEPENDENCE variable=(\w+) .*distance=(\d+)", match[2])
            old = result.get(match[1], _Arrays(frozenset(), {}))
            result[match[1]] = _Arrays(
                old.registers | set(registers), dict(old.distance) | {name: int(n) for name, n in distances}
            )
    return result


def _is_term(instruction: Instruction) -> bool:
    """True if an instruction may be a part of a larger sum: a sum, a difference, or one shifted by a constant."""
    return instruction.op in {"add", "sub"} or (instruction.op == "shl" and len(instruction.operands) == 1)


class _Loop:
    """Arrival times of the values of an innermost loop, from one register or array each."""

    def __init__(self, function: Function, header: str, members: set[str], latches: Sequence[str], arrays: _Arrays):
        self.function, self.header, self.members, self.latches = function, header, members, latches
        self.arrays = arrays
        self.defined = {i.name: i for block in function.blocks.values() for i in block if i.name}
        self.uses = Counter(name for block in function.blocks.values() for i in block for name in i.operands)
        self.needed = needed_bits(function)
        self.predecessors = _predecessors(function)
        self.dominators = _dominators(function)
        self.numbers: dict[tuple[object, ...], int] = {}
        self.order = self._topological()
        self.expressions = self._expressions()
        self.phis = [i for i in function.blocks[header] if i.op == "phi"]
        self.stream_buffers = {
            self._base(name)
            for block in function.blocks.values()
            for i in block
            if i.op == "call" and "@ir_" in i.text
            for name in i.operands[1:]
        }

    def _topological(self) -> list[str]:
        order: list[str] = []
        visited: set[str] = set()

        def visit(block: str) -> None:
            stack = [(block, iter(self.function.successors[block]))]
            visited.add(block)
            while stack:
                node, targets = stack[-1]
                for target in targets:
                    if target in self.members and target not in visited:
                        visited.add(target)
                        stack.append((target, iter(self.function.successors[target])))
                        break
                else:
                    order.append(node)
                    stack.pop()

        visit(self.header)
        return order[::-1]

    def _base(self, name: str) -> str:
        """The array that a pointer points into."""
        while (i := self.defined.get(name)) is not None and i.op in {"getelementptr", "bitcast"} and i.operands:
            name = i.operands[0]
        return name

    def _accesses(self, instruction: Instruction) -> tuple[str, str]:
        """Arrays that an instruction loads from and stores to, or ""."""
        if instruction.op == "load":
            return self._base(instruction.operands[-1]) if instruction.operands else "", ""
        if instruction.op == "store":
            return "", self._base(instruction.operands[-1]) if "ptr %" in instruction.text else ""
        if instruction.op == "call" and re.search(r"@llvm\.mem(cpy|move)", instruction.text):
            return self._base(instruction.operands[1]) if len(instruction.operands) > 1 else "", self._base(
                instruction.operands[0]
            )
        return "", ""

    def memories(self) -> set[str]:
        """Arrays that the loop both loads from and stores to, without the buffers of streams."""
        loads, stores = set(), set()
        for block in self.order:
            for i in self.function.blocks[block]:
                source, target = self._accesses(i)
                loads.add(source)
                stores.add(target)
        return {m for m in loads & stores if m and m not in self.stream_buffers and m in self.defined}

    def _conditions_of(self, phi: Instruction) -> list[str]:
        """Branch conditions that select the value of a phi."""
        block, known = phi.block, dict[str, int]()
        strict = self.dominators[block] - {block}
        top = max(strict, key=lambda b: len(self.dominators[b]))
        result, pending, visited = [], list(self.predecessors[block]), set[str]()
        while pending:
            b = pending.pop()
            if b in visited or b not in self.members:
                continue
            visited.add(b)
            choices = {self._choice_after(b, target, phi, known) for target in self.function.successors[b]}
            if self.function.conditions.get(b) and len(choices - {_NOT_REACHED}) > 1:
                result.append(self.function.conditions[b])
            if b != top:
                pending += self.predecessors[b]
        return result

    def _choice_after(self, block: str, target: str, phi: Instruction, known: dict[str, int]) -> int:
        """Number of the choice between values that is left to a phi after the step from a block to `target`.

        Equal choices have equal numbers, also in copies of the same branches. `known`: of blocks, so far.
        """
        if target == phi.block:
            return self._numbered(("value", self._expression(phi.incoming.get(block, ""))))
        if target not in self.members or target == self.header:
            return _NOT_REACHED
        if target not in known:
            choices = [self._choice_after(target, t, phi, known) for t in self.function.successors[target]]
            reached = set(choices) - {_NOT_REACHED}
            condition = self._expression("%" + self.function.conditions.get(target, ""))
            several = len(reached) > 1
            known[target] = self._numbered((condition, *choices)) if several else next(iter(reached), _NOT_REACHED)
        return known[target]

    def _numbered(self, key: tuple[object, ...]) -> int:
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def _expressions(self) -> dict[str, int]:
        """Numbers of the expressions of values of the loop: copies of an expression share theirs."""
        result: dict[str, int] = {}
        for block in self.order:
            for i in self.function.blocks[block]:
                if i.op in _PURE:
                    text = re.sub(r'%("[^"]+"|[\w.$-]+)', "%", i.text.split(" = ", 1)[1])
                    result[i.name] = self._numbered((text, *(result.get(name, name) for name in i.operands)))
        return result

    def _expression(self, value: str) -> object:
        """The number of a value's expression, or the text of any other value."""
        return self.expressions.get(value[1:].strip('"'), value) if value.startswith("%") else value

    def latency(self) -> float:
        """Longest delay of an iteration: from its registers, memories and streams to its last value."""
        return max(self.arrivals(_START).values(), default=0.0)

    def arrivals(self, source: str) -> dict[str, float]:
        """Delay from a register or an array to each value that depends on it, and to "store ARRAY".

        Source _START: from the start of the iteration, when all registers, memories and streams have their values.
        """
        times: dict[str, float] = {} if source.startswith("array ") else {source: 0.0}
        if source == _START:
            times = {phi.name: 0.0 for phi in self.phis} | {f"buffer {name}": 0.0 for name in self.stream_buffers}
        guards: dict[str, float] = {}
        registers = {phi.name for phi in self.phis}
        for block in self.order:
            predecessors = [p for p in self.predecessors[block] if p in self.members]
            if block == self.header:
                guard = -math.inf
            elif len(predecessors) > 1:
                top = max(self.dominators[block] - {block}, key=lambda b: len(self.dominators[b]))
                guard = guards.get(top, -math.inf)
            else:
                condition = self.function.conditions.get(predecessors[0], "")
                guard = max(guards.get(predecessors[0], -math.inf), times.get(condition, -math.inf))
            guards[block] = guard
            for i in self.function.blocks[block]:
                if i.op == "phi" and block == self.header:
                    continue
                time = max((times.get(name, -math.inf) for name in i.operands), default=-math.inf)
                loaded, stored = self._accesses(i)
                if i.op == "phi" and len(i.incoming) > 1:
                    time = max([time, *(times.get(c, -math.inf) for c in self._conditions_of(i))])
                    new = {v for v in i.incoming.values() if v[1:].strip('"') not in registers}
                    time += _SELECT * math.ceil(math.log2(max(1, len(new))))  # a register that is kept: clock enable
                elif i.op == "call" and "@ir_" in i.text:
                    time = max(time, guard)
                    for name in i.operands[1:]:
                        if time > -math.inf:
                            times[f"buffer {self._base(name)}"] = time
                elif loaded in self.stream_buffers:
                    time = max(time, times.get(f"buffer {loaded}", -math.inf))
                elif loaded:
                    address = time
                    time = 0.0 if source in {f"array {loaded}", _START} else -math.inf
                    time = max(time, address) + self._load_delay(loaded, i)
                elif i.op in {"add", "sub"}:
                    time = self._sum_arrival(i, times)
                elif (i.op == "or" and self._joins_bits(i)) or self._tests_a_bit(i):
                    pass
                elif bits := self._compared_bits(i):
                    time += _at(_COMPARE, bits)
                else:
                    time += _delay(i, self.needed[i.name])
                if stored and stored not in self.stream_buffers:
                    stored_time = max(time, guard)
                    key = f"store {stored}"
                    times[key] = max(times.get(key, -math.inf), stored_time)
                if i.name and time > -math.inf:
                    times[i.name] = max(times.get(i.name, -math.inf), time)
        return {name: time for name, time in times.items() if time > -math.inf}

    def _joins_bits(self, instruction: Instruction) -> bool:
        """True if an `or` puts bits side by side, as clang does with the elements of a small array."""
        operands = [self.defined.get(name) for name in instruction.operands]
        shifted = any(o is not None and o.op == "shl" and re.search(r", \d+$", o.text) for o in operands)
        return shifted or " or disjoint " in instruction.text

    def _tests_a_bit(self, instruction: Instruction) -> bool:
        """True if a comparison looks at one bit, as clang does with a bool inside a structure."""
        match = re.search(r"icmp (?:eq|ne) i\d+ %(\S+), 0$", instruction.text)
        if match is None:
            return False
        name = match[1].strip('"')
        operand = self.defined.get(name)
        mask = re.search(r"= and i\d+ %\S+, (-?\d+)$", operand.text) if operand is not None else None
        return (mask is not None and int(mask[1]).bit_count() == 1) or self._is_bit(name, set())

    def _compared_bits(self, instruction: Instruction) -> int:
        """Bits of a comparison of masked low bits with a constant, as clang makes of a narrow integer; 0 for others."""
        match = re.search(r"icmp (?:samesign )?(?:eq|ne|u\w\w) i\d+ %(\S+), (\d+)$", instruction.text)
        operand = self.defined.get(match[1].strip('"')) if match else None
        mask = re.search(r"= and i\d+ %\S+, (\d+)$", operand.text) if operand is not None else None
        if match is None or mask is None or int(mask[1]) & (int(mask[1]) + 1) or int(match[2]) > int(mask[1]):
            return 0
        return int(mask[1]).bit_length()

    def _is_bit(self, name: str, assumed: set[str]) -> bool:
        """True if a value is 0 or 1 whatever its width, as the bool of a structure is."""
        instruction = self.defined.get(name)
        if name in assumed or instruction is None:
            return name in assumed
        if instruction.op in {"zext", "trunc"}:
            return " zext i1 " in instruction.text or self._is_bit(instruction.operands[0], assumed)
        constants = re.findall(r"(?<![\w.%-])-?\d+(?![\w.])", re.sub(r"%\S+", "", instruction.text.split(" = ", 1)[1]))
        if instruction.op not in {"phi", "select", "and", "or", "xor", "freeze"} or set(constants) - {"0", "1"}:
            return False
        operands = instruction.operands[instruction.op == "select" and " select i1 %" in instruction.text :]
        bits = (self._is_bit(operand, assumed | {name}) for operand in operands)
        return any(bits) or "1" in constants if instruction.op == "and" else all(bits)

    def _sum_arrival(self, instruction: Instruction, times: Mapping[str, float]) -> float:
        """Arrival of a sum as a balanced tree of additions, which adds the latest number last."""
        addends: list[float] = []
        pending = [instruction]
        while pending:
            term = pending.pop()
            for name in term.operands:
                operand = self.defined.get(name)
                if operand is not None and self.uses[name] == 1 and _is_term(operand):
                    pending.append(operand)
                else:
                    addends.append(times.get(name, -math.inf))
            if len(term.operands) < 2 and term.op != "shl":
                addends.append(-math.inf)  # a constant
        heapq.heapify(addends)
        delay = _delay(instruction, self.needed[instruction.name])
        while len(addends) > 1:
            heapq.heappop(addends)
            heapq.heapreplace(addends, addends[0] + delay)
        return addends[0]

    def _load_delay(self, array: str, instruction: Instruction) -> float:
        """Delay of a load: a multiplexer of registers, or a memory."""
        size = self.defined.get(array)
        if size is None:
            return _MEMORY if array.endswith(("weights", "thresholds", "entries")) else 0.0
        if size.op == "alloca" and not re.search(r"alloca \[", size.text):
            return 0.0  # a structure
        name = re.sub(r"(\.\w+)*$", "", array)
        if name not in self.arrays.registers:
            return _MEMORY
        count = re.search(r"\[(\d+) x ", size.text)
        pointer = self.defined.get(instruction.operands[-1])
        if pointer is None or pointer.op != "getelementptr" or len(pointer.operands) < 2:
            return 0.0
        return _SELECT * math.ceil(math.log2(max(2, int(count[1]) if count else 2)))

    def delay(self) -> tuple[float, float, tuple[str, ...]]:
        """Slowest recurrence: delay per iteration, longest delay between two of its registers, and its registers."""
        memories = self.memories()
        sources = [phi.name for phi in self.phis] + [f"array {m}" for m in sorted(memories)]
        edges: dict[str, dict[str, tuple[float, int]]] = {source: {} for source in sources}
        for source in sources:
            times = self.arrivals(source)
            for phi in self.phis:
                values = [phi.incoming.get(latch, "") for latch in self.latches]
                time = max(
                    (times.get(v[1:].strip('"'), -math.inf) for v in values if v.startswith("%")), default=-math.inf
                )
                if time > -math.inf:
                    edges[source][phi.name] = (time, 1)
            for memory in memories:
                time = times.get(f"store {memory}", -math.inf)
                if time > -math.inf:
                    name = re.sub(r"(\.\w+)*$", "", memory)
                    edges[source][f"array {memory}"] = (time, self.arrays.distance.get(name, 1))
        components = _components({a: set(b) for a, b in edges.items()})
        longest, ratio = 0.0, 0.0
        names: tuple[str, ...] = ()
        for component in components:
            inner = {a: {b: e for b, e in edges[a].items() if b in component} for a in component}
            if not any(inner.values()):
                continue
            ratio = max(ratio, _ratio(inner))
            for a, targets in inner.items():
                for b, (time, iterations) in targets.items():
                    if time / iterations > longest:
                        longest, names = time / iterations, (a, b)
        return ratio, longest, names


def _components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of a small graph."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        reached: set[str] = set()
        pending = [start]
        while pending:
            for target in graph[pending.pop()]:
                if target not in reached:
                    reached.add(target)
                    pending.append(target)
        reach[start] = reached
    result: list[set[str]] = []
    assigned: set[str] = set()
    for node in graph:
        if node not in assigned and node in reach[node]:
            component = {name for name in reach[node] if node in reach[name]}
            assigned |= component
            result.append(component)
    return result


def _ratio(edges: Mapping[str, Mapping[str, tuple[float, int]]]) -> float:
    """Largest sum of delays per iteration of a cycle."""
    low, high = 0.0, max(time for targets in edges.values() for time, _ in targets.values()) + 0.01
    while high - low > 0.005:
        middle = (low + high) / 2
        distance = dict.fromkeys(edges, 0.0)
        for _ in range(len(edges)):
            changed = False
            for a, targets in edges.items():
                for b, (time, iterations) in targets.items():
                    if distance[a] + time - middle * iterations > distance[b] + 1e-9:
                        distance[b] = distance[a] + time - middle * iterations
                        changed = True
            if not changed:
                break
        low, high = (middle, high) if changed else (low, middle)
    return high


def call_graph(ir: str) -> dict[str, list[str]]:
    """For each function of the IR, the functions of the library that it calls."""
    return {
        function.name: [
            name
            for block in function.blocks.values()
            for i in block
            if i.op == "call"
            for name in re.findall(r'@"?(_ZN2hg[\w.$]+)', i.text)
        ]
        for function in functions(ir)
    }


def loop_delays(core: Path, top: str) -> list[LoopDelay]:
    """The innermost loops of all library functions that a core calls, in the order of the IR."""
    return loop_delays_of(ir_of(core, top), core)


def loop_delays_of(ir: str, core: Path) -> list[LoopDelay]:
    """As loop_delays, of IR that was made of a core. A function whose loops have one iteration counts as one."""
    assert "unreachable" not in ir, "clang found undefined behaviour, and removed code"
    arrays = _arrays(core.glob("hg/*.hpp"))
    result = []
    for function in functions(ir):
        match = re.match(r"_ZN2hg(\d+)(\w+)", function.name)
        name = match[2][: int(match[1])] if match else function.name
        loops = list(_innermost_loops(function))
        if match and not loops:
            loops = [(next(iter(function.blocks)), set(function.blocks), [])]
        for header, members, latches in loops:
            calls = [i.text for block in members for i in function.blocks[block] if i.op == "call"]
            if any(re.search(r"@_ZL\w+_step", text) for text in calls):
                continue  # a loop over steps, whose processes have loops of their own
            hidden = [text for text in calls if not re.search(r"@(ir_|llvm\.|_Z12opaque_fixed)", text)]
            assert not hidden, f"{function.name} calls functions whose delays are unknown: {hidden}"
            loop = _Loop(function, header, members, latches, arrays.get(name, _Arrays(frozenset(), {})))
            ratio, path, values = loop.delay()
            result.append(
                LoopDelay(name, function.name, round(ratio, 2), round(path, 2), values, round(loop.latency(), 2))
            )
    return result


def main() -> None:
    """Print the carried delay of every loop of builds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs="+", type=Path, help="folders of builds with hls/")
    for build in parser.parse_args().builds:
        tops = [p.stem for p in (build / "hls").glob("*.cpp")]
        for loop in loop_delays(build / "hls", tops[0]):
            mark = "" if loop.path < BUDGET else "  > budget"
            print(f"{loop.path:6.2f} {loop.ratio:6.2f}  {loop.function:16} {' -> '.join(loop.values)}{mark}")


if __name__ == "__main__":
    main()
