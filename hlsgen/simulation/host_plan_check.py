"""Compares the plan of the host code with the graph: no step may be lost, and the results must be the interpreter's.

Code and test vectors of the self-test follow the plan, so the self-test alone does not see a step that it lacks.
"""

from __future__ import annotations

import math
from collections import Counter

from hlsgen.host.plan import Output, by_input, plan_head, plan_outputs
from hlsgen.host.vectors import tail_numbers
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Graph
from hlsgen.numerics.fixed import Array


def plan_differences(graph: Graph, codes: Array) -> int:
    """Number of steps that the plan lacks, and of results for output codes that differ from the interpreter's."""
    outputs = plan_outputs(graph)
    return _lost_steps(graph, outputs) + _wrong_results(graph, outputs, codes)


def _lost_steps(graph: Graph, outputs: tuple[Output, ...]) -> int:
    """Steps that neither the host code nor the user runs, by name; quantizers of inputs that the plan lacks."""
    planned, graph_steps, lost = Counter[str](), Counter[str](), 0
    for part in by_input(graph):
        head = plan_head(part)
        planned.update([*(name for name, _ in head.user_steps), *(step.step.name for step in head.steps)])
        graph_steps.update(step.name for step in part.head)
        lost += head.makes_codes and head.encode is not part.encode
    for output in outputs:
        tails = [output.tail, *(output.tail.joined.sides if output.tail.joined else ())]
        for tail in tails:
            planned.update([*(name for name, _ in tail.user_steps), *(step.step.name for step in tail.steps)])
    graph_steps.update(step.name for step in graph.tail)
    for assembly in graph.output_assemblies:
        graph_steps.update(step.name for part in assembly.parts for step in part.steps)
        graph_steps.update(step.name for step in (assembly.host_binary.steps if assembly.host_binary else ()))
    return lost + (graph_steps - planned).total()


def _wrong_results(graph: Graph, outputs: tuple[Output, ...], codes: Array) -> int:
    """Results of outputs of which the user computes nothing."""
    if graph.model.outputs:
        expected = reference.named_outputs(graph, codes)
    else:
        expected = {graph.model.output_name: reference.decode_output(graph, codes)}
    wrong = 0
    for output in outputs:
        if output.tail.user_steps or output.tensor not in expected:
            continue
        size = math.prod(output.shape)
        part = codes[:, output.offset : output.offset + size] if graph.outputs else codes
        ours = tail_numbers(output.tail, part.reshape(len(codes), *output.shape))
        theirs = expected[output.tensor]
        if ours.size != theirs.size or ours.dtype != theirs.dtype:
            wrong += theirs.size
            continue
        ours = ours.reshape(theirs.shape)
        wrong += int(((ours != theirs) & ~((ours != ours) & (theirs != theirs))).sum())
    return wrong
