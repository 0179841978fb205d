"""The ends of states of loops, and the memories of states between frames, as instances of a netlist.

A loop calls its processes once for each step, with the beats of that step. No process keeps anything between its calls,
and all counters are back at their start. The calls of all steps thus do the same as an instance with the beats of a
frame. The array between two steps is the feedback stream: the states of all steps except the last one.

The array of a state between frames is a memory. One process emits it, or the initial state, at the start of a frame.
Another one stores the next state at the end, in an array that then replaces the first one. Together they are hg_state.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.cpp.core_text import CoreText
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.cpp.process_text import FIND, FLAG, Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.frame_states import MEMORY, START
from hlsgen.certify.netlist_reader import broken


def state_meanings(core: CoreText, states: int) -> dict[str, Meaning]:
    """The processes that emit and store states. `states`: how many the model has. Raises HG055."""
    meanings: dict[str, Meaning] = {}
    for loop in core.loops:
        for state in loop.states:
            if not state.initial:
                continue
            call, array = core.calls[state.recall], core.calls[state.remember].state_array
            if (
                array is None
                or call.state_array is None
                or (call.state_array.beats, call.state_array.count) != (array.beats, array.count)
            ):
                raise broken(call.name, "a step writes another array than it reads.")
            beats, count, later_beats = array.beats, array.count, array.count * (loop.steps - 1)
            signed = int(beats.signed)
            meanings[state.recall] = instance(
                call,
                "hg_concat",
                (count, later_beats),
                UNIT_A=beats.bits,
                A_SIGNED=signed,
                UNIT_B=beats.bits,
                B_SIGNED=signed,
                UNIT_OUT=beats.bits,
                LANES=beats.lanes,
                BEATS_A=count,
                BEATS_B=later_beats,
            )
            meanings[state.remember] = instance(
                core.calls[state.remember],
                "hg_take",
                (count * loop.steps,),
                WIDTH=beats.bits * beats.lanes,
                HEIGHT=loop.steps,
                COLUMNS=1,
                FOLDS=count,
                Y0=0,
                Y1=loop.steps - 1,
                YS=1,
                X0=0,
                X1=1,
                XS=1,
                C0=0,
                C1=count,
                CS=1,
            )
    if len(meanings) != 2 * states:
        raise broken("hls", f"the core keeps {len(meanings) // 2} states, the model {states}.")
    return meanings


def frame_meanings(core: CoreText, tables: Tables) -> dict[str, Meaning]:
    """The processes of states between frames: the memories, and the process that makes the bit of a frame.

    Raises HG055.
    """
    meanings: dict[str, Meaning] = {}
    for call in core.calls.values():
        if call.function == FIND:
            meanings[call.name] = _memory(core, call, tables)
        elif call.later:
            call.only("BEATS")
            (beats, *flags), count, (port, *_) = call.inputs, call.number("BEATS", 1), core.inputs
            if call.tables or any(flag != FLAG for flag in flags) or call.outputs != (FLAG,):
                raise broken(call.name, f"{call.function} has other streams than bits of frames, or a table.")
            words = port.number("BEATS", 1)
            meanings[call.name] = instance(
                call, START, (count,), WIDTH=beats.bits * beats.lanes, BEATS=count, WORDS=words
            )
    return meanings


def _memory(core: CoreText, call: Call, tables: Tables) -> Meaning:
    beats, count = call.outputs[0], call.number("BEATS", 1)
    returning = core.wires[core.links[call.name][0][1]]
    if returning != beats:
        raise broken(call.name, "a frame leaves another array than the next one finds.")
    initial = tables.array(call, "initial", count, beats.lanes)
    lowest = -(1 << (beats.bits - 1)) if beats.signed else 0
    if not np.issubdtype(initial.dtype, np.integer) or initial.min() < lowest:
        raise broken(call.name, "its initial state has other numbers than its type.")
    if initial.max() >= lowest + (1 << beats.bits):
        raise broken(call.name, "its initial state has other numbers than its type.")
    file = tables.put(f"{call.name}_initial", [(initial, beats.bits)])
    width = beats.bits * beats.lanes
    return instance(call, MEMORY, (1, count), WIDTH=width, BEATS=count, TABLE=1, FILE=file)
