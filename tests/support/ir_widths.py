"""Bits of the values of LLVM IR that anything needs.

clang computes an integer of 38 bits in 64, and restores its sign by two shifts. Hardware has the 38 bits alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from llvm_ir import Function, Instruction

#: More bits than any value has.
_ALL = 1 << 30


def width_of(instruction: Instruction) -> int:
    """Bits of the first integer type in an instruction: of its operands, and of its result unless it converts."""
    match = re.search(r"\bi(\d+)\b", instruction.text.split(" = ", 1)[-1])
    return int(match[1]) if match else 32


def needed_bits(function: Function) -> Mapping[str, int]:
    """The number of low bits of each value on which a result of the function depends."""
    instructions = [i for block in function.blocks.values() for i in block]
    named = {i.name: i for i in instructions if i.name}
    needed: dict[str, int] = defaultdict(int)
    pending = [i for i in instructions if not i.name or _operand_bits(i, 0)]
    while pending:
        instruction = pending.pop()
        bits = _operand_bits(instruction, needed[instruction.name])
        for position, name in enumerate(instruction.operands):
            of_condition = position == 0 and " select i1 %" in instruction.text
            bits_here = _ALL if of_condition else bits
            if bits_here > needed[name]:
                needed[name] = bits_here
                if name in named:
                    pending.append(named[name])
    return needed


def _operand_bits(instruction: Instruction, bits: int) -> int:
    """Low bits of the operands that give the `bits` low bits of the result. All of them, for unknown operators."""
    text, constant = instruction.text, re.search(r", (-?\d+)$", instruction.text)
    match instruction.op:
        case "add" | "sub" | "mul" | "or" | "xor" | "phi" | "select" | "freeze":
            return bits
        case "and":
            mask = int(constant[1]) if constant else -1
            return min(bits, mask.bit_length()) if mask >= 0 else bits
        case "shl" if constant:
            return max(0, min(bits, width_of(instruction)) - int(constant[1]))
        case "lshr" | "ashr" if constant:
            return min(bits + int(constant[1]), width_of(instruction)) if bits else 0
        case "trunc" | "zext" | "sext" if bits:
            source = re.search(r" i(\d+) %\S+ to i(\d+)$", text)
            return min(bits, int(source[1]), int(source[2])) if source else _ALL
        case "trunc" | "zext" | "sext":
            return 0
        case _:
            return _ALL
