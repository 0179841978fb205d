"""The network of this example in numpy: layers forward and backward, in float or with fake quantization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MOMENTUM = 0.1  # of the running means of batch normalization
EPSILON = 1e-5
STEP = 0.25  # scale of all activations: 0 .. 3.75, of the residual branch -2 .. 1.75

Array = np.ndarray


class Tensor:
    """A value with its gradient, and how to pass that on."""

    def __init__(self, data: Array, back: Callable[[Array], None] | None = None) -> None:
        self.data, self.back = data, back
        self.grad: Array | None = None

    def add(self, grad: Array) -> None:
        self.grad = grad if self.grad is None else self.grad + grad


class Network:
    """The layers, forward and, over `tape`, backward. Images are (n, height, width, channels)."""

    def __init__(self, quantized: bool, seed: int) -> None:
        self.quantized, self.training = quantized, True
        self.tape: list[Tensor] = []
        rng = np.random.default_rng(seed)
        self.weights: dict[str, Tensor] = {}
        self.running: dict[str, Array] = {}
        for name, shape, fan in (
            ("conv1", (3, 3, 1, 8), 9),
            ("depthwise", (3, 3, 8), 9),
            ("pointwise", (1, 1, 8, 8), 8),
            ("conv2", (3, 3, 8, 16), 72),
            ("dense", (64, 10), 64),
        ):
            self.weights[name] = Tensor(rng.normal(0, np.sqrt(2 / fan), shape))
            if name != "dense":
                self.weights[f"{name}.gamma"] = Tensor(np.ones(shape[-1]))
                self.weights[f"{name}.beta"] = Tensor(np.zeros(shape[-1]))
                self.running[f"{name}.mean"], self.running[f"{name}.var"] = np.zeros(shape[-1]), np.ones(shape[-1])
        self.weights["dense.bias"] = Tensor(np.zeros(10))

    def __call__(self, x: Array) -> Tensor:
        """Logits (n, 10) of images (n, 8, 8, 1)."""
        self.tape = []
        first = self.pooled(self.act(self.norm("conv1", self.conv(Tensor(x), self.weight("conv1"), 1))))
        branch = self.act(self.norm("depthwise", self.depthwise(first, self.weight("depthwise"))))
        branch = self.act(self.norm("pointwise", self.conv(branch, self.weight("pointwise"), 0)), signed=True)
        joined = self.act(self.sum(first, branch))
        last = self.act(self.norm("conv2", self.conv(joined, self.weight("conv2"), 0)))
        return self.linear(last, self.weight("dense"), self.weights["dense.bias"])

    def backward(self, loss: Tensor, grad: Array) -> None:
        loss.add(grad)
        for tensor in reversed(self.tape):
            if tensor.grad is not None and tensor.back is not None:
                tensor.back(tensor.grad)

    def put(self, data: Array, back: Callable[[Array], None]) -> Tensor:
        self.tape.append(Tensor(data, back))
        return self.tape[-1]

    # ------------------------------------------------------------------ layers

    def weight(self, name: str) -> Tensor:
        """The weights in use: rounded to 4 bits, with a power of two as the scale of each output channel."""
        weight = self.weights[name]
        if not self.quantized:
            return weight
        scale = weight_scale(weight.data)
        return self.put(np.clip(np.rint(weight.data / scale), -7, 7) * scale, weight.add)

    def conv(self, x: Tensor, w: Tensor, pad: int) -> Tensor:
        patches = windows(x.data, w.data.shape[0], pad)
        n, height, width = patches.shape[:3]
        columns = patches.reshape(n * height * width, -1)
        matrix = w.data.reshape(columns.shape[1], -1)

        def back(grad: Array) -> None:
            flat = grad.reshape(-1, grad.shape[-1])
            w.add((columns.T @ flat).reshape(w.data.shape))
            x.add(unwindowed((flat @ matrix.T).reshape(patches.shape), x.data.shape, pad))

        return self.put((columns @ matrix).reshape(n, height, width, -1), back)

    def depthwise(self, x: Tensor, w: Tensor) -> Tensor:
        patches = windows(x.data, 3, 1)

        def back(grad: Array) -> None:
            w.add(np.einsum("nyxijc,nyxc->ijc", patches, grad))
            x.add(unwindowed(grad[:, :, :, None, None, :] * w.data, x.data.shape, 1))

        return self.put(np.einsum("nyxijc,ijc->nyxc", patches, w.data), back)

    def norm(self, name: str, x: Tensor) -> Tensor:
        gamma, beta = self.weights[f"{name}.gamma"], self.weights[f"{name}.beta"]
        mean, var = self.running[f"{name}.mean"], self.running[f"{name}.var"]
        if not self.training:
            return Tensor((x.data - mean) / np.sqrt(var + EPSILON) * gamma.data + beta.data)
        m, v = x.data.mean((0, 1, 2)), x.data.var((0, 1, 2))
        self.running[f"{name}.mean"] = mean + MOMENTUM * (m - mean)
        self.running[f"{name}.var"] = var + MOMENTUM * (v - var)
        centered = (x.data - m) / np.sqrt(v + EPSILON)

        def back(grad: Array) -> None:
            gamma.add((grad * centered).sum((0, 1, 2)))
            beta.add(grad.sum((0, 1, 2)))
            inner = grad * gamma.data
            inner = inner - inner.mean((0, 1, 2)) - centered * (inner * centered).mean((0, 1, 2))
            x.add(inner / np.sqrt(v + EPSILON))

        return self.put(centered * gamma.data + beta.data, back)

    def act(self, x: Tensor, signed: bool = False) -> Tensor:
        """Relu and a quantizer; signed: a quantizer alone."""
        low = -np.inf if signed else 0.0
        result = np.maximum(x.data, low)
        inside = x.data > low
        if self.quantized:
            first, last = (-8, 7) if signed else (0, 15)
            inside = (x.data > first * STEP) & (x.data < last * STEP)
            result = np.clip(np.rint(x.data / STEP), first, last) * STEP
        return self.put(result, lambda grad: x.add(grad * inside))

    def pooled(self, x: Tensor) -> Tensor:
        n, height, width, channels = x.data.shape
        blocks = x.data.reshape(n, height // 2, 2, width // 2, 2, channels)
        result = blocks.max((2, 4))
        hits = blocks == result[:, :, None, :, None]
        share = hits / hits.sum((2, 4), keepdims=True)
        return self.put(result, lambda grad: x.add((share * grad[:, :, None, :, None]).reshape(x.data.shape)))

    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        def back(grad: Array) -> None:
            a.add(grad)
            b.add(grad)

        return self.put(a.data + b.data, back)

    def linear(self, x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        flat = x.data.transpose(0, 3, 1, 2).reshape(len(x.data), -1)  # in ONNX's order: channels first
        n, height, width, channels = x.data.shape

        def back(grad: Array) -> None:
            w.add(flat.T @ grad)
            bias.add(grad.sum(0))
            x.add((grad @ w.data.T).reshape(n, channels, height, width).transpose(0, 2, 3, 1))

        return self.put(flat @ w.data + bias.data, back)


def weight_scale(weight: Array) -> Array:
    """A power of two for each output (last axis), such that the largest weight is a code of at most 7."""
    largest = np.abs(weight).max(axis=tuple(range(weight.ndim - 1)))
    return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(largest, 1e-8) / 7.5)))


def windows(x: Array, kernel: int, pad: int) -> Array:
    """(n, height, width, kernel, kernel, channels) of (n, h, w, channels)."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (1, 2))
    return np.ascontiguousarray(views.transpose(0, 1, 2, 4, 5, 3))


def unwindowed(grad: Array, shape: tuple[int, ...], pad: int) -> Array:
    """The gradient of `windows`: for each element, the sum over all windows that contain it."""
    n, height, width, channels = shape
    rows, columns, kernel = grad.shape[1], grad.shape[2], grad.shape[3]
    result = np.zeros((n, height + 2 * pad, width + 2 * pad, channels))
    for y in range(kernel):
        for x in range(kernel):
            result[:, y : y + rows, x : x + columns] += grad[:, :, :, y, x]
    return result[:, pad : pad + height, pad : pad + width]
