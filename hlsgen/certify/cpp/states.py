"""The ends of a loop's states, as instances of a netlist.

A loop calls its processes once for each step, with the beats of that step. No process keeps anything between its calls,
and all counters are back at their start. The calls of all steps thus do the same as an instance with the beats of a
frame. The array between two steps is the feedback stream: the states of all steps except the last one.
"""

from __future__ import annotations

from hlsgen.certify.cpp.core_text import CoreText
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.netlist_reader import broken


def state_meanings(core: CoreText, states: int) -> dict[str, Meaning]:
    """The processes that emit and store states. `states`: how many the model has. Raises HG055."""
    meanings: dict[str, Meaning] = {}
    for loop in core.loops:
        for state in loop.states:
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
