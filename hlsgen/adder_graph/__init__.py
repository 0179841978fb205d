"""Products of a constant integer matrix as a graph of adders: sums that several rows need are computed once.

`find` returns the graph, `schedule` the registers between its levels. docs/library.md describes how the sums are found.
`agreements` is the same for codes and weights of one bit, with counters of bits in place of adders.
"""

from __future__ import annotations

from hlsgen.adder_graph.agreements import MOST_AGREEMENTS, AgreementGraph, agreement_tables, agreements
from hlsgen.adder_graph.graph import Adder, AdderGraph, Output, inverted_bits, width
from hlsgen.adder_graph.pipeline import Pipeline, cycles, schedule
from hlsgen.adder_graph.read_sums import register_bits
from hlsgen.adder_graph.sharing import MOST_DIGITS, find, find_exact
from hlsgen.adder_graph.signed_digits import count_digits, digits

__all__ = [
    "MOST_AGREEMENTS",
    "MOST_DIGITS",
    "Adder",
    "AdderGraph",
    "AgreementGraph",
    "Output",
    "Pipeline",
    "agreement_tables",
    "agreements",
    "count_digits",
    "cycles",
    "digits",
    "find",
    "find_exact",
    "inverted_bits",
    "register_bits",
    "schedule",
    "width",
]
