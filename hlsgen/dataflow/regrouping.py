"""How a stream gets other beats: by which width converters, one behind the other."""

from __future__ import annotations

import math
from dataclasses import replace

from hlsgen.dataflow.units import Stream, stream_of
from hlsgen.dataflow.workload import divisors


def regrouped_streams(own: Stream, elements: int, lanes: int, group: int, target: int) -> list[Stream]:
    """Results of the converters that make beats of `lanes` elements, in groups of `group`.

    Two, where neither beat is whole beats of the other and a frame goes through the largest beat that divides both
    within `target` cycles: a multiplexer and registers with enables, in place of a store with a place for every element.
    """
    between = math.gcd(own.lanes, lanes)
    result = stream_of(own.type, lanes, elements, group)
    whole = own.group % between == 0 and group % between == 0
    tail = group % lanes or lanes
    if between in (own.lanes, lanes) or not whole or tail <= between or elements // between > target:
        return [result]
    return [replace(stream_of(own.type, between, elements, own.group), group=group), result]


def dense_lanes(group: int, lanes: int, beats: int) -> int:
    """Elements in the beats of what comes in groups of so many, without gaps, for a taker of so many lanes.

    The most that divide both, if so many fit into `beats` for each group; else the most that are not more.
    """
    both = math.gcd(group, lanes)
    return both if group // both <= beats else max(d for d in divisors(group) if d <= lanes)
