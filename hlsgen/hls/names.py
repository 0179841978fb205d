"""Names of the C++ core: processes are named after the model's layers, as far as C++ allows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlsgen.dataflow.units import Node, Port
from hlsgen.hls.loops import NetworkLoop
from hlsgen.hls.reserved import is_reserved

#: Names of port processes and ports, which a port's label may extend.
_FIXED_NAMES = ("take_frame", "send_frame", "s_axis", "m_axis")
#: Name of the stream with a bit for each frame: it starts a sequence.
STARTS = "starts"
#: Suffixes of names derived from a process name: its stream, its beats, its shape, its most common constants.
_DERIVED = ("", "_out", "_beat", "_shape", "_weights", "_thresholds", "_table")
#: Suffixes for a loop: its step function. For a state: its value at the start and at the end of a step.
_LOOP, _STATE = ("", "_step"), (*_DERIVED, "_found", "_left")


def identifier(text: str) -> str:
    """The nearest unreserved C++ identifier: no two underscores in a row, no leading underscore."""
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_") or "layer"
    if name[0].isdigit() or is_reserved(name) or name[0].isupper():
        name = f"n_{name}"
    return name


def loop_title(layer: str) -> str:
    """Name of a loop in the model. `layer`: the name of a state, which is the loop's name and a number."""
    return layer.rpartition("/")[0] or layer


def process_names(nodes: Sequence[Node], top: str, loops: Sequence[NetworkLoop] = ()) -> dict[str, str]:
    """A unique C++ name for each node: the node's own name if C++ accepts it.

    Names derived from it by suffixes are unique, too. Loops also have names, by the name of their first state's joint
    followed by " loop". A loop over frames is named after this joint.
    """
    names: dict[str, str] = {}
    labels = [node.name[len("s_axis") :] for node in nodes if isinstance(node.unit, Port)]
    used = {top, STARTS} | {
        f"{prefix}{label}{suffix}"
        for label in labels
        for prefix, suffix in ((f"{top}_input", "_t"), (f"{top}_output", "_t"), *((name, "") for name in _FIXED_NAMES))
    }

    def reserve_name(base: str, suffixes: Sequence[str]) -> str:
        name, count = base, 1
        while any(name + suffix in used for suffix in suffixes):
            count += 1
            name = f"{base}_{count}"
        used.update(name + suffix for suffix in suffixes)
        return name

    states = {state.joint.name for loop in loops for state in loop.states}
    for loop in loops:
        joint = loop.states[0].joint
        base = f"{identifier(joint.name)}_frame" if loop.of_frames else identifier(loop_title(joint.layer))
        names[f"{joint.name} loop"] = reserve_name(base, _LOOP)
    for node in nodes:
        base = f"port{node.name[len('s_axis') :]}" if isinstance(node.unit, Port) else identifier(node.name)
        names[node.name] = reserve_name(base, _STATE if node.name in states else _DERIVED)
    return names
