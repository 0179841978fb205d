"""Binds reading and writing of loop states to functions of the C++ library."""

from __future__ import annotations

from hlsgen.hls.process import Process, process


def bind_recall(beats: int) -> Process:
    """Call that emits the state at the start of a step."""
    return process("recall", f"{beats} beats of the state at the start of a step", header="state", BEATS=beats)


def bind_remember(beats: int) -> Process:
    """Call that stores the state at the end of a step."""
    return process("remember", f"{beats} beats of the state for the next step", header="state", BEATS=beats)
