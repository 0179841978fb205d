"""Tables that share a site: one of Xilinx 7 series is a table of six inputs, or two of five inputs that are the same.

Yosys counts tables. Placement may put two of at most five inputs together into one site, unless both lead into a carry
chain or a multiplexer beside the site, which only its first output reaches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

#: What two tables of a site read together.
INPUTS = 5


def shared_sites(module: dict[str, Any]) -> int:
    """Sites that are saved if tables of a flat module share them: each takes the partner that has most inputs in
    common.

    A count from below of what is possible, and from above of what placement does, which looks at distances too.
    """
    cells = module["cells"].values()
    first_output = {
        bit
        for cell in cells
        for port, bits in cell["connections"].items()
        if (cell["type"], port) == ("CARRY4", "S") or (cell["type"].startswith("MUXF") and port in ("I0", "I1"))
        for bit in bits
    }
    tables = [
        (
            frozenset(
                bit for port, bits in cell["connections"].items() if port != "O" for bit in bits if isinstance(bit, int)
            ),
            cell["connections"]["O"][0] in first_output,
        )
        for cell in cells
        if re.fullmatch("LUT[1-5]", cell["type"])
    ]
    tables.sort(key=lambda table: (-len(table[0]), sorted(table[0])))
    readers: defaultdict[int, list[int]] = defaultdict(list)
    for n, (inputs, _) in enumerate(tables):
        for bit in inputs:
            readers[bit].append(n)
    alone, pairs = set(range(len(tables))), 0

    def fits(one: int, other: int) -> bool:
        both_first = tables[one][1] and tables[other][1]
        return other in alone and other != one and not both_first and len(tables[one][0] | tables[other][0]) <= INPUTS

    for n, (inputs, _) in enumerate(tables):
        if n in alone:
            near = {m for bit in inputs if len(readers[bit]) < 64 for m in readers[bit] if fits(n, m)}
            if near:
                alone -= {n, min(near, key=lambda m: (len(inputs ^ tables[m][0]), m))}
                pairs += 1
    # What reads so little that nothing has to be the same.
    by_size: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for n in sorted(alone):
        by_size[len(tables[n][0]), tables[n][1]].append(n)
    for few in range(INPUTS // 2 + 1):
        for most in range(INPUTS - few, few - 1, -1):
            for one, other in ((False, False), (False, True), (True, False)):
                small, large = by_size[few, one], by_size[most, other]
                count = len(small) // 2 if small is large else min(len(small), len(large))
                for _ in range(count):
                    small.pop()
                    large.pop()
                pairs += count
    return pairs
