"""Binds integer functions of vectors to hg_rows_max, hg_rows_share, hg_rows_fixed_share and hg_rows_norm."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.dataflow.row_sizes import NormSizes, ShareSizes, filled, fixed_point_sum
from hlsgen.dataflow.units import Node, RowsUnit
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share
from hlsgen.verilog.binding.memory_files import Binding, Parameter, words


def bind(node: Node, unit: RowsUnit) -> Binding:
    """The module of an integer function of a vector."""
    source, result = node.source.type, node.result.type
    common: dict[str, Parameter] = {"LANES": node.source.lanes, "BEATS": unit.beats, "IN_W": source.bits}
    match unit.function:
        case BelowLargest():
            parameters: dict[str, Parameter] = {"IN_SIGNED": int(source.signed), "OUT_W": result.bits}
            return Binding("hg_rows_max", common | parameters, f"maximum of {unit.count} subtracted")
        case Share():
            return _share(node, unit, unit.function, common)
        case FixedPointShare():
            return _fixed_share(node, unit, unit.function, common)
        case IntegerNorm():
            return _norm(node, unit, unit.function, common)
        case _:
            assert_never(unit.function)


def _share(node: Node, unit: RowsUnit, share: Share, common: dict[str, Parameter]) -> Binding:
    sizes = ShareSizes.of(share, unit.source, unit.count)
    parameters: dict[str, Parameter] = {
        "WEIGHT_W": sizes.weight,
        "NUMBER_W": sizes.number,
        "SUM_W": sizes.sum,
        "OUT_W": node.result.type.bits,
        "FILE": node.name,
    }
    tables = ((share.weights, sizes.weight), (share.numbers, sizes.number))
    memories = {
        f"{node.name}_{n:04d}.mem": words(filled(table, unit.source)[:, None], bits)
        for n, (table, bits) in enumerate(tables)
    }
    return Binding("hg_rows_share", common | parameters, f"shares of the sum of {unit.count}", memories)


def _fixed_share(node: Node, unit: RowsUnit, share: FixedPointShare, common: dict[str, Parameter]) -> Binding:
    file = f"{node.name}.mem"
    parameters: dict[str, Parameter] = {"SUM_W": fixed_point_sum(unit.count), "OUT_W": share.bits, "FILE": file}
    text = words(filled(share.exponentials, unit.source)[:, None], 31)
    title = f"fixed-point shares of the sum of {unit.count}"
    return Binding("hg_rows_fixed_share", common | parameters, title, {file: text})


def _norm(node: Node, unit: RowsUnit, norm: IntegerNorm, common: dict[str, Parameter]) -> Binding:
    sizes = NormSizes.of(norm, unit.source, unit.count)
    file = f"{node.name}.mem"
    parameters: dict[str, Parameter] = {
        "IN_SIGNED": int(unit.source.signed),
        "CENTERED": int(norm.centred),
        "SUM_W": sizes.sum,
        "SQ_W": sizes.squares,
        "MEAN_W": sizes.mean,
        "ROOT_W": sizes.root,
        "WEIGHT_W": sizes.weight,
        "BIAS_W": sizes.bias,
        "ACC_W": sizes.number,
        "SHIFT": norm.shift,
        "BITS": sizes.quotient,
        "OUT_W": norm.type.bits,
        "WRAPS": int(norm.wraps),
        "FILE": file,
    }
    place = ((norm.bias & ((1 << sizes.bias) - 1)) << sizes.weight) | (norm.weight & ((1 << sizes.weight) - 1))
    text = words(place.reshape(unit.beats, node.source.lanes), sizes.bias + sizes.weight)
    kind = "layer" if norm.centred else "root-mean-square"
    return Binding("hg_rows_norm", common | parameters, f"{kind} norm of {unit.count}", {file: text})
