"""Computes QuantLSTMCell, which no executor has, step by step as Brevitas' QuantLSTM does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array

_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND_TO_ZERO": np.trunc,
}


def quant_lstm_cell(arrays: Sequence[Array], attributes: Mapping[str, Any]) -> list[Array]:
    """The hidden states of all steps along the axis of the sequence, the last hidden state, the last cell state.

    Sums of products are exact except for one rounding to float32, as in the numeric contract.
    """
    x, hidden, cell = arrays[:3]
    weights_x, weights_h, biases = arrays[3:7], arrays[7:11], arrays[11:15]
    parameters = [arrays[n : n + 3] for n in range(15, 48, 3)]

    def quantize(value: Array, number: int, name: str) -> Array:
        scale, zero, bits = parameters[number]
        narrow = attributes.get(f"{name}_narrow", attributes.get(f"{name}_narrow_range", 0))
        low, high = 0.0, 2.0 ** float(bits) - 1 - bool(narrow)
        if attributes.get(f"{name}_signed", 1):
            low, high = -(2.0 ** (float(bits) - 1)) + bool(narrow), 2.0 ** (float(bits) - 1) - 1
        mode = attributes.get(f"{name}_rounding_mode", "ROUND")
        rounded = _ROUNDINGS[mode.decode() if isinstance(mode, bytes) else mode]
        codes = np.clip(rounded(np.float32(value / scale) + zero), low, high)
        return ((codes - zero) * scale).astype(np.float32)

    def summed(gate: int, part: Array, number: int, name: str) -> Array:
        products = [
            (data.astype(np.float64) @ weight.T.astype(np.float64)).astype(np.float32)
            for data, weight in ((part, weights_x[gate]), (hidden, weights_h[gate]))
        ]
        return quantize(np.float32(products[0] + products[1]) + biases[gate], number, name)

    def sigmoid(value: Array) -> Array:
        return (1 / (1 + np.exp(-value.astype(np.float64)))).astype(np.float32)

    def tanh(value: Array) -> Array:
        return np.tanh(value.astype(np.float64)).astype(np.float32)

    parts = list(np.moveaxis(x, 1, 0) if attributes.get("batch_first", 0) else x)
    is_reversed = bool(attributes.get("reverse_input", 0))
    states = []
    for part in parts[::-1] if is_reversed else parts:
        input_gate = quantize(sigmoid(summed(0, part, 2, "input_acc")), 6, "input_sigmoid")
        if attributes.get("cifg", 0):
            forget_gate = quantize(np.ones_like(input_gate), 6, "input_sigmoid") - input_gate
        else:
            forget_gate = quantize(sigmoid(summed(1, part, 3, "forget_acc")), 7, "forget_sigmoid")
        candidate = quantize(tanh(summed(2, part, 4, "cell_acc")), 8, "cell_tanh")
        output_gate = quantize(sigmoid(summed(3, part, 5, "output_acc")), 9, "output_sigmoid")
        kept_cell, new_cell = (
            quantize(product, 1, "cell_state") for product in (forget_gate * cell, input_gate * candidate)
        )
        cell = quantize(kept_cell + new_cell, 1, "cell_state")
        hidden = quantize(output_gate * quantize(tanh(cell), 10, "hidden_state_tanh"), 0, "output")
        states.append(hidden)
    sequence = np.stack(states[::-1] if is_reversed else states, int(bool(attributes.get("batch_first", 0))))
    return [sequence, hidden, cell]
