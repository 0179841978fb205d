"""Functions, blocks and instructions of LLVM IR as text, as far as the delays of loops need them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Instruction:
    """A line of IR. `operands`: local values that it reads. `incoming`: of a phi, value by predecessor block."""

    name: str
    op: str
    text: str
    block: str
    operands: list[str]
    incoming: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Function:
    name: str
    blocks: dict[str, list[Instruction]]
    successors: dict[str, list[str]]
    conditions: dict[str, str]


_LOCAL = re.compile(r'%("[^"]+"|[\w.$-]+)')


def functions(text: str) -> Iterator[Function]:
    """Every function that the IR defines."""
    for match in re.finditer(r"^define [^\n]*@\"?([\w.$]+)\"?\([^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        yield _function(match[1], match[2])


def _function(name: str, body: str) -> Function:
    blocks: dict[str, list[Instruction]] = {}
    successors: dict[str, list[str]] = {}
    conditions: dict[str, str] = {}
    block = "entry"
    blocks[block] = []
    joined = re.sub(r"\[\n(.*?)\n\s*\]", lambda m: "[" + m[1].replace("\n", " ") + "]", body, flags=re.DOTALL)
    for line in joined.split("\n"):
        label = re.match(r'("[^"]+"|[\w.$-]+):', line)
        if label:
            block = label[1].strip('"')
            blocks.setdefault(block, [])
            continue
        line = re.sub(r",? ![\w.]+ ![\w.]+|, !.*$", "", line).strip()
        if not line or line.startswith(("#", ";", "!")):
            continue
        instruction = _instruction(line, block)
        blocks[block].append(instruction)
        if instruction.op in {"br", "switch"}:
            successors[block] = [n.strip('"') for n in re.findall(r'label %("[^"]+"|[\w.$-]+)', line)]
            if " i1 " in line or instruction.op == "switch":
                conditions[block] = next(iter(instruction.operands), "")
    if not blocks["entry"]:
        del blocks["entry"]
    return Function(name, blocks, {b: successors.get(b, []) for b in blocks}, conditions)


def _instruction(line: str, block: str) -> Instruction:
    match = re.match(r'(?:%("[^"]+"|[\w.$-]+) = )?(?:tail |musttail |notail )?(\w+)', line)
    assert match
    name, op = (match[1] or "").strip('"'), match[2]
    right = line.split(" = ", 1)[1] if match[1] else line
    if op == "phi":
        pairs = re.findall(r'\[ ([^,]+), %("[^"]+"|[\w.$-]+) \]', right)
        incoming = {b.strip('"'): value.strip() for value, b in pairs}
        return Instruction(
            name, op, line, block, [v[1:].strip('"') for v in incoming.values() if v[0] == "%"], incoming
        )
    right = re.sub(r'label %("[^"]+"|[\w.$-]+)', "", right)
    names = [n.strip('"') for n in _LOCAL.findall(right)]
    return Instruction(name, op, line, block, [n for n in names if not n.startswith(("struct.", "class.", "union."))])
