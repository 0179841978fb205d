"""Modules of counters: no literal, bit, size or register of them can be changed unnoticed, nor anything else be in them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from certified import Case, messages, sign

import hlsgen

#: Bits, in rows that share triples and have columns in none.
NET = Case("bin_tern", hlsgen.Options(target_cycles=1))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return NET.build(tmp_path_factory.mktemp("builds") / "counts")


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def written(core: Path) -> Path:
    return sorted((core / "rtl").glob("top_mv*_counts.v"))[0]


def problems(core: Path, path: Path, text: str) -> str:
    """What is found of that text, with a hash that agrees."""
    path.write_text(text)
    sign(core, f"rtl/{path.name}")
    return "\n".join(messages(core))


def test_every_constant(core: Path) -> None:
    rng, path = np.random.default_rng(6), written(core)
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    assert messages(core) == []
    start = text.index("module ")
    found = list(re.finditer(r"\d+", text[start:]))
    for n in rng.choice(len(found), 60, replace=False):
        number, (a, b) = int(found[n][0]), found[n].span()
        changed = text[: start + a] + str(abs(number + int(rng.choice([-1, 1])))) + text[start + b :]
        assert problems(core, path, changed), (found[n], changed[start + a - 60 : start + b + 60])
        (core / "certificate.json").write_text(certificate)


def test_every_sign(core: Path) -> None:
    rng, path = np.random.default_rng(7), written(core)
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    found = list(re.finditer(r"~?(odd|most|rest|s_data)\[\d+\](?=[,}])", text))
    for n in rng.choice(len(found), 30, replace=False):
        (a, b), old = found[n].span(), found[n][0]
        new = old[1:] if old[0] == "~" else f"~{old}"
        assert problems(core, path, text[:a] + new + text[b:]), old
        (core / "certificate.json").write_text(certificate)


@pytest.mark.parametrize(
    "old, new, said",
    [
        (r"a \^ b \^ c", "a ^ b ^ b", "no part of a module"),
        (r"\(a & ~c\)", "(a & c)", "no part of a module"),
        (r"odd(\[\d+\])", r"most\1", "no sum of them"),
        (r"\.PLACES\(\d\)", ".PLACES(2)", "no part of a module"),
        (r"\.COUNTED\(\d\)", ".COUNTED(2)", "no part of a module"),
        (r"(c\d+\[0\])", r"1'h0", "do not add"),
        (r"high = (.*) \+ ", r"high = \1 - ", "no part of a module"),
        (r"( held1 <= ).*;", r"\g<1>1'h0;", "has"),
        (r"if \(en\) held1", "held1", "no part of a module"),
        (r"if \(en\) sum", "sum", "no part of a module"),
        (r"\n            reg \[\d+:0\] sum;", "\n            wire [0:0] y = 1'h1;\\g<0>", "no part of a module"),
        (r"STAGES\(\d", "STAGES(9", "top_mv"),
        (r"            top_hg_count ", "            hg_count ", "no part of a module"),
        (r"    top_hg_stages", "    hg_stages", "its head"),
        (r"// Purpose", "// Purpos", "its head"),
        (r"endmodule", "wire z; endmodule", "does not end"),
        (r"        end\n    endgenerate", "        end\n    wire z;\n    endgenerate", "does not end"),
        (r"(    assign bits\[\d+:0\].*\n)", "", "no part of a module"),
        (r"(    assign bits\[\d+:0\] = )\{[^,]*, ", r"\1{", "bits in the place of"),
        (r"\nmodule top_", "\nmodule other_", "top_mv"),
    ],
)
def test_other_text(core: Path, old: str, new: str, said: str) -> None:
    path = written(core)
    text = path.read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    assert said in problems(core, path, changed)


def test_bits_of_different_cycles(core: Path) -> None:
    """A counter with a bit of the row in the place of the same bit a cycle later."""
    path = written(core)
    text = path.read_text()
    held = re.search(r" held1 <= \{?([^;]*?)\}?;", text)
    assert held
    names = held[1].split(", ")
    for n, name in enumerate(reversed(names)):
        at = f"held1[{n}]"
        if text.count(at) == 1:
            assert "different cycles" in problems(core, path, text.replace(at, name))
            return
    pytest.fail("no bit that is held")


def test_rows_in_each_others_place(core: Path) -> None:
    path = written(core)
    text = path.read_text()
    lines = re.findall(r"assign bits\[\d+:\d+\] = (.*);", text)
    assert lines[0] != lines[1]
    changed = text.replace(lines[0], "?", 1).replace(lines[1], lines[0], 1).replace("?", lines[1], 1)
    assert "weight" in problems(core, path, changed)


def test_a_module_of_another_instance(core: Path) -> None:
    """Swapped, with hashes that agree."""
    first, second = sorted((core / "rtl").glob("top_mv*_counts.v"))[:2]
    a, b = first.read_text(), second.read_text()
    second.write_text(a.replace(first.stem, second.stem))
    sign(core, f"rtl/{second.name}")
    assert problems(core, first, b.replace(second.stem, first.stem))
