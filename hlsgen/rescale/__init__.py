"""Float chains between integers as exact step functions, and the hardware that realizes them."""

from hlsgen.rescale.choose import KINDS, Choice, Realization, Single, Trial, Wish, realize, realize_join
from hlsgen.rescale.compare import Compare
from hlsgen.rescale.correct import Correct
from hlsgen.rescale.float_scale import FloatScale
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.indexed import Indexed
from hlsgen.rescale.merge import Found
from hlsgen.rescale.pair import PairAdd, PairScale
from hlsgen.rescale.rank import Rank
from hlsgen.rescale.scale import Scale
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction, specialize
from hlsgen.rescale.steps import Steps
from hlsgen.rescale.table import Table
from hlsgen.rescale.thresholds import Thresholds
from hlsgen.rescale.way import Way

__all__ = [
    "KINDS",
    "Choice",
    "Compare",
    "Correct",
    "FloatScale",
    "FloatUnits",
    "Found",
    "Indexed",
    "PairAdd",
    "PairScale",
    "Rank",
    "Realization",
    "Scale",
    "Shift",
    "Single",
    "StepFunction",
    "Steps",
    "Table",
    "Thresholds",
    "Trial",
    "Way",
    "Wish",
    "realize",
    "realize_join",
    "specialize",
]
