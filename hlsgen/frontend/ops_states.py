"""States of loops whose body stays one: what `loop_once` puts in front of the body, and behind the quantizers of states."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir import Previous, State


def previous(node: NodeContext) -> Imported:
    """Input 0: any data with a row for each step; input 1: the initial state behind the state's quantizer; input 2: in front of it."""
    initial, given = node.constant(1), node.constant(2)
    if initial is None or given is None or initial.codes is None or not np.array_equal(initial.array, given.array):
        raise fail(
            "HG010",
            node.name,
            "the initial state is no tensor of codes of the state's quantizer.",
            "Build with --recurrence unrolled.",
        )
    shape = (node.shape[0], *initial.array.shape[1:])
    return Imported(([(Previous(str(node.attrs["state"]), initial.array.astype(np.float32)), shape)],))


def together(node: NodeContext) -> Imported:
    """Input 0, and states that are made though nothing of it depends on them."""
    return Imported(([],), tuple([] for _ in node.computed), (State(""), node.shape))


def state(node: NodeContext) -> Imported:
    return Imported(([(State(str(node.attrs["state"])), node.shape)],))
