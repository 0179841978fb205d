"""Orders of streams, and which of them are held."""

from __future__ import annotations

import numpy as np
import pytest
from paths import ROOT

import hlsgen
from hlsgen.ir import stream_order


def test_equal_orders_are_held_once() -> None:
    build = hlsgen.check(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx")
    orders = stream_order.lay_out(build.graph).orders
    assert len({id(order) for order in orders}) == len({order.tobytes() for order in orders}) < len(orders) / 2


@pytest.mark.parametrize("portion", [1, 5, 1 << 16])
def test_vectors_in_portions(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors with one order of columns have a layout; after an exchange of any two elements there is none."""
    monkeypatch.setattr(stream_order, "_CHUNK", portion)
    order = (np.array([3, 0, 2, 1])[:, None] * 3 + np.array([1, 0, 2])).ravel()
    layout = stream_order.vector_layout(order, (4, 3))
    assert layout is not None
    assert (layout[0].tolist(), layout[1].tolist()) == ([3, 0, 2, 1], [1, 0, 2])
    for i in range(len(order)):
        for j in range(i):
            exchanged = order.copy()
            exchanged[[i, j]] = order[[j, i]]
            assert stream_order.vector_layout(exchanged, (4, 3)) is None
