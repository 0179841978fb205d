"""Binds every unit to its function of the C++ library and the arguments of that function."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow import units
from hlsgen.diagnostics import fail
from hlsgen.hls.binding import moves
from hlsgen.hls.binding.float_units import bind_float_key, bind_float_unit
from hlsgen.hls.binding.norm import bind_moments, bind_root, bind_scale
from hlsgen.hls.binding.realizations import bind_realization
from hlsgen.hls.binding.rows import bind_rows
from hlsgen.hls.binding.softmax import bind_softmax
from hlsgen.hls.binding.weighted import bind_convolution, bind_groups, bind_matrix, bind_product
from hlsgen.hls.binding.windows import bind_pool, bind_sliding, bind_tiled, bind_tree
from hlsgen.hls.process import Process, process


def bind_node(node: units.Node, fraction: int | None = None) -> Process:
    """The function call of a node. `fraction`: fraction bits of its result, see `binary_point`."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case units.Port() | units.Fifo() | units.Slice() | units.FrameStart() | units.FrameMemory():
            raise AssertionError("ports, FIFOs, slices and states are no processes of the library")
        case units.WidthConverter():
            return moves.bind_width(source, result)
        case units.RescaleUnit():
            return bind_realization(unit.realization, unit.table, source, result, fraction)
        case units.NeuronUnit():
            raise AssertionError("the prices of this target leave neuron-table out")
        case units.MatVec():
            return bind_matrix(node, unit)
        case units.AdderMatVec():
            return bind_matrix(node, unit.matrix)
        case units.DynamicMatVec():
            return bind_product(node, unit)
        case units.Fork(count):
            return process("fork", f"fork to {count} consumers", BEATS=source.beats)
        case units.FloatKeyUnit():
            return bind_float_key(source)
        case units.FloatUnit():
            return bind_float_unit(unit, source)
        case units.ConvUnit():
            return bind_convolution(unit)
        case units.PoolUnit():
            return bind_pool(unit)
        case units.TiledPool():
            return bind_tiled(unit)
        case units.SlidingWindow():
            return bind_sliding(unit)
        case units.GroupedMatVec():
            return bind_groups(node, unit)
        case units.ReduceTree():
            return bind_tree(node, unit)
        case units.JoinStreams():
            return moves.bind_join(node, unit)
        case units.ConcatBeats():
            return moves.bind_concat(node, unit)
        case units.ConcatChannels():
            return moves.bind_beside(node, unit)
        case units.SelectLanes():
            return moves.bind_pick(node, unit)
        case units.Crop():
            return moves.bind_take(node, unit)
        case units.PadBorder():
            return moves.bind_pad(unit)
        case units.Reorder():
            return moves.bind_gather(node, unit)
        case units.RowsUnit():
            return bind_rows(node, unit)
        case units.ProgramUnit():
            text = "there is no C++ for programs of operations: ALIR files, --merge-layers."
            raise fail("HG040", node.layer, text, "Use --target verilog.")
        case units.SoftmaxUnit():
            return bind_softmax(node, unit)
        case units.ArgMaxUnit():
            return moves.bind_argmax(node, unit)
        case units.NormMoments():
            return bind_moments(node, unit)
        case units.NormRoot():
            return bind_root(node, unit)
        case units.NormScale():
            return bind_scale(unit, node.sources[1].beats)
        case _:
            assert_never(unit)
