"""Steps equal the function that they were found from, at every input of every set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import DECODES, QUANTIZERS, chain
from numpy.typing import NDArray

from hlsgen.rescale import trace as module
from hlsgen.rescale.pieces import edges
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.steps import Steps
from hlsgen.rescale.trace import MAX_STEPS, trace

Array = NDArray[Any]
#: Chains of each decoding and quantizer: the longest interval, and how many.
SIZES = ((1 << 16, 3), (1 << 10, 12), (40, 15))


def every_input(f: StepFunction) -> Array:
    """(longest interval, sets); shorter intervals end with copies of their last input."""
    return np.minimum(f.lo + np.arange(int((f.hi - f.lo).max()) + 1)[:, None], f.hi)


def same(f: StepFunction, steps: Steps) -> bool:
    x = every_input(f)
    ascending = (np.diff(steps.table, axis=0) >= 0).all()
    inside = (steps.table >= f.lo).all() and (steps.table <= f.hi + 1).all()
    return bool(ascending and inside and (steps.apply(x) == f.evaluate(x)).all())


def most_steps(f: StepFunction) -> int:
    return int((np.diff(f.evaluate(every_input(f)), axis=0) != 0).sum(axis=0).max(initial=0))


@pytest.mark.parametrize("source", DECODES)
@pytest.mark.parametrize("end", QUANTIZERS)
def test_random_chains(source: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever way, and by bisection alone where the pieces are known."""
    r = np.random.default_rng([DECODES.index(source), QUANTIZERS.index(end)])
    chains = [chain(r, source, end, most) for most, count in SIZES for _ in range(count)]
    few = [most_steps(f) <= MAX_STEPS for f in chains]
    for f, fits in zip(chains, few, strict=True):
        steps = trace(f)
        assert isinstance(steps, Steps) == fits, f
        assert isinstance(steps, str) or same(f, steps), f
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    for f, fits in zip(chains, few, strict=True):
        steps = trace(f)
        assert isinstance(steps, Steps) == (fits and edges(f) is not None), f
        assert isinstance(steps, str) or same(f, steps), f
