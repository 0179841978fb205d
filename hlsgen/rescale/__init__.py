"""Float chains between integers as exact step functions, and the hardware that realizes them."""

from hlsgen.ir.step_function import StepFunction, specialize
from hlsgen.rescale.binary.join_plan import Way
from hlsgen.rescale.binary.search import Found
from hlsgen.rescale.realize.compare import Compare
from hlsgen.rescale.realize.correct import Correct
from hlsgen.rescale.realize.float_ops import FloatUnits
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.rescale.realize.indexed import Indexed
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.scale import Scale
from hlsgen.rescale.realize.shift import Shift
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.rescale.select import KINDS, Choice, Realization, Single, Trial, Wish, realize, realize_join
from hlsgen.rescale.threshold_table import Steps

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
