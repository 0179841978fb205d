"""A network is the same hardware, except for names, in every dialect of ONNX."""

from __future__ import annotations

from pathlib import Path

import canonical_verilog
import numpy as np
import onnx
import ort
import pytest
from dialects import FORMS, Network, expected, power, random_network, write
from integer_models import compiled, evaluated, same
from numpy.typing import NDArray
from oracles import Qonnx

import hlsgen

SIZES = [(8, 6, 4), (12, 8, 6, 3)]


def rtl(build: hlsgen.Build) -> str:
    """A digest of all hardware files, independent of names of layers."""
    files = {name.removeprefix("rtl/"): data for name, data in build.files.items() if name.startswith("rtl/")}
    assert any(name.endswith((".mem", "_adders.v")) for name in files)  # the weights
    return canonical_verilog.digest(files)


def inputs(net: Network, samples: int) -> NDArray[np.int64]:
    """Codes of the network's input, the extremes among them."""
    limit = 1 << (net.bits - 1)
    x = np.random.default_rng(5).integers(-limit, limit, (samples, net.columns))
    x[0], x[1] = -limit, limit - 1
    return x


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("sizes", SIZES)
def test_dialects_give_the_same_files(bits: int, sizes: tuple[int, ...], tmp_path: Path) -> None:
    """QONNX, QCDQ (Clip where codes are narrower than 8 bits) and integer ONNX; MatMul and Add, or Gemm."""
    for last_relu in (False, True):
        net = random_network(bits, bits, sizes, last_relu)
        first = rtl(compiled(write(net, "qonnx"), tmp_path))
        for form in FORMS:
            for gemm in (False, True):
                assert rtl(compiled(write(net, form, gemm), tmp_path)) == first, (form, gemm)
        if bits == 8:
            assert rtl(compiled(write(net, "integer", codes_in=True), tmp_path)) == first


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sweep
def test_the_dialects_are_one_network(form: str, tmp_path: Path) -> None:
    """The models say the same to qonnx and onnxruntime, and hlsgen computes it."""
    for bits, sizes in ((4, SIZES[0]), (8, SIZES[1])):
        net = random_network(1, bits, sizes)
        x = inputs(net, 60)
        codes = expected(net, x)
        assert len(np.unique(codes)) > 8
        real = (x * power(net.exponents[0])).astype(np.float32)
        unit = 1 if form == "integer" else power(net.exponents[-1])
        model = write(net, form)
        theirs = Qonnx(shaped(model, net))(real) if form == "qonnx" else ort.run(model, {"x": real})[0]
        assert same(theirs, codes * unit)
        assert same(evaluated(model, real, tmp_path), codes * unit)


def shaped(model: onnx.ModelProto, net: Network) -> onnx.ModelProto:
    """The model with type and shape of its output, for qonnx."""
    kind = model.graph.output[0].type.tensor_type
    kind.elem_type = onnx.TensorProto.FLOAT
    for size in (1, net.layers[-1].weight.shape[1]):
        kind.shape.dim.add().dim_value = size
    return model


@pytest.mark.sweep
def test_other_numbers_are_other_hardware(tmp_path: Path) -> None:
    """The comparison sees a single bias, and a scale."""
    net = random_network(3, 6, SIZES[0])
    first = rtl(compiled(write(net, "qonnx"), tmp_path))
    net.layers[0].bias[2] += 9
    assert rtl(compiled(write(net, "integer"), tmp_path)) != first
    net.layers[0].bias[2] -= 9
    assert rtl(compiled(write(net, "integer"), tmp_path)) == first
    narrower = random_network(3, 5, SIZES[0])
    assert rtl(compiled(write(narrower, "integer"), tmp_path)) != first
