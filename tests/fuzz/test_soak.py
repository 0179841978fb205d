"""A short run of `make soak`, and that it finds a unit that ignores a stall."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import soak

pytestmark = pytest.mark.sim
#: A seed of a small design.
SEED = 5


def test_short_run(tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    assert soak.soak(SEED, 2.0, tmp_path, total) == ""
    assert total["designs"] == 1
    assert total["beats"] > 10_000
    assert total["resets"] > 10


def test_a_finding_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = soak.design

    def spoilt(seed: int, folder: Path) -> object:
        build = right(seed, folder)
        module = folder / "core" / "rtl" / "hg_slice.v"
        text = module.read_text()
        module.write_text(text.replace("s_ready = !full_reg;", "s_ready = 1'b1;"))
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
