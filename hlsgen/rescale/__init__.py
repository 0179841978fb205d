"""Turns chains of operations between integer codes into exact step functions, and picks hardware proven equal."""

from hlsgen.ir.step_function import StepFunction, merge_equal_sets, specialize
from hlsgen.rescale.binary.float_join import FloatJoin
from hlsgen.rescale.binary.join_plan import JoinPlan
from hlsgen.rescale.binary.search import JoinSearch
from hlsgen.rescale.prices import LIBRARY, Prices, Realization, Single
from hlsgen.rescale.realize.compare import Comparators
from hlsgen.rescale.realize.correct import Correct
from hlsgen.rescale.realize.float_ops import FloatUnits
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.rescale.realize.indexed import Indexed
from hlsgen.rescale.realize.lane_shift import LaneShift
from hlsgen.rescale.realize.lane_table import LaneTable
from hlsgen.rescale.realize.lines import Lines
from hlsgen.rescale.realize.neuron_table import NeuronTable
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.scale import Scale
from hlsgen.rescale.realize.shared import Shared
from hlsgen.rescale.realize.shift import Shift
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.rescale.select import KINDS, Choice, Preference, Trial, choose_float_join, choose_join, choose_realization
from hlsgen.rescale.threshold_table import ThresholdTable

__all__ = [
    "KINDS",
    "LIBRARY",
    "Choice",
    "Comparators",
    "Correct",
    "FloatJoin",
    "FloatScale",
    "FloatUnits",
    "Indexed",
    "JoinPlan",
    "JoinSearch",
    "LaneShift",
    "LaneTable",
    "Lines",
    "NeuronTable",
    "PairAdd",
    "PairScale",
    "Preference",
    "Prices",
    "Rank",
    "Realization",
    "Scale",
    "Shared",
    "Shift",
    "Single",
    "StepFunction",
    "Table",
    "ThresholdTable",
    "Thresholds",
    "Trial",
    "choose_float_join",
    "choose_join",
    "choose_realization",
    "merge_equal_sets",
    "specialize",
]
