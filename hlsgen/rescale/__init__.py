"""Float chains between integers as exact step functions, and the hardware that realizes them."""

from hlsgen.rescale.choose import Realization, realize
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction, specialize
from hlsgen.rescale.thresholds import Thresholds

__all__ = ["FloatUnits", "Realization", "Shift", "StepFunction", "Thresholds", "realize", "specialize"]
