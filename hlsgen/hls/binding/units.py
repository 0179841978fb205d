"""Binds every unit to its function of the C++ library and the arguments of that function."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow.units import (
    AdderMatVec,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    DynamicMatVec,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    FrameMemory,
    FrameStart,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    NormMoments,
    NormRoot,
    NormScale,
    PadBorder,
    PoolUnit,
    Port,
    ProgramUnit,
    ReduceTree,
    Reorder,
    RescaleUnit,
    RowsUnit,
    SelectLanes,
    Slice,
    SlidingWindow,
    SoftmaxUnit,
    TiledPool,
    WidthConverter,
)
from hlsgen.diagnostics import fail
from hlsgen.hls.binding.float_units import bind_float_key, bind_float_unit
from hlsgen.hls.binding.moves import (
    bind_argmax,
    bind_beside,
    bind_concat,
    bind_gather,
    bind_join,
    bind_pad,
    bind_pick,
    bind_take,
    bind_width,
)
from hlsgen.hls.binding.norm import bind_moments, bind_root, bind_scale
from hlsgen.hls.binding.realizations import bind_realization
from hlsgen.hls.binding.rows import bind_rows
from hlsgen.hls.binding.softmax import bind_softmax
from hlsgen.hls.binding.weighted import bind_convolution, bind_groups, bind_matrix, bind_product
from hlsgen.hls.binding.windows import bind_pool, bind_sliding, bind_tiled, bind_tree
from hlsgen.hls.process import Process, process


def bind_node(node: Node, fraction: int | None = None) -> Process:
    """The function call of a node. `fraction`: fraction bits of its result, see `binary_point`."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case Port() | Fifo() | Slice() | FrameStart() | FrameMemory():
            raise AssertionError("ports, FIFOs, slices and states are no processes of the library")
        case WidthConverter():
            return bind_width(source, result)
        case RescaleUnit():
            return bind_realization(unit.realization, unit.table, source, result, fraction)
        case MatVec():
            return bind_matrix(node, unit)
        case AdderMatVec():
            return bind_matrix(node, unit.matrix)
        case DynamicMatVec():
            return bind_product(node, unit)
        case Fork(count):
            return process("fork", f"fork to {count} consumers", BEATS=source.beats)
        case FloatKeyUnit():
            return bind_float_key(source)
        case FloatUnit():
            return bind_float_unit(unit, source)
        case ConvUnit():
            return bind_convolution(unit)
        case PoolUnit():
            return bind_pool(unit)
        case TiledPool():
            return bind_tiled(unit)
        case SlidingWindow():
            return bind_sliding(unit)
        case GroupedMatVec():
            return bind_groups(node, unit)
        case ReduceTree():
            return bind_tree(node, unit)
        case JoinStreams():
            return bind_join(node, unit)
        case ConcatBeats():
            return bind_concat(node, unit)
        case ConcatChannels():
            return bind_beside(node, unit)
        case SelectLanes():
            return bind_pick(node, unit)
        case Crop():
            return bind_take(node, unit)
        case PadBorder():
            return bind_pad(unit)
        case Reorder():
            return bind_gather(node, unit)
        case RowsUnit():
            return bind_rows(node, unit)
        case ProgramUnit():
            text = "there is no C++ for programs of ALIR files."
            raise fail("HG040", node.layer, text, "Use --target verilog.")
        case SoftmaxUnit():
            return bind_softmax(node, unit)
        case ArgMaxUnit():
            return bind_argmax(node, unit)
        case NormMoments():
            return bind_moments(node, unit)
        case NormRoot():
            return bind_root(node, unit)
        case NormScale():
            return bind_scale(unit, node.sources[1].beats)
        case _:
            assert_never(unit)
