"""The ends of a loop's states, said as the instances that stand there in a netlist.

A loop calls its processes once for each step, with the beats of that step. None keeps anything between its calls, and all
their counters are back at their start, so what they do in all steps is what an instance does with the beats of a frame. The array
that a step leaves and the next one finds is the stream that comes back: the states of all steps but the last one.
"""

from __future__ import annotations

from hlsgen.certify.cpp.core_text import CoreText
from hlsgen.certify.cpp.meaning import Meaning, instance
from hlsgen.certify.netlist_reader import broken


def state_meanings(core: CoreText, states: int) -> dict[str, Meaning]:
    """The processes that send and keep states, of which the model has so many. Raises HG055."""
    found: dict[str, Meaning] = {}
    for loop in core.loops:
        for state in loop.states:
            call, kept = core.calls[state.recall], core.calls[state.remember].keeps
            if kept is None or call.keeps is None or (call.keeps.beats, call.keeps.count) != (kept.beats, kept.count):
                raise broken(call.name, "a step leaves another array than it finds.")
            beats, count, others = kept.beats, kept.count, kept.count * (loop.steps - 1)
            signed = int(beats.signed)
            found[state.recall] = instance(
                call,
                "hg_concat",
                (count, others),
                UNIT_A=beats.bits,
                A_SIGNED=signed,
                UNIT_B=beats.bits,
                B_SIGNED=signed,
                UNIT_OUT=beats.bits,
                LANES=beats.lanes,
                BEATS_A=count,
                BEATS_B=others,
            )
            found[state.remember] = instance(
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
    if len(found) != 2 * states:
        raise broken("hls", f"the core keeps {len(found) // 2} states, the model {states}.")
    return found
