"""Every module of the library in slang, which reads the standard more strictly than simulators do."""

from __future__ import annotations

from pathlib import Path

import pytest
from slang_lint import slang_complaints
from streams import RTL
from test_library import MODULES, SETS

FILES = [RTL / f"{module}.v" for module in MODULES]


@pytest.mark.parametrize("standard", ["1364-2005", "1800-2017"])
def test_lint_by_slang(standard: str) -> None:
    assert slang_complaints(FILES, MODULES, standard) == []


def test_lint_by_slang_with_other_parameters(tmp_path: Path) -> None:
    """Each set of parameters in a module of its own, whose instance has no ports connected."""
    lines, tops = ["// Instances."], []
    for module in MODULES:
        for number, parameters in enumerate(SETS[module]):
            values = ", ".join(f".{name}({value})" for name, value in parameters.items())
            tops.append(f"{module}_{number}")
            lines.append(f"module {tops[-1]}; {module} #({values}) unit (); endmodule")
    (tmp_path / "sets.v").write_text("\n".join([*lines, ""]))
    complaints = slang_complaints([tmp_path / "sets.v", *FILES], tops)
    assert [text for text in complaints if not text.startswith("sets.v:")] == []


def test_a_name_before_its_declaration_is_found(tmp_path: Path) -> None:
    """Icarus and Verilator take it."""
    (tmp_path / "m.v").write_text("module m (output wire y);\nwire a = b_reg;\nreg b_reg;\nassign y = a;\nendmodule\n")
    assert ["m.v:2" in text for text in slang_complaints([tmp_path / "m.v"], ["m"])] == [True]
