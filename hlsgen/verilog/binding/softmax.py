"""Binds a Softmax to hg_softmax."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.dataflow.units import Node, SoftmaxUnit
from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array
from hlsgen.verilog.binding.memory_files import Binding, Parameter, words

#: Bits of mantissas that no unit has.
_M_W = 44


def bind_softmax(node: Node, unit: SoftmaxUnit) -> Binding:
    source, fraction = node.source.type, 0 if unit.in_order else unit.fraction
    width = 32 if unit.in_order else fraction + 1
    parameters: dict[str, Parameter] = {
        "LANES": unit.lanes,
        "BEATS": unit.beats,
        "IN_W": source.bits,
        "IN_SIGNED": int(source.signed),
        "LAST": unit.last,
        "W": width,
        "FRACTION": fraction,
        "IN_ORDER": int(unit.in_order),
        "LOW": 0,
        "M_W": _M_W,
        "FILE": node.name,
    }
    parameters |= {"TINY": 1} if unit.tiny else {}
    masks: dict[str, str] = {}
    if unit.mask is not None:
        parameters |= {"MASKS": unit.mask.size // unit.lanes}
        masks = {f"{node.name}_mask.mem": words(unit.mask.reshape(-1, unit.lanes), 2)}
    summary = f"Softmax of {unit.lanes * unit.beats} elements, {unit.last + 1} powers"
    if unit.factors is not None:
        parameters |= {"LOW": unit.factors.low_bits, "M_W": unit.factors.bits}
        return Binding(
            "hg_softmax", parameters, f"{summary}, products of two words", masks | _factors(node.name, unit.factors)
        )
    power = _float_bits(unit.powers, unit.closed) if unit.in_order else _fixed(unit.powers, unit.closed, fraction)
    memories = masks | {
        f"{node.name}_numerator.mem": words(_float_bits(unit.numerators, unit.closed), 32),
        f"{node.name}_power.mem": words(power, width),
    }
    return Binding("hg_softmax", parameters, summary, memories)


def _factors(name: str, factors: PowerFactors) -> dict[str, str]:
    high = (factors.shifts.astype(object) << factors.bits) | factors.mantissas.astype(object)
    return {
        f"{name}_high.mem": words(high.reshape(-1, 1), factors.bits + 8),
        f"{name}_low.mem": words(factors.lows.astype(object).reshape(-1, 1), factors.bits + 1),
    }


def _float_bits(values: Array, closed: bool) -> Array:
    return np.append(values, np.zeros(int(closed), np.float32)).view(np.uint32).astype(np.int64).reshape(-1, 1)


def _fixed(values: Array, closed: bool, fraction: int) -> Array:
    """Exact fixed-point numbers as Python integers."""
    integers = np.empty((len(values) + closed, 1), object)
    integers[:, 0] = [int(Fraction(value) * (1 << fraction)) for value in values.tolist()] + [0] * closed
    return integers
