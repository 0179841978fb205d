"""hg_weights: every kind of memory, read in rounds and written at random, against a list."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Pipeline, memory, sweep

#: words, bits, STYLE, LOADABLE
CASES = [(5, 9, 2, 1), (64, 3, 1, 1), (1, 1, 0, 1), (7, 40, 1, 0), (12, 4, 0, 0), (6, 520, 3, 0), (9, 5, 3, 1)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 1))
def test_weights(simulate: Callable[..., None], simulator: str, case: tuple[int, int, int, int]) -> None:
    words, bits, style, loadable = case
    rng = np.random.default_rng(words)
    contents = [int.from_bytes(rng.bytes(65), "little") % (1 << bits) for _ in range(words)]
    file = memory(contents)
    rows, data, turn, last = [], [], 0, 0
    for k in range(400):
        rst = int(k == 0 or rng.random() < 0.01)
        en, we = int(k <= 1 or rng.random() < 0.7), int(rng.random() < 0.4 and k > 0)
        step = int(en and rng.random() < 0.8)
        waddr, wdata = (int(rng.integers(0, end)) for end in (words, 1 << min(bits, 62)))
        last = contents[turn] if en and k > 0 else last
        addr, turn = turn, 0 if rst else (turn + step) % words
        if we and loadable:
            contents[waddr] = wdata
        rows.append((rst, en, step, addr, we, waddr, wdata))
        data.append(last)
    columns = zip(*rows, strict=True)
    inputs = dict(zip(("rst", "en", "step", "addr", "we", "waddr", "wdata"), map(list, columns), strict=True))
    parameters = {"FILE": '"w.mem"', "WORDS": words, "WIDTH": bits, "STYLE": style, "LOADABLE": loadable}
    job = Pipeline(inputs, {"data": data}, latency=1, enable=None, unknown=1)
    simulate(simulator, "hg_weights", parameters, job, {"w.mem": file})
