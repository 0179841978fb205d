"""Float chains between integers as exact step functions, and the hardware that realizes them."""

from hlsgen.rescale.choose import KINDS, Choice, Realization, Single, Trial, Wish, realize
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction, specialize
from hlsgen.rescale.steps import Steps
from hlsgen.rescale.thresholds import Thresholds

__all__ = [
    "KINDS",
    "Choice",
    "FloatUnits",
    "Realization",
    "Shift",
    "Single",
    "StepFunction",
    "Steps",
    "Thresholds",
    "Trial",
    "Wish",
    "realize",
    "specialize",
]
