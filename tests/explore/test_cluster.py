"""Many machines: dask.distributed, here with two workers on this one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from sweeps import Counting, network, told

import hlsgen
from hlsgen import HlsgenError
from hlsgen.explore import workers


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(workers, "import_module", absent)
    with pytest.raises(HlsgenError, match=r"HG052 --cluster: needs dask\.distributed.*\[cluster\]"):
        hlsgen.explore(network(tmp_path), points=2, cluster="tcp://127.0.0.1:1")


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_an_address_without_a_scheduler(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "PATIENCE", 2)
    with pytest.raises(HlsgenError, match=f"HG075 --cluster: {address}"):
        hlsgen.explore(network(tmp_path), points=2, cluster=address)


@pytest.mark.slow
@pytest.mark.sim
def test_a_killed_worker_loses_no_point(tmp_path: Path) -> None:
    """One of two is killed in mid-sweep; the points equal the result of one process."""
    distributed: Any = pytest.importorskip("distributed")
    net = network(tmp_path)
    expected = told(hlsgen.explore(net, points=8, jobs=1))
    killed = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:

        def kill(finished: int, total: int, name: str) -> None:
            if finished == 2 and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        address = cluster.scheduler_address
        sweep_points = hlsgen.explore(net, points=8, cluster=address, output=tmp_path / "out", progress=kill)
    assert killed
    assert told(sweep_points) == expected
    second_sweep = Counting()
    assert told(hlsgen.explore(net, second_sweep, points=8, output=tmp_path / "out")) == expected
    assert not second_sweep.calls
