"""Beats and words of weights that Vitis HLS cannot hold are refused, with the layer and a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from hlsgen.dataflow.units import Fork, MatVec, Node, Product, Stream
from hlsgen.diagnostics import HlsgenError
from hlsgen.hls.limits import check_limits
from hlsgen.hls.process import Rom
from hlsgen.numerics.fixed import IntType

BYTE = IntType(0, 255)


def node(lanes: int) -> Node:
    stream = Stream(BYTE, lanes, 1, lanes)
    return Node("wide", Fork(1), ("a",), (stream,), ("b",), stream)


def matrix(rows: int, columns: int) -> tuple[Node, Rom]:
    unit = MatVec(np.ones((rows, 1, columns), np.int64), np.arange(columns), Product.INTEGER, rows, columns, 1)
    source, result = Stream(BYTE, columns, 1, columns), Stream(BYTE, rows, 1, rows)
    weights = Rom(np.ones((1, rows, columns), np.int64), IntType(-8, 7), "")
    return Node("m", unit, ("a",), (source,), ("b",), result), weights


def test_beats() -> None:
    check_limits([node(512)], [])
    with pytest.raises(HlsgenError, match="HG040 wide: beats of 4104 bits"):
        check_limits([node(513)], [])


def test_words_of_weights() -> None:
    check_limits([], [matrix(128, 128)])
    with pytest.raises(HlsgenError, match=r"HG040 m: words of 66048 bits of weights\..*--target-cycles"):
        check_limits([], [matrix(128, 129)])
