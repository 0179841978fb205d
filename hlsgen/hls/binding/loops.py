"""Binds reading and writing of states, and the starts of sequences, to functions of the C++ library."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.dataflow.units import FrameMemory, FrameStart, Node
from hlsgen.hls.process import Process, process, rom


def bind_recall(beats: int) -> Process:
    """Call that emits the state at the start of a step."""
    return process("recall", f"{beats} beats of the state at the start of a step", header="state", BEATS=beats)


def bind_remember(beats: int) -> Process:
    """Call that stores the state at the end of a step."""
    return process("remember", f"{beats} beats of the state for the next step", header="state", BEATS=beats)


def bind_find(node: Node, unit: FrameMemory) -> Process:
    """Call that emits the state that a frame finds."""
    type_ = node.result.type
    tables = {"initial": rom(unit.initial, "[beat][element]", signed=type_.signed)}
    return process(
        "find", f"{unit.beats} beats of the state of the frame before", tables, header="state", BEATS=unit.beats
    )


def bind_frame_start(unit: FrameStart, tuser: bool) -> Process:
    """Call that emits a bit for each frame. `tuser`: the port has bits that start a sequence."""
    function, summary = ("frame_start", "starts a sequence") if tuser else ("first_frame", "is the first one")
    call = process(function, f"a bit for each frame: it {summary}", header="state", BEATS=unit.beats)
    return replace(call, later=True)
