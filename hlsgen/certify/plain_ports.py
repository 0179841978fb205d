"""Proves that in a core with ports without handshake no instance ever waits, and the latency of every word.

Every instance between the ports is a link of a chain. It takes a beat whenever its consumer does: its pipeline has one
enable, `m_ready || !m_valid`, which also is its `s_ready`. The output port takes a beat in every cycle, so every enable
is always 1. Each frame then takes the sum of the latencies.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.latencies import LATENCIES
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.port_wiring import PortFrame


def fixed_latency(
    netlist: Netlist, generated: Mapping[str, int], frames: tuple[list[PortFrame], list[PortFrame]]
) -> int:
    """The cycles from in_valid to out_valid. Raises HG055 if an instance may wait, or if a frame is not one word.

    generated: the latency of each instance of a module that a proof has read, which is controlled by `hg_stages`.
    """
    if any(frame.words != 1 for frame in (*frames[0], *frames[1])):
        raise broken("ports", "a frame is not one word, but there is no handshake.")
    cycles = 0
    for cell in netlist.cells.values():
        if len(netlist.streams_in[cell.name]) != 1 or len(netlist.streams_out[cell.name]) != 1:
            raise broken(cell.name, "it has several streams, which may wait for each other without a handshake.")
        if cell.name in generated:
            cycles += generated[cell.name]
        elif cell.module in LATENCIES:
            cycles += LATENCIES[cell.module](cell)
        else:
            raise broken(cell.name, f"{cell.module} may wait while its consumer does not, but there is no handshake.")
    return cycles
