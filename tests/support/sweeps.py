"""A small network with many foldings, and an executor that counts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from models import Net, save

import hlsgen


def network(folder: Path) -> Path:
    net = Net((1, 12)).quant(name="q0", signed=1).linear(8, 12, name="fc0").then("Relu", name="relu")
    return save(
        net.quant(scale=0.5, bits=3.0, signed=0, name="q1").linear(4, 8, name="fc1").model(), folder / "net.onnx"
    )


class Counting(Executor):
    """Works at once, in this process, and keeps what it was asked to do."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.calls.append(arguments[1])
        future: Future[Any] = Future()
        future.set_result(fn(*arguments, **named))
        return future


def told(points: list[hlsgen.Point]) -> list[dict[str, Any]]:
    return [point.as_dict() for point in points]
