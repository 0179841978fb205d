"""Products of a constant integer matrix as a graph of adders: sums that several rows need are made once.

`find` gives the graph, `schedule` the registers between its levels. docs/library.md says how the sums are found.
"""

from __future__ import annotations

from hlsgen.adder_graph.graph import Adder, AdderGraph, Output, width
from hlsgen.adder_graph.pipeline import Pipeline, schedule
from hlsgen.adder_graph.sharing import MOST_DIGITS, find
from hlsgen.adder_graph.signed_digits import count_digits, digits

__all__ = [
    "MOST_DIGITS",
    "Adder",
    "AdderGraph",
    "Output",
    "Pipeline",
    "count_digits",
    "digits",
    "find",
    "schedule",
    "width",
]
