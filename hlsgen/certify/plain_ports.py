"""Proves a core with ports without handshake: its ports, and that no instance ever waits.

Every instance between the ports is a link of a chain. It takes a beat whenever its consumer does: its pipeline has one
enable, `m_ready || !m_valid`, which also is its `s_ready`. The output port takes a beat in every cycle, so every enable
is always 1. Each frame then takes the sum of the latencies.
"""

from __future__ import annotations

from collections.abc import Collection

from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.port_wiring import PortFrame

#: Library modules that take a beat whenever their consumer does.
PROMPT = frozenset(
    """hg_argmax hg_compare hg_correct hg_dwmvu hg_f32_decode hg_f32_encode hg_f32_round_unit hg_f32_unit hg_float_key
    hg_lane_shift hg_lane_table hg_lines hg_lut_network hg_pair_add hg_pair_scale hg_pick hg_pool_tree hg_rank hg_reduce
    hg_scale hg_scale_f32 hg_shift hg_table hg_threshold""".split()
)


def check_never_waits(
    netlist: Netlist, generated: Collection[str], frames: tuple[list[PortFrame], list[PortFrame]]
) -> None:
    """Check that a word is a frame, and that no instance ever waits. Raises HG055.

    generated: instances of modules that a proof has read; their control is `hg_stages`, which takes a beat as above.
    """
    if any(frame.words != 1 for frame in (*frames[0], *frames[1])):
        raise broken("ports", "a frame is not one word, but there is no handshake.")
    for cell in netlist.cells.values():
        if cell.module not in PROMPT and cell.name not in generated:
            raise broken(cell.name, f"{cell.module} may wait while its consumer does not, but there is no handshake.")
        if len(netlist.streams_in[cell.name]) != 1 or len(netlist.streams_out[cell.name]) != 1:
            raise broken(cell.name, "it has several streams, which may wait for each other without a handshake.")
