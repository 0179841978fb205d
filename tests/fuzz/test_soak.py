"""A short run of `make soak`; it finds a unit that ignores a stall, and a port for weights that ignores a pause."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import soak

from hlsgen.diagnostics import HlsgenError

pytestmark = pytest.mark.sim
#: Seeds of small designs, the second one with loadable weights.
SEED, LOADS = 5, 29


def test_short_run(tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    assert soak.soak(SEED, 2.0, tmp_path, total) == ""
    assert total["designs"] == 1
    assert total["beats"] > 10_000
    assert total["resets"] > 10


def test_weights_are_loaded(tmp_path: Path) -> None:
    """Over a port that withdraws a response which nobody has taken, too."""
    total: Counter[str] = Counter()
    build = soak.design(LOADS, tmp_path)
    assert build is not None
    assert soak.run(build, tmp_path / "core", tmp_path / "sim", LOADS, 0, total, 3) == ""
    assert total["writes"] > 10
    port = tmp_path / "core" / "rtl" / "soak_hg_axil_weights.v"
    text = port.read_text()
    port.write_text(text.replace("bvalid_reg ? !s_axil_bready : write", "write"))
    assert port.read_text() != text
    with pytest.raises(HlsgenError, match="writes"):
        soak.run(build, tmp_path / "core", tmp_path / "spoilt", LOADS, 0, total, 3)
    load = tmp_path / "core" / "rtl" / "soak_hg_load.v"
    port.write_text(text)
    load.write_text(load.read_text().replace("next_reg + 1'b1", "next_reg"))
    assert "chunk 1: an output beat differs" in soak.run(
        build, tmp_path / "core", tmp_path / "words", LOADS, 0, total, 3
    )


def test_a_finding_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = soak.design

    def spoilt(seed: int, folder: Path) -> object:
        build = right(seed, folder)
        module = folder / "core" / "rtl" / "soak_hg_slice.v"
        text = module.read_text()
        module.write_text(text.replace("s_ready = free_reg;", "s_ready = 1'b1;"))
        assert module.read_text() != text
        return build

    monkeypatch.setattr(soak, "design", spoilt)
    arguments = ["soak.py", "--seed", str(SEED), "--designs", "1", "--chunks", "1", "--keep", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    assert soak.main() == 1
    assert "1 designs" in capsys.readouterr().out
    text = (tmp_path / f"soak-{SEED}.txt").read_text()
    assert f"--seed {SEED} --designs 1 --chunks 1" in text
    assert "differs" in text or "no beat moves" in text or "changed" in text
