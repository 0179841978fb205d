"""IntQuant with a scale, zero point and bit width of each element, equal to qonnx for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Net, save

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Graph

Array = Any
MODES = ("ROUND", "FLOOR", "CEIL", "UP", "DOWN", "HALF_UP", "HALF_DOWN")


def by_qonnx(x: Array, scale: Array, zero: Array, bits: Array, **attributes: Any) -> Array:
    """Each element alone: qonnx takes one bit width."""
    intquant = pytest.importorskip("qonnx.custom_op.general.intquant")
    parts = np.broadcast_arrays(x, scale, zero, bits)
    results = [
        intquant.int_quant(*(np.asarray(v, np.float32) for v in element), *attributes.values())
        for element in zip(*(part.ravel() for part in parts), strict=True)
    ]
    return np.array(results, np.float32).reshape(parts[0].shape)


def checked(model: onnx.ModelProto, folder: Path) -> Graph:
    save(model, folder / "model.onnx")
    return hlsgen.check(folder / "model.onnx").graph


def attributes_of(rng: np.random.Generator) -> dict[str, Any]:
    return {"signed": int(rng.integers(2)), "narrow": int(rng.integers(2)), "rounding_mode": str(rng.choice(MODES))}


@pytest.mark.parametrize("seed", range(12))
def test_weights(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    shapes = [(6, 5), (1, 5), (6, 1), (1, 1), ()]
    scale, zero, bits = (shapes[int(rng.integers(len(shapes)))] for _ in range(3))
    scales, zeros = 2.0 ** rng.integers(-3, 2, scale), rng.integers(-2, 3, zero)
    widths, weight = rng.integers(0, 6, (6, 5) if seed % 2 else bits or (1, 5)), rng.normal(0, 4, (6, 5))
    attributes = attributes_of(rng)
    net = Net((1, 6)).quant(scale=1.0, bits=4.0, signed=1)
    data, arrays = net.last, [np.asarray(a, np.float32) for a in (weight, scales, zeros, widths)]
    net.node("IntQuant", *arrays, domain="qonnx.custom_op.general", **attributes)
    model = net.node("MatMul", data, net.last).model()
    expected = by_qonnx(*arrays, **attributes)
    graph = checked(model, tmp_path)
    x = rng.integers(-8, 8, (50, 6)).astype(np.float32)
    assert (reference.evaluate(graph, x) == x @ expected).all()


@pytest.mark.parametrize("seed", range(12))
def test_activations(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(100 + seed)
    shape = (1, 3, 4)
    parts = [shape, (1, 3, 1), (1, 4), ()]
    scale, zero = (parts[int(rng.integers(len(parts)))] for _ in range(2))
    scales, zeros = 2.0 ** rng.integers(-3, 2, scale), rng.integers(-2, 3, zero)
    widths = rng.integers(2, 7, shape) * (rng.random(shape) < 0.8)
    attributes = attributes_of(rng)
    arrays = [np.asarray(a, np.float32) for a in (scales, zeros, widths)]
    net = Net(shape).quant(scale=0.125, bits=8.0, signed=1)
    model = net.then("IntQuant", *arrays, domain="qonnx.custom_op.general", **attributes).model()
    x = rng.integers(-128, 128, (60, 3, 4)).astype(np.float32) / 8
    graph = checked(model, tmp_path)
    expected = np.stack([by_qonnx(frame[None], *arrays, **attributes) for frame in x])
    assert (reference.evaluate(graph, x).reshape(expected.shape) == expected).all()


def test_equal_widths_are_one_number(tmp_path: Path) -> None:
    single, tensor = (Net((1, 4)).quant(bits=bits).model() for bits in (5.0, np.full((1, 4), 5.0, np.float32)))
    assert [str(layer.result.type) for layer in checked(single, tmp_path).layers] == [
        str(layer.result.type) for layer in checked(tensor, tmp_path).layers
    ]


@pytest.mark.parametrize(
    "scale, bits, said",
    [
        (0.3, [[2.0, 3.0, 4.0, 5.0]], "no powers of two"),
        (0.5, [[1.0, 3.0, 4.0, 5.0]], "bipolar"),
        (0.5, [[2.5, 3.0, 4.0, 5.0]], "0 to 32"),
        (0.5, [[2.0, 3.0, 4.0]], "the data [1, 4]"),
    ],
)
def test_what_stays_refused_is_named(scale: float, bits: list[list[float]], said: str, tmp_path: Path) -> None:
    model: onnx.ModelProto = Net((1, 4)).quant(scale=scale, bits=np.array(bits, np.float32), signed=1).model()
    with pytest.raises(hlsgen.HlsgenError, match=r"HG02[13]") as error:
        checked(model, tmp_path)
    assert said in str(error.value)
