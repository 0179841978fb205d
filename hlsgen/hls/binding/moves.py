"""Binds units that only move elements to functions of the C++ library."""

from __future__ import annotations

from hlsgen.dataflow.units import Stream, regrouped
from hlsgen.hls.process import Process, process


def bind_width(source: Stream, result: Stream) -> Process:
    """The function that changes the number of lanes: whole beats become one, one becomes several, or neither."""
    about = f"{source.lanes} to {result.lanes} elements a beat"
    step, _ = regrouped(source, result)
    if step == result.lanes:
        return process("narrow", about, header="width", GROUP=source.group, GROUPS=source.groups)
    if step == source.lanes:
        return process("widen", about, header="width", GROUP=result.group, GROUPS=result.groups)
    return process(
        "gearbox", about, header="width", STEP=step, GROUP_IN=source.group, GROUP_OUT=result.group,
        GROUPS_OUT=result.groups,
    )  # fmt: skip
