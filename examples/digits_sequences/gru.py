"""The recurrent network of this example, in float or quantized with Brevitas."""

from __future__ import annotations

import torch
from brevitas import nn as qnn
from brevitas.quant.scaled_int import (
    Int8ActPerTensorFloat,
    Int8BiasPerTensorFloatInternalScaling,
    Int8WeightPerTensorFloat,
    Uint8ActPerTensorFloat,
)
from torch import Tensor, nn

ROWS, PIXELS = 8, 8  # an image is a sequence of 8 rows
STATE, CLASSES = 16, 10
WEIGHT_BITS, BITS = 6, 6


def quant(quantized: bool, bits: int = BITS, signed: bool = True) -> nn.Module:
    if not quantized:
        return nn.Identity()
    kind = Int8ActPerTensorFloat if signed else Uint8ActPerTensorFloat
    return qnn.QuantIdentity(act_quant=kind, bit_width=bits)


def linear(quantized: bool, inputs: int, outputs: int) -> nn.Module:
    if not quantized:
        return nn.Linear(inputs, outputs)
    return qnn.QuantLinear(
        inputs,
        outputs,
        bias=True,
        weight_quant=Int8WeightPerTensorFloat,
        weight_bit_width=WEIGHT_BITS,
        bias_quant=Int8BiasPerTensorFloatInternalScaling,
    )


class Cell(nn.Module):
    """A gated recurrent unit: takes a row (n, 8), quantized, and the state (n, 16), gives the next state."""

    def __init__(self, quantized: bool) -> None:
        super().__init__()
        self.of_row = nn.ModuleDict({gate: linear(quantized, PIXELS, STATE) for gate in "rzn"})
        self.of_state = nn.ModuleDict({gate: linear(quantized, STATE, STATE) for gate in "rzn"})
        self.before = nn.ModuleDict({gate: quant(quantized) for gate in "rzn"})
        self.behind = nn.ModuleDict({gate: quant(quantized, signed=gate == "n") for gate in "rzn"})
        self.inner_quant, self.reset_quant = quant(quantized), quant(quantized)
        self.kept_quant, self.new_quant, self.state_quant = (quant(quantized) for _ in range(3))

    def forward(self, row: Tensor, state: Tensor) -> Tensor:
        gates = {}
        for gate in "rz":
            total = self.of_row[gate](row) + self.of_state[gate](state)
            gates[gate] = self.behind[gate](torch.sigmoid(self.before[gate](total)))
        inner = self.reset_quant(gates["r"] * self.inner_quant(self.of_state["n"](state)))
        new = self.behind["n"](torch.tanh(self.before["n"](self.of_row["n"](row) + inner)))
        kept_state = self.kept_quant(gates["z"] * state)
        return self.state_quant(kept_state + self.new_quant((1 - gates["z"]) * new))


class Network(nn.Module):
    """Reads the rows of an image (n, 8, 8) in order; a dense layer on the last state gives (n, 10)."""

    def __init__(self, quantized: bool) -> None:
        super().__init__()
        self.quantized = quantized
        self.input_quant = quant(quantized, 5, signed=False)
        self.cell = Cell(quantized)
        self.head = linear(quantized, STATE, CLASSES)

    @staticmethod
    def sequence(images: Tensor) -> Tensor:
        return images

    def forward(self, x: Tensor) -> Tensor:
        x = self.input_quant(x)
        state = torch.zeros(len(x), STATE)
        for step in range(ROWS):
            state = self.cell(x[:, step], state)
        return self.head(state)
