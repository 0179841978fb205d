"""Chooses the chain of width converters between two lane counts."""

from __future__ import annotations

import math
from dataclasses import replace

from hlsgen.dataflow.units import Stream, stream_of
from hlsgen.dataflow.workload import divisors


def regrouped_streams(source: Stream, elements: int, lanes: int, group: int, target: int) -> list[Stream]:
    """Result streams of the converters that make beats of `lanes` elements, in groups of `group`.

    There are two converters if neither beat is a multiple of the other, and a frame passes in beats of the greatest
    common divisor within `target` cycles. A multiplexer and registers with enables then replace a store with a place
    for every element.
    """
    common_lanes = math.gcd(source.lanes, lanes)
    result = stream_of(source.type, lanes, elements, group)
    aligned = source.group % common_lanes == 0 and group % common_lanes == 0
    tail = group % lanes or lanes
    if (
        common_lanes in (source.lanes, lanes)
        or not aligned
        or tail <= common_lanes
        or elements // common_lanes > target
    ):
        return [result]
    return [replace(stream_of(source.type, common_lanes, elements, source.group), group=group), result]


def dense_lanes(group: int, lanes: int, beats: int) -> int:
    """Elements a beat, without gaps, of a stream in groups of `group`, for a consumer of `lanes` lanes.

    The greatest common divisor of both, if a group then fits into `beats` beats; else the largest divisor of the group
    that is not above `lanes`.
    """
    common_lanes = math.gcd(group, lanes)
    return common_lanes if group // common_lanes <= beats else max(d for d in divisors(group) if d <= lanes)
