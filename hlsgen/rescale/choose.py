"""Which hardware realizes a step function: the one place of that decision."""

from __future__ import annotations

from hlsgen.rescale import floats, shift, thresholds
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.thresholds import Thresholds

Realization = Shift | Thresholds | FloatUnits

#: Thresholds are taken up to this many steps and bits of memory.
MAX_STEPS = 4095
MAX_MEMORY_BITS = 1 << 21


def realize(f: StepFunction, positions: int) -> Realization:
    """The cheapest hardware proven equal to f. `positions`: entries of its parameter memory.

    A shift is proven on all thresholds; thresholds are the function itself; float32 units execute
    the model's operations literally. Raises HG037.
    """
    if f.output_type.bits > 1 and (found := shift.find(f)) is not None:
        return found
    steps = min(MAX_STEPS, MAX_MEMORY_BITS // max(1, positions * (f.input_type.bits + 2)))
    if (table := thresholds.find(f, max(steps, 15))) is not None:
        return table
    return floats.build(f)
