"""hlsgen.lut_network: networks of lookup tables that equal the functions they are made of, with few tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlsgen.lut_network import LUT_INPUTS, LutFunction, LutNetwork, LutNetworkBuilder

Array = Any


def every_input(bits: int) -> Array:
    return np.arange(1 << bits)[:, None] >> np.arange(bits) & 1


def codes_of(network: LutNetwork) -> Array:
    """The output of a network for every input, as numbers."""
    return (network.apply(every_input(network.inputs)).astype(np.int64) << np.arange(network.outputs)).sum(axis=-1)


def built(codes: Array, bits: int) -> LutNetwork:
    network = LutNetworkBuilder(len(codes).bit_length() - 1)
    return network.finish(network.add(codes, bits, range(network.inputs)))


def neuron(rng: np.random.Generator, inputs: int, input_bits: int, output_bits: int) -> Array:
    """The codes of a neuron with weights of 4 bits, whose sums saturate on both sides."""
    sums = np.zeros(1 << (inputs * input_bits), np.int64)
    for n in range(inputs):
        sums += int(rng.integers(-7, 8)) * (np.arange(len(sums)) >> (n * input_bits) & ((1 << input_bits) - 1))
    step = max(1, int(sums.std()) >> (output_bits - 1))
    return np.clip((sums - int(sums.mean())) // step + (1 << output_bits >> 1), 0, (1 << output_bits) - 1)


@pytest.mark.parametrize("inputs", [1, 5, 6, 7, 8, 9, 10])
@pytest.mark.parametrize("bits", [1, 3])
def test_random_functions(inputs: int, bits: int) -> None:
    """Functions that hardly any cut makes narrower."""
    codes = np.random.default_rng(inputs + bits).integers(0, 1 << bits, 1 << inputs)
    network = built(codes, bits)
    assert (codes_of(network) == codes).all()
    assert max(len(function.inputs) for function in network.functions) <= LUT_INPUTS


@pytest.mark.cases(5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "inputs, input_bits, output_bits, most",
    [(3, 2, 2, 2), (4, 2, 4, 9), (3, 3, 2, 9), (5, 2, 2, 10), (10, 1, 1, 7), (6, 2, 2, 14), (7, 2, 1, 13)],
)
def test_neurons(inputs: int, input_bits: int, output_bits: int, most: int, seed: int) -> None:
    """The sum of some inputs replaces them: far fewer tables than 2^(bits - 6) for each output bit."""
    codes = neuron(np.random.default_rng(seed), inputs, input_bits, output_bits)
    network = built(codes, output_bits)
    assert (codes_of(network) == codes).all()
    assert len(network.functions) <= most


def test_levels() -> None:
    """A function uses functions of lower levels only; the last level is the output."""
    rng = np.random.default_rng(3)
    network = LutNetworkBuilder(12)
    outputs = [bit for n in (0, 4) for bit in network.add(neuron(rng, 4, 2, 2), 2, range(n, n + 8))]
    built_network = network.finish(outputs)
    assert built_network.outputs == 4
    for start, end in zip((0, *built_network.ends), built_network.ends, strict=False):
        for function in built_network.functions[start:end]:
            assert max(function.inputs) < built_network.inputs + start


def test_equal_functions_are_one() -> None:
    """Also those that use the same bits of different neurons."""
    codes = neuron(np.random.default_rng(1), 4, 2, 2)
    network = LutNetworkBuilder(8)
    first = network.add(codes, 2, range(8))
    assert network.add(codes, 2, range(8)) == first
    assert network.add(codes ^ 1, 2, range(8))[1] == first[1]


def test_outputs_that_are_inputs_constants_or_unused() -> None:
    """They are functions of the last level, too. A function that no output uses is left out."""
    network = LutNetworkBuilder(3)
    copied = network.add(np.array([0, 1]), 1, [2])
    constant = network.add(np.array([1, 1]), 1, [0])
    network.add(np.array([0, 1, 1, 0]), 1, [0, 1])
    assert copied == [2]
    finished = network.finish([*copied, *constant])
    assert finished == LutNetwork(3, (LutFunction((2,), 0b10), LutFunction((), 1)), (2,))
