"""States of loops with one shared body: the `Previous` and `State` nodes of `shared_loop_body`."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir import Previous, State


def previous(node: NodeContext) -> Imported:
    """The state at the start of each step.

    Input 0 is any data with a row per step. Input 1 is the initial state after the state's quantizer, input 2 the
    initial state before it; both must be equal. Raises HG010.
    """
    quantized, initial = node.constant(1), node.constant(2)
    if quantized is None or initial is None or quantized.codes is None:
        representable = False
    else:
        representable = np.array_equal(quantized.array, initial.array)
    if quantized is None or not representable:
        text = "the initial state is no constant that the state's quantizer can represent."
        raise fail("HG010", node.name, text, "Build with --recurrence unrolled.")
    shape = (node.shape[0], *quantized.array.shape[1:])
    return Imported(([(Previous(str(node.attrs["state"]), quantized.array.astype(np.float32)), shape)],))


def output_with_states(node: NodeContext) -> Imported:
    """Input 0, an output of the loop; the other inputs are states that must be computed with it."""
    return Imported(([],), tuple([] for _ in node.computed), (State(""), node.shape))


def state(node: NodeContext) -> Imported:
    """The state at the end of each step."""
    return Imported(([(State(str(node.attrs["state"])), node.shape)],))
