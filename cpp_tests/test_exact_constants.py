"""Constants with hardware types give the same results as the native ones of C simulation."""

from __future__ import annotations

from pathlib import Path

import test_float32
import test_rescale
from rescale_cases import check
from test_quantize import parameters

from hlsgen.numerics.fixed import Rounding, int_type
from hlsgen.rescale import Comparators, Thresholds
from hlsgen.rescale.realize.table import TableMode


def test_realizations(tmp_path: Path) -> None:
    """Arrays are small, because compilers need long for arrays of class types."""
    byte, nibble = int_type(6, True), int_type(4, True)
    cases = [
        parameters(2, 2, byte, 0, 5, 2, Rounding.HALF_UP, nibble, -8, 7),
        parameters(2, 2, byte, 2, 5, 3, Rounding.UP, nibble, -8, 7),
        *(
            test_rescale.scaled(2, 2, byte, 5, 6, 4, kind, -99, 99)
            for kind in ("scale", "scale_nearest", "scale_mirrored", "scale_sides")
        ),
        test_rescale.floats(2, 2, byte, 5, 3, 9, 12, 15, 4, -31, 30),
        test_rescale.compared(Comparators, 2, 2, byte, 3, -2, True),
        test_rescale.compared(Thresholds, 2, 2, byte, 3, -2, True),
        *(test_rescale.looked_up(2, 2, byte, nibble, mode, 4, 3) for mode in TableMode),
        test_rescale.cascade(2, byte, nibble, 5),
        test_rescale.corrected(2, 2, byte, 7, -3, 0.6, 0),
        test_float32.converted(8, True, 0, 4, -20, 3),
    ]
    check(tmp_path, cases, "ap", exact=True)
