"""hg_shift: rescaling by powers of two in all rounding modes, against hlsgen.rescale.Shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from streams import Stream, all_inputs, integers, memory, pack, sweep

from hlsgen.numerics.fixed import Rounding
from hlsgen.rescale.realize.shift import Shift


@dataclass(frozen=True)
class Case:
    """Parameters of hg_shift, in lower case, without the file."""

    lanes: int
    folds: int
    in_w: int
    in_signed: int
    left: int
    b_w: int
    shift: int
    mode: int
    out_w: int
    low: int
    high: int
    add: int = 1
    split: int = 1
    flip: int = 0


SIGNED = Case(32, 1, 16, 1, 0, 3, 4, 0, 12, -2000, 2000)
CASES = [
    Case(3, 5, 12, 1, 2, 9, 5, 5, 6, -31, 31),
    Case(1, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1),
    Case(2, 3, 32, 1, 0, 40, 17, 6, 9, -256, 255),
    Case(2, 2, 32, 0, 3, 12, 1, 1, 32, 0, 2**32 - 1),
    Case(1, 4, 8, 1, 5, 3, 0, 3, 16, -(2**15), 2**15 - 1),
    Case(2, 1, 4, 0, 0, 2, 12, 1, 5, -16, 15),
    Case(1, 3, 6, 1, 0, 20, 2, 4, 3, -4, -1),
    Case(3, 1, 20, 1, 0, 1, 9, 0, 8, 0, 255, add=0, split=0),
    Case(2, 3, 18, 1, 0, 1, 14, 6, 4, -7, 7, add=0),
    Case(2, 5, 12, 1, 3, 9, 5, 5, 6, -31, 31, split=0),
    Case(3, 1, 14, 1, 0, 1, 4, 0, 8, 0, 255, add=0, split=0, flip=0x2000FFFF000),
]


def run(simulate: Callable[..., None], simulator: str, case: Case, x: np.ndarray) -> None:
    rng = np.random.default_rng(case.in_w)
    offset = integers(rng, case.b_w, True, (case.folds, case.lanes)) * case.add
    fold = np.arange(len(x)) % case.folds
    flips = np.array([case.flip >> (lane * case.in_w) & ((1 << case.in_w) - 1) for lane in range(case.lanes)])
    reference = Shift(case.left, case.shift, Rounding(case.mode), offset[fold], case.low, case.high)
    job = Stream(
        {"s_data": pack(x ^ flips, case.in_w)},
        {"m_data": pack(reference.apply(x), case.out_w)},
        latency=1 + case.add + case.split,
        capacity=1 + case.add + case.split,
    )
    parameters: dict[str, object] = {name.upper(): value for name, value in vars(case).items()}
    for bound in ("LOW", "HIGH"):  # two's complement with a bit more than a code
        parameters[bound] = f"{case.out_w + 1}'d{getattr(case, bound.lower()) & ((2 << case.out_w) - 1)}"
    parameters["FLIP"] = f"{case.lanes * case.in_w}'d{case.flip}"
    files = {"b.mem": memory(pack(offset, case.b_w))} if case.add else {}
    simulate(simulator, "hg_shift", {**parameters, **({"FILE": '"b.mem"'} if files else {})}, job, files)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 3))
def test_shift(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.shift)
    x = integers(rng, case.in_w, bool(case.in_signed), (400, case.lanes))
    # Ties, as far as the offset leaves them.
    half = (1 << case.shift) >> 1
    ties = (x >> case.shift << case.shift) + half
    x = np.where((rng.random(x.shape) < 0.3) & (ties >= x.min()) & (ties <= x.max()), ties, x)
    run(simulate, simulator, case, x)


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", list(Rounding))
def test_every_input(simulate: Callable[..., None], mode: Rounding) -> None:
    simulator = "verilator" if mode in (Rounding.ROUND, Rounding.HALF_DOWN) else "icarus"
    once = int(mode) % 2
    run(simulate, simulator, replace(SIGNED, mode=int(mode), add=once, split=once), all_inputs(16, True, SIGNED.lanes))


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", [Rounding.ROUND, Rounding.HALF_UP])
@pytest.mark.parametrize("bits, lanes", [(13, 16), (16, 32)])
def test_every_unsigned_input(simulate: Callable[..., None], bits: int, lanes: int, mode: Rounding) -> None:
    case = Case(lanes, 1, bits, 0, 0, bits - 7, 8, int(mode), 8, 0, 255)
    run(simulate, "icarus", case, all_inputs(bits, False, lanes))
