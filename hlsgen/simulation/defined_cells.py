"""QuantLSTMCell, which no executor has, computed as Brevitas' QuantLSTM computes it, step by step."""

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
    """The hidden states of all steps, one along the axis of the sequence, the last hidden state, the last cell state.

    Sums of products are exact but for one rounding to float32, as the numeric contract has them.
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
        products = [(a.astype(np.float64) @ w.T.astype(np.float64)).astype(np.float32)
                    for a, w in ((part, weights_x[gate]), (hidden, weights_h[gate]))]  # fmt: skip
        return quantize(np.float32(products[0] + products[1]) + biases[gate], number, name)

    def sigmoid(value: Array) -> Array:
        return (1 / (1 + np.exp(-value.astype(np.float64)))).astype(np.float32)

    def tanh(value: Array) -> Array:
        return np.tanh(value.astype(np.float64)).astype(np.float32)

    parts = list(np.moveaxis(x, 1, 0) if attributes.get("batch_first", 0) else x)
    back = bool(attributes.get("reverse_input", 0))
    states = []
    for part in parts[::-1] if back else parts:
        into = quantize(sigmoid(summed(0, part, 2, "input_acc")), 6, "input_sigmoid")
        if attributes.get("cifg", 0):
            keep = quantize(np.ones_like(into), 6, "input_sigmoid") - into
        else:
            keep = quantize(sigmoid(summed(1, part, 3, "forget_acc")), 7, "forget_sigmoid")
        new = quantize(tanh(summed(2, part, 4, "cell_acc")), 8, "cell_tanh")
        out = quantize(sigmoid(summed(3, part, 5, "output_acc")), 9, "output_sigmoid")
        kept, added = (quantize(p, 1, "cell_state") for p in (keep * cell, into * new))
        cell = quantize(kept + added, 1, "cell_state")
        hidden = quantize(out * quantize(tanh(cell), 10, "hidden_state_tanh"), 0, "output")
        states.append(hidden)
    together = np.stack(states[::-1] if back else states, int(bool(attributes.get("batch_first", 0))))
    return [together, hidden, cell]
