"""Networks with ports without handshake: a frame may come in every cycle, and leaves a fixed number of cycles later.

Such a network is a chain of units that take a beat in every cycle in which their consumer does. The output port always
does, so no unit ever waits, and a frame takes the sum of their latencies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlsgen.dataflow import units
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.flow import KeepFlow, PipelineFlow, RouteFlow, flow_of
from hlsgen.diagnostics import Collector

_CODE, _PACKED = "HG044", "Build with --ports packed."


def with_plain_ports(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes with all ports plain."""
    plain = units.Port(plain=True)
    return [replace(node, unit=plain) if isinstance(node.unit, units.Port) else node for node in nodes]


def has_plain_ports(nodes: Sequence[units.Node]) -> bool:
    """True if the ports of a network have no handshake."""
    return isinstance(nodes[0].unit, units.Port) and nodes[0].unit.plain


def fixed_latency(nodes: Sequence[units.Node], latency: Callable[[units.Unit], int]) -> int:
    """Cycles from a frame at the input to the frame at the output. `latency`: of a unit. Raises HG044.

    The error names each node that could wait, or that needs more than a cycle for a frame.
    """
    problems, inner = Collector(), divided(nodes)[1]
    for node in inner or nodes:
        reason = _reason(node)
        if reason:
            problems.error(_CODE, node.layer or node.name, f"--ports plain: {reason}", _PACKED)
    cycles = 0 if problems.errors else sum(latency(node.unit) for node in inner)
    if not problems.errors and not cycles:
        problems.error(
            _CODE, "--ports", "plain: nothing is computed between the ports, so there is no register.", _PACKED
        )
    problems.finish()
    return cycles


def _reason(node: units.Node) -> str:
    """Why plain ports do not allow a node; "" if they do."""
    beats = max(node.result.beats, *(stream.beats for stream in node.sources))
    if beats > 1:
        return f"a frame takes {beats} cycles here. Every layer must take a frame in each cycle."
    if isinstance(node.unit, units.Fork):
        return f"a tensor has {node.unit.count} consumers. Supported: a chain of layers, without branches."
    if isinstance(node.unit, units.MatVec | units.GroupedMatVec):
        return "its weights are in a memory, or its products in DSP blocks. Supported: weights as part of the circuit."
    match flow_of(node):
        case PipelineFlow(emits=marks) | KeepFlow(keeps=marks) if len(node.sources) == 1 and all(marks):
            return ""
        case RouteFlow(order=order) if len(node.sources) == 1 and set(order) == {0}:
            return ""
        case _:
            return "its unit can wait while its consumer accepts."
