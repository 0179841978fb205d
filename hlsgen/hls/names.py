"""Names of the C++ core: processes have those of the model's layers, as far as C++ allows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlsgen.dataflow.units import Node, Port
from hlsgen.hls.loops import Circle
from hlsgen.hls.reserved import is_reserved

#: Processes and ports, which end with what ports of their own are called.
_ENDS = ("take_frame", "send_frame", "s_axis", "m_axis")
#: How the names end that are made of that of a process: its stream, its beats, its most common constants.
_DERIVED = ("", "_out", "_beat", "_weights", "_thresholds", "_table")
#: The same of a loop: its step; of a state: what steps find and leave.
_LOOP, _STATE = ("", "_step"), (*_DERIVED, "_found", "_left")


def identifier(text: str) -> str:
    """The nearest identifier of C++ that no compiler reserves: no two underscores in a row, no underscore in front."""
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_") or "layer"
    if name[0].isdigit() or is_reserved(name) or name[0].isupper():
        name = f"n_{name}"
    return name


def loop_title(layer: str) -> str:
    """What a loop is called in the model. `layer`: the name of a state, which is that of the loop and a number."""
    return layer.rpartition("/")[0] or layer


def process_names(nodes: Sequence[Node], top: str, circles: Sequence[Circle] = ()) -> dict[str, str]:
    """A name for each node: that of its layer where the node gives the layer's result. What is made of it is different too.

    Of each loop one as well, by that of the first joint of its states, with " loop" behind.
    """
    found: dict[str, str] = {}
    labels = [node.name[len("s_axis") :] for node in nodes if isinstance(node.unit, Port)]
    used = {top} | {
        f"{before}{label}{end}"
        for label in labels
        for before, end in ((f"{top}_input", "_t"), (f"{top}_output", "_t"), *((name, "") for name in _ENDS))
    }

    def new(base: str, ends: Sequence[str]) -> str:
        name, n = base, 1
        while any(name + end in used for end in ends):
            n += 1
            name = f"{base}_{n}"
        used.update(name + end for end in ends)
        return name

    states = {state.joint.name for circle in circles for state in circle.states}
    for circle in circles:
        joint = circle.states[0].joint
        found[f"{joint.name} loop"] = new(identifier(loop_title(joint.layer)), _LOOP)
    for node in nodes:
        named = node.layer if node.layer and node.position >= 0 else node.name
        base = f"port{node.name[len('s_axis') :]}" if isinstance(node.unit, Port) else identifier(named)
        found[node.name] = new(base, _STATE if node.name in states else _DERIVED)
    return found
