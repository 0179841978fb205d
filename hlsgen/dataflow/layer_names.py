"""Names of nodes after the layers of the graph, as identifiers that Verilog and C++ accept.

A layer's name is also the start of further names: its plumbing (`conv1_width`), its nets (`conv1_data`) and its files
(`conv1_0001.mem`). No other layer gets one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hlsgen.dataflow.keywords import is_keyword

#: Longest name of a layer in the hardware; longer ones lose their middle.
MAX_LENGTH = 64
#: First words of the suffixes that nodes, nets, modules and files of a layer append to its name.
_SUFFIXES = frozenset(
    """a adders b back beat counts data even fork found high join key left loop low mask moments narrow
    numerator op order out part power ready repeat root rows search set slice split start step table thresholds tiles
    valid wait weights width windows""".split()
)
#: Names of ports, nets and instances of every core, and the start of such names.
_FIXED = frozenset(
    "aclk aresetn clk clock in in_data in_valid layer load out out_data out_valid port reset rst".split()
)
_FIXED_STARTS = ("frame_error", "hg_", "inner_s_axi", "m_axi", "port_", "rst_", "s_axi", "tlast_error")


def layer_names(layers: Iterable[str]) -> list[str]:
    """A name for each layer of the graph; the name does not depend on the folding or the target.

    Names that differ only in case count as equal, as they are names of files, too.
    """
    names: list[str] = []
    used: set[str] = set()
    extended: set[str] = set()
    for layer in layers:
        base = identifier(layer)
        name, count = base, 1
        while name.lower() in used or _clashes(name.lower(), used, extended):
            if _clashes(base.lower(), used, extended):
                base = name = f"n_{base}"
            else:
                count += 1
                name = f"{base}_{count}"
        names.append(name)
        used.add(name.lower())
        extended.update(_starts(name.lower()))
    return names


def identifier(text: str) -> str:
    """The nearest identifier: letters, digits and single underscores, at most MAX_LENGTH, no keyword, no fixed name."""
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_") or "layer"
    if len(name) > MAX_LENGTH:
        half = MAX_LENGTH // 2 - 1
        name = f"{name[:half]}_{name[-half:]}".replace("__", "_")
    if name[0].isdigit() or is_keyword(name) or name.lower() in _FIXED or name.lower().startswith(_FIXED_STARTS):
        name = f"n_{name}"
    return name


def is_start_of(name: str, port_names: Iterable[str]) -> bool:
    """True if a port has this name with a suffix that nodes, nets and files append."""
    return any(name.lower() in _starts(port.lower()) for port in port_names)


def _clashes(name: str, used: set[str], extended: set[str]) -> bool:
    """True if a used name with a suffix could be `name`, or `name` with a suffix could be a used name."""
    return name in extended or any(start in used for start in _starts(name))


def _starts(name: str) -> Iterator[str]:
    """The parts of `name` before each suffix that it may end with: `a` of a_width, a_wait0, a_fork_1 and a_0001."""
    words = name.split("_")
    for place in range(1, len(words)):
        word = words[place]
        if word.rstrip("0123456789") in _SUFFIXES or (word.isdigit() and len(word) >= 4):
            yield "_".join(words[:place])
