"""Units with windows of an image: pools, sliding windows, and trees over their taps."""

from __future__ import annotations

from hlsgen.dataflow.units import (
    Node,
    PoolUnit,
    ReduceTree,
    SlidingWindow,
    TiledPool,
)
from hlsgen.ir.window import Reduction
from hlsgen.verilog.binding.memory_files import Binding, Parameter
from hlsgen.verilog.matrix_parts import walking
from hlsgen.verilog.memory_sizes import buffer
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.units.parameters import above_one, code_bits, window_parameters
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, beat_registers, cycles, without_style


def _bind_pool(node: Node, unit: PoolUnit) -> Binding:
    bits, kernel = node.source.type.bits, unit.window.kernel
    parameters: dict[str, Parameter] = {
        "LANES": node.source.lanes,
        **window_parameters(unit.window, unit.height, unit.width),
        "GROUPS": unit.folds,
        "DEPTH": unit.depth,
        "X_W": bits,
        "PAD": code_bits(unit.pad, bits),
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
    }
    return Binding("hg_pool", parameters, f"{unit.kind.value} of {kernel[0]} x {kernel[1]}")


def _bind_tiled_pool(node: Node, unit: TiledPool) -> Binding:
    parameters: dict[str, Parameter] = {
        "LANES": node.source.lanes,
        "X_W": node.source.type.bits,
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
        "HEIGHT": unit.height,
        "WIDTH": unit.width,
        "KH": unit.kernel[0],
        "KW": unit.kernel[1],
        "FOLDS": unit.folds,
    }
    summary = f"{unit.kind.value} of {unit.kernel[0]} x {unit.kernel[1]}, windows do not overlap"
    return Binding("hg_reduce", parameters, summary)


def _bind_sliding_window(node: Node, unit: SlidingWindow) -> Binding:
    bits, kernel, dilations = node.source.type.bits, unit.window.kernel, unit.window.dilations
    place = window_parameters(unit.window, unit.height, unit.width)
    del place["DH"], place["DW"]
    parameters: dict[str, Parameter] = {
        "UNIT": bits,
        "LANES": node.source.lanes // unit.pixels,
        **place,
        "FOLDS": unit.folds,
        "ROWS": unit.rows,
        "COLUMNS": unit.columns,
        "PAD": code_bits(unit.pad, bits),
        **above_one(PIXELS=unit.pixels, WINDOWS=unit.windows, DH=dilations[0], DW=dilations[1]),
    }
    return Binding("hg_unfold", parameters, f"windows of {kernel[0]} x {kernel[1]}, all taps at once")


def _bind_reduce_tree(node: Node, unit: ReduceTree) -> Binding:
    parameters: dict[str, Parameter] = {
        "LANES": node.result.lanes,
        "TAPS": unit.taps,
        "X_W": node.source.type.bits,
        "X_SIGNED": int(node.source.type.signed),
        "SUM": int(unit.kind is Reduction.SUM),
        "ACC_W": node.result.type.bits,
    }
    return Binding("hg_pool_tree", parameters, f"{unit.kind.value} of {unit.taps} taps")


def turning(slots: int) -> float:
    """LUTs that rotate this many rows of a line buffer, for each bit that leaves it."""
    return (slots > 1) * (1.0 if slots <= 4 else 3.7)


def _sliding_window_parts(node: Node, unit: SlidingWindow, options: CostOptions) -> Parts:
    """One memory for each tap, with the pixels of its column bank or, if they are few, of the whole row."""
    columns = unit.span.kernel[1]
    row_words = unit.columns * unit.folds
    copied = row_words <= (64 if columns > 2 else 32)
    words = row_words if copied else -(-unit.columns // columns) * unit.folds
    walk, turned = walking(unit.depth), node.result.bits * (turning(unit.rows) + (columns > 1 and not copied))
    parts = Parts("SlidingWindow", {"control": walk, "turned": turned}, {**beat_registers(node), "control": walk})
    for _ in range(unit.rows * columns):
        parts.hold("buffer", buffer(words, node.source.bits, options.family, no_collision=True))
    return parts


def _reduce_tree_parts(node: Node, unit: ReduceTree, _options: CostOptions) -> Parts:
    return Parts("ReduceTree", {"data": 1.5 * unit.taps * node.result.bits}, beat_registers(node))


def _pool_parts(node: Node, unit: PoolUnit, options: CostOptions) -> Parts:
    walk = walking(unit.depth)
    lut = {"control": walk, "data": 4.0 * node.result.bits}
    parts = Parts("PoolUnit", lut, {**beat_registers(node), "control": walk})
    parts.hold("buffer", buffer(unit.depth, node.source.bits, options.family, no_collision=True))
    return parts


def _tiled_pool_parts(node: Node, unit: TiledPool, options: CostOptions) -> Parts:
    lut = {"control": 30.0, "data": 2.0 * node.result.bits}
    parts = Parts("TiledPool", lut, {**beat_registers(node), "control": 20.0})
    if unit.words > 1:
        parts.hold("buffer", buffer(unit.words, node.result.bits, options.family))
    return parts


def _reduce_tree_latency(unit: ReduceTree) -> int:
    return max(1, (unit.taps - 1).bit_length())


POOL = UnitSpec(without_style(_bind_pool), cycles(3), _pool_parts, ready_hops=None)
TILED_POOL = UnitSpec(without_style(_bind_tiled_pool), cycles(2), _tiled_pool_parts, ready_hops=1)
SLIDING_WINDOW = UnitSpec(without_style(_bind_sliding_window), cycles(2), _sliding_window_parts, ready_hops=None)
REDUCE_TREE = UnitSpec(without_style(_bind_reduce_tree), _reduce_tree_latency, _reduce_tree_parts, ready_hops=1)
