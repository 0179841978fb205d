"""Binds the ends of a loop's states to functions of the C++ library."""

from __future__ import annotations

from hlsgen.hls.process import Process, process


def bind_recall(beats: int) -> Process:
    """The function that sends what a step finds."""
    return process("recall", f"{beats} beats that a step finds", header="state", BEATS=beats)


def bind_remember(beats: int) -> Process:
    """The function that keeps what a step leaves."""
    return process("remember", f"{beats} beats for the next step", header="state", BEATS=beats)
