"""The vision transformer of this example, in float or quantized with Brevitas."""

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

PATCHES, PIXELS = 16, 4  # an image of 8x8 is 4x4 patches of 2x2
WIDTH, HEADS, HIDDEN, CLASSES = 16, 2, 32, 10
WEIGHT_BITS = 4


class VisionTransformer(nn.Module):
    """One encoder block with norms in front, mean over patches, a dense layer. Takes (n, 16, 4), gives (n, 10)."""

    def __init__(self, quantized: bool) -> None:
        super().__init__()
        self.quantized = quantized
        self.input_quant = self.quant(5, signed=False)
        self.embed = self.linear(PIXELS, WIDTH)
        self.position = nn.Parameter(0.2 * torch.randn(1, PATCHES, WIDTH))
        self.embed_quant = self.quant(6)
        self.norm1, self.norm1_quant = nn.LayerNorm(WIDTH), self.quant(4)
        self.query, self.key, self.value = (self.linear(WIDTH, WIDTH) for _ in range(3))
        self.query_quant, self.key_quant, self.value_quant = (self.quant(4) for _ in range(3))
        self.score_quant = self.quant(5)
        self.share_quant = self.quant(4, signed=False)
        self.heads_quant = self.quant(4)
        self.mix = self.linear(WIDTH, WIDTH)
        self.sum1_quant = self.quant(6)
        self.norm2, self.norm2_quant = nn.LayerNorm(WIDTH), self.quant(4)
        self.wide = self.linear(WIDTH, HIDDEN)
        self.wide_quant = self.quant(4, signed=False)
        self.narrow = self.linear(HIDDEN, WIDTH)
        self.sum2_quant = self.quant(6)
        self.mean_quant = self.quant(6)
        self.head = self.linear(WIDTH, CLASSES)

    def linear(self, inputs: int, outputs: int) -> nn.Module:
        if not self.quantized:
            return nn.Linear(inputs, outputs)
        return qnn.QuantLinear(
            inputs,
            outputs,
            bias=True,
            weight_quant=Int8WeightPerTensorFloat,
            weight_bit_width=WEIGHT_BITS,
            bias_quant=Int8BiasPerTensorFloatInternalScaling,
        )

    def quant(self, bits: int, signed: bool = True) -> nn.Module:
        if not self.quantized:
            return nn.Identity()
        kind = Int8ActPerTensorFloat if signed else Uint8ActPerTensorFloat
        return qnn.QuantIdentity(act_quant=kind, bit_width=bits)

    @staticmethod
    def sequence(images: Tensor) -> Tensor:
        """(n, 16, 4) of images (n, 8, 8): rows of patches, each with its four pixels."""
        return images.reshape(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, PATCHES, PIXELS)

    def heads(self, x: Tensor) -> Tensor:
        return x.reshape(-1, PATCHES, HEADS, WIDTH // HEADS).transpose(1, 2)

    def attention(self, x: Tensor) -> Tensor:
        query = self.heads(self.query_quant(self.query(x)))
        key = self.heads(self.key_quant(self.key(x)))
        value = self.heads(self.value_quant(self.value(x)))
        scores = torch.matmul(query, key.transpose(2, 3)) * (WIDTH // HEADS) ** -0.5
        shares = self.share_quant(torch.softmax(self.score_quant(scores), dim=-1))
        mixed = self.heads_quant(torch.matmul(shares, value))
        return self.mix(mixed.transpose(1, 2).reshape(-1, PATCHES, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed_quant(self.embed(self.input_quant(x)) + self.position)
        x = self.sum1_quant(x + self.attention(self.norm1_quant(self.norm1(x))))
        hidden = self.wide_quant(torch.relu(self.wide(self.norm2_quant(self.norm2(x)))))
        x = self.sum2_quant(x + self.narrow(hidden))
        return self.head(self.mean_quant(x.mean(dim=1)))
