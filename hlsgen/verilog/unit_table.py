"""The table of unit kinds, and its four readings: module, latency, resources and ready path of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from typing_extensions import assert_never

from hlsgen.dataflow import units
from hlsgen.rescale import Choice
from hlsgen.verilog.binding.memory_files import Binding
from hlsgen.verilog.matrix_parts import FACTOR_BITS
from hlsgen.verilog.memory_sizes import memory
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.quantizer_parts import is_quantizer, quantizer_parts
from hlsgen.verilog.units import elements, matrix, programs, routing, vectors, windows
from hlsgen.verilog.units.spec import CostOptions, UnitSpec


def spec_of(unit: units.Unit) -> UnitSpec[Any]:
    """The description of a unit's kind."""
    match unit:
        case units.Port():
            return routing.PORT
        case units.WidthConverter():
            return routing.WIDTH
        case units.Fork():
            return routing.FORK
        case units.FrameStart():
            return routing.FRAME_START
        case units.FrameMemory():
            return routing.FRAME_MEMORY
        case units.Fifo():
            return routing.FIFO
        case units.Slice():
            return routing.REGISTER_SLICE
        case units.SelectLanes():
            return routing.SELECT_LANES
        case units.ConcatBeats():
            return routing.CONCAT
        case units.ConcatChannels():
            return routing.CONCAT_CHANNELS
        case units.Crop():
            return routing.CROP
        case units.PadBorder():
            return routing.PAD
        case units.Reorder():
            return routing.GATHER
        case units.MatVec():
            return matrix.MATRIX
        case units.ConvUnit():
            return matrix.CONVOLUTION
        case units.GroupedMatVec():
            return matrix.GROUPS
        case units.DynamicMatVec():
            return matrix.PRODUCT
        case units.AdderMatVec():
            return matrix.ADDERS
        case units.PoolUnit():
            return windows.POOL
        case units.TiledPool():
            return windows.TILED_POOL
        case units.SlidingWindow():
            return windows.SLIDING_WINDOW
        case units.ReduceTree():
            return windows.REDUCE_TREE
        case units.RowsUnit():
            return vectors.ROWS
        case units.ProgramUnit():
            return programs.PROGRAM
        case units.SoftmaxUnit():
            return vectors.SOFTMAX
        case units.ArgMaxUnit():
            return vectors.ARG_MAX
        case units.NormMoments():
            return vectors.NORM_MOMENTS
        case units.NormRoot():
            return vectors.NORM_ROOT
        case units.NormScale():
            return vectors.NORM_SCALE
        case units.FloatKeyUnit():
            return elements.FLOAT_KEY
        case units.RescaleUnit():
            return elements.RESCALE
        case units.NeuronUnit():
            return elements.NEURONS
        case units.FloatUnit():
            return elements.FLOAT
        case units.JoinStreams():
            return elements.JOIN
        case _:
            assert_never(unit)


def bind_node(node: units.Node, style: int = 0) -> Binding:
    """The module of a node. `style`: the kind of weight memories, see hg_weights."""
    return spec_of(node.unit).bind(node, node.unit, style)


def latency(unit: units.Unit) -> int:
    """Cycles from the input beat that completes an output beat until that output beat is valid, see `UnitSpec`."""
    return spec_of(unit).latency(unit)


def hops(unit: units.Unit) -> int | None:
    """Units that a ready signal passes here: 1 if s_ready depends on m_ready, None if only on registers."""
    return spec_of(unit).ready_hops


def unit_parts(node: units.Node, *, dsp: int, style: int, family: str = "xc7") -> Parts:
    """Expected resources of a unit, by part. `node_parts` adds the implementation of a quantizer."""
    return spec_of(node.unit).parts(node, node.unit, CostOptions(dsp, style, family))


def node_parts(
    node: units.Node, choices: Mapping[str, Choice], counted: set[str], *, dsp: int, style: int, family: str = "xc7"
) -> Parts:
    """Parts of a unit, or of a quantizer according to its choice.

    `counted`: layers whose whole price is already counted.
    """
    if not is_quantizer(node, choices):
        return unit_parts(node, dsp=dsp, style=style, family=family)
    first = node.layer not in counted
    counted.add(node.layer)
    return quantizer_parts(
        node, choices[node.layer], first, partial(memory, family=family), factor=FACTOR_BITS.get(family, 0)
    )
