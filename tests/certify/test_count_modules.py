"""Modules of counters: every change of a literal, bit, size or register is detected, and every addition."""

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


def counter_file(core: Path) -> Path:
    return sorted((core / "rtl").glob("top_*_counts.v"))[0]


def problems(core: Path, path: Path, text: str) -> str:
    """The problems of a build with this text, whose hash is updated."""
    path.write_text(text)
    sign(core, f"rtl/{path.name}")
    return "\n".join(messages(core))


@pytest.mark.slow
def test_every_constant(core: Path) -> None:
    rng, path = np.random.default_rng(6), counter_file(core)
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    assert messages(core) == []
    start = text.index("module ")
    constants = list(re.finditer(r"\d+", text[start:]))
    for n in rng.choice(len(constants), 60, replace=False):
        number, (a, b) = int(constants[n][0]), constants[n].span()
        changed = text[: start + a] + str(abs(number + int(rng.choice([-1, 1])))) + text[start + b :]
        assert problems(core, path, changed), (constants[n], changed[start + a - 60 : start + b + 60])
        (core / "certificate.json").write_text(certificate)


@pytest.mark.sweep
def test_every_sign(core: Path) -> None:
    rng, path = np.random.default_rng(7), counter_file(core)
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    signals = list(re.finditer(r"~?(odd|most|rest|s_data)\[\d+\](?=[,}])", text))
    for n in rng.choice(len(signals), 30, replace=False):
        (a, b), old = signals[n].span(), signals[n][0]
        new = old[1:] if old[0] == "~" else f"~{old}"
        assert problems(core, path, text[:a] + new + text[b:]), old
        (core / "certificate.json").write_text(certificate)


@pytest.mark.parametrize(
    "old, new, said",
    [
        (r"a \^ b \^ c", "a ^ b ^ b", "not allowed here in a module"),
        (r"\(a & ~c\)", "(a & c)", "not allowed here in a module"),
        (r"odd(\[\d+\])", r"most\1", "no sum of these columns"),
        (r"\.PLACES\(\d\)", ".PLACES(2)", "not allowed here in a module"),
        (r"\.COUNTED\(\d\)", ".COUNTED(2)", "not allowed here in a module"),
        (r"(c\d+\[0\])", r"1'h0", "do not add"),
        (r"high = (.*) \+ ", r"high = \1 - ", "not allowed here in a module"),
        (r"( held1 <= ).*;", r"\g<1>1'h0;", "has"),
        (r"if \(en\) held1", "held1", "not allowed here in a module"),
        (r"if \(en\) sum", "sum", "not allowed here in a module"),
        (
            r"\n            reg \[\d+:0\] sum;",
            "\n            wire [0:0] y = 1'h1;\\g<0>",
            "not allowed here in a module",
        ),
        (r"STAGES\(\d", "STAGES(9", "_counts.v"),
        (r"            top_hg_count ", "            hg_count ", "not allowed here in a module"),
        (r"    top_hg_stages", "    hg_stages", "its head"),
        (r"// Purpose", "// Purpos", "its head"),
        (r"endmodule", "wire z; endmodule", "does not end"),
        (r"        end\n    endgenerate", "        end\n    wire z;\n    endgenerate", "does not end"),
        (r"(    assign bits\[\d+:0\].*\n)", "", "not allowed here in a module"),
        (r"(    assign bits\[\d+:0\] = )\{[^,]*, ", r"\1{", "bits instead of"),
        (r"\nmodule top_", "\nmodule other_", "_counts.v"),
    ],
)
def test_other_text(core: Path, old: str, new: str, said: str) -> None:
    path = counter_file(core)
    text = path.read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    assert said in problems(core, path, changed)


def test_bits_of_different_cycles(core: Path) -> None:
    """A counter counts a bit of the row, instead of the same bit one cycle later."""
    path = counter_file(core)
    text = path.read_text()
    register = re.search(r" held1 <= \{?([^;]*?)\}?;", text)
    assert register
    names = register[1].split(", ")
    for n, name in enumerate(reversed(names)):
        held_bit = f"held1[{n}]"
        if text.count(held_bit) == 1:
            assert "different cycles" in problems(core, path, text.replace(held_bit, name))
            return
    pytest.fail("no bit that is held")


def test_swapped_rows(core: Path) -> None:
    path = counter_file(core)
    text = path.read_text()
    lines = re.findall(r"assign bits\[\d+:\d+\] = (.*);", text)
    assert lines[0] != lines[1]
    changed = text.replace(lines[0], "?", 1).replace(lines[1], lines[0], 1).replace("?", lines[1], 1)
    assert "weight" in problems(core, path, changed)


def test_a_module_of_another_instance(core: Path) -> None:
    """Swapped, with hashes that agree."""
    first, second = sorted((core / "rtl").glob("top_*_counts.v"))[:2]
    a, b = first.read_text(), second.read_text()
    second.write_text(a.replace(first.stem, second.stem))
    sign(core, f"rtl/{second.name}")
    assert problems(core, first, b.replace(second.stem, first.stem))
