"""Modules of adders: no number, sign or width of them can be changed unnoticed, nor anything else be in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from certified import CASES, Case, messages, sign
from models import Net

import hlsgen
from hlsgen.certify.adder_modules import ADDERS, check_flips
from hlsgen.certify.netlist_reader import Cell, Nets, SizedConstant
from hlsgen.verilog import adder_text


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CASES["adders"].build(tmp_path_factory.mktemp("builds") / "adders")


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def adder_file(core: Path) -> Path:
    return core / "rtl" / "top_node_linear_adders.v"


def problems(core: Path, path: Path, text: str) -> str:
    """The problems of a build with this text, whose hash is updated."""
    path.write_text(text)
    sign(core, f"rtl/{path.name}")
    return "\n".join(messages(core))


@pytest.mark.slow
def test_every_constant(core: Path) -> None:
    rng, path = np.random.default_rng(6), adder_file(core)
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
@pytest.mark.parametrize(
    "old, new, said",
    [
        (r"(\S\}) \+ (\{)", r"\1 - \2", "_adders.v"),
        (r"(\S\}) - (\{)", r"\1 + \2", "_adders.v"),
        (r"~(n\w+\[)", r"\1", "no supported number"),
        (r" \+ ~(?=[{n])", " + ", "_adders.v"),
        (r" \+ (?=[{n])", " + ~", "_adders.v"),
        (r" \+ ~(?=[{n])", " - ", "_adders.v"),
        (r" - (?=[{n])", " + ~", "_adders.v"),
        (r" \+ (?=[{n])", " - ~", "_adders.v"),
        (r"CARRY\(0", "CARRY(1", "_adders.v"),
        (r"CARRY\(1", "CARRY(0", "_adders.v"),
        (r"CARRY\(0", "CARRY(2", "_adders.v"),
        (r"CARRY\(0", "CARRY(3", "that no module of adders has"),
        (r"( \+ \{[^-+;]*\});", r"\1\1;", "no sum of two"),
        (r"(\.c\(\{.*n\d+)_1", r"\1_0", "_adders.v"),
        (r"\.a\(\{", ".a(~{", "_adders.v"),
        (r"\.a\(~\{", ".a({", "_adders.v"),
        (r"\.c\(~\{", ".c({", "_adders.v"),
        (r"WIDTH\(", "WIDTH(1", "not the sum of its instance"),
        (r" n\d+ \(\n", " n0 (\n", "not the sum of its instance"),
        (r"top_hg_add3", "hg_add3", "that no module of adders has"),
        (r"top_hg_add3", "top_hg_count", "that no module of adders has"),
        (r"\.b\(~\{", ".b({", "_adders.v"),
        (r"\.b\(\{", ".b(~{", "_adders.v"),
        (r", \.c\(.*?\), ", ", ", "that no module of adders has"),
        (r"\.c\(\{.*?, ", ".c({", "of another width"),
        (r"\.sum\(n\d+_", r"\g<0>1", "not the sum of its instance"),
        (r"\.sum\((n\d+_\d+)\[\d+:\d+\]\)", r".sum(\1)", "not the sum of its instance"),
        (r"(\.sum\(n\d+_\d+)\[", r"\1[1", "has no lowest bits"),
        (r"(\.sum\(n.*\n    \);\n)    assign.*\n", r"\1", "has no lowest bits"),
        (r"(\.sum\(n.*\n    \);\n    assign n\d+_\d+\[\d+)", r"\g<1>1", "has no lowest bits"),
        (r"(\.sum\(n.*\n    \);\n    assign .* = n\d+_\d+\[)0", r"\g<1>1:0", "not the sum of its instance"),
        (r"(\.sum\(n.*\n    \);\n    assign .* = n)", r"\g<1>1", "_adders.v"),
        (r"(m_data\[\d+:0\] = )(~?)", lambda m: m[1] + ("" if m[2] else "~"), "no sum of"),
        (r"(m_data\[\d+:\d+\] = \{\{2\{)n", r"\1~n", "no supported number"),
        (r"(m_data\[\d+:\d+\] = n\w+\[\d+:)0\]", r"\g<1>1]", "no supported number"),
        (r"(\{1'h)0", r"\g<1>1", "does not fit"),
        (r"(m_data\[\d+:\d+\] = ).*;", r"\g<1>0;", "no vector of bits"),
        (r"(m_data\[\d+:\d+\] = ).*;", r"\g<1>8'h0;", "no sum of"),
        (r"( <= n\d+_)0;", r"\g<1>1;", "no such registers"),
        (r"if \(en\) begin", "begin", "that no module of adders has"),
        (r"\n    end\n", "\n    end\n    wire [0:0] y = 1'h1;\n", "that no module of adders has"),
        (r"(    assign m_data\[\d+:0\].*\n)", "", "is not where it should be"),
        (r"endmodule", "wire z; endmodule", "_adders.v"),
        (r"// Purpose", "// Purpos", "its head"),
        (r"STAGES\(\d", "STAGES(9", "_adders.v"),
        (r"    top_hg_stages", "    hg_stages", "_adders.v"),
        (r"    top_hg_stages", "    other_hg_stages", "_adders.v"),
        (r"\nmodule top_", "\nmodule other_", "_adders.v"),
    ],
)
def test_other_text(core: Path, old: str, new: str | Callable[[re.Match[str]], str], said: str) -> None:
    path = adder_file(core)
    text = path.read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    assert said in problems(core, path, changed)


def test_joined_to_another_consumer(core: Path) -> None:
    """The consumer's ready may depend on its input data, so both would wait for each other."""
    path = adder_file(core)
    text = re.sub(r"(STAGES\(\d+\))", r"\1,\n        .JOINED(1)", path.read_text())
    assert "with a consumer whose ready" in problems(core, path, text)


def shifted(folder: Path) -> Path:
    """A build with two layers before hg_shift."""
    rng, net = np.random.default_rng(7), Net((1, 6)).quant(1.0, 0.0, 4.0, signed=1, narrow=0)
    for n in range(2):
        weight = rng.integers(-3, 4, (12 if n else 6, 12)).astype(np.float32)
        net.linear(12, len(weight), weight, f"fc{n}", scale=1.0, bits=3.0)
        net.then("Relu").quant(4.0, 0.0, 4.0, signed=0, narrow=0)
    return Case(net.model, hlsgen.Options(target_cycles=1)).build(folder / "core")


def test_joined(tmp_path: Path) -> None:
    """A module of adders before hg_shift advances together with it."""
    core = shifted(tmp_path)
    texts = {path: path.read_text() for path in (core / "rtl").glob("top_*_adders.v")}
    path, text = next((path, text) for path, text in texts.items() if "        .JOINED(1)\n" in text)
    assert messages(core) == []
    assert problems(core, path, text.replace(".JOINED(1)", ".JOINED(2)"))


@pytest.mark.sweep
def test_inverted_bits(tmp_path: Path) -> None:
    """hg_shift inverts exactly the inverted bits of sums of a module of adders, and no bits of other modules."""
    core = shifted(tmp_path)
    path = core / "rtl" / "top.v"
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    width, value = re.findall(r"\.FLIP\((\d+)'h([0-9a-f]+)\)", text)[0]
    assert messages(core) == []
    for place in range(0, int(width), 5):
        changed = f"{int(value, 16) ^ 1 << place:x}"
        (core / "certificate.json").write_text(certificate.replace(f"'h{value}\"", f"'h{changed}\""))
        assert "_adders.v" in problems(core, path, text.replace(f"'h{value})", f"'h{changed})"))
    (core / "certificate.json").write_text(certificate)
    assert problems(core, path, re.sub(r",\n\s*\.FLIP\(\S+\)", "", text, count=1))
    flip = SizedConstant(int(width), int(value, 16))
    ports: dict[str, Nets] = {"s_valid": "v", "m_valid": "w"}
    consumer = Cell("hg_shift", "q", {"LANES": 1, "IN_W": int(width), "FLIP": flip}, ports)
    for module, producer_flip in ((ADDERS, flip), ("hg_mvu", flip), (ADDERS, SizedConstant(int(width), 0))):
        source = Cell(module, "mv", {"FLIP": producer_flip}, {"s_valid": "u", "m_valid": "v"})
        if (module, producer_flip) == (ADDERS, flip):
            check_flips(consumer, [source, consumer])
        else:
            with pytest.raises(hlsgen.HlsgenError, match="inverts bits"):
                check_flips(consumer, [source, consumer])


def test_a_complement(tmp_path: Path) -> None:
    """A sum of complements: its lowest bits belong to the first number, and are inverted like it."""
    rng, net = np.random.default_rng(2), Net((1, 9)).quant(1.0, 0.0, 8.0, signed=1, narrow=0)
    net.linear(9, 9, rng.integers(-128, 128, (9, 9)).astype(np.float32), "fc", scale=1.0, bits=8.0)
    core = Case(net.model, hlsgen.Options(target_cycles=1)).build(tmp_path / "core")
    path = core / "rtl" / "top_fc_adders.v"
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    complement = re.search(r"        \.a\(~.*\n    \);\n    assign n\S+ = ~", text)
    assert complement is not None
    assert messages(core) == []
    for changed in (complement[0].removesuffix("~"), complement[0].replace(".a(~", ".a(")):
        assert "has no lowest bits" in problems(core, path, text.replace(complement[0], changed))
        (core / "certificate.json").write_text(certificate)


def test_a_narrower_sum(core: Path) -> None:
    """A wire with one bit less, and operands with one bit less."""
    path = adder_file(core)
    text = path.read_text()
    sum_ = next(m for m in re.finditer(r"    wire \[(\d+):0\] (n\d+_\d+) = \{1'h0, (\S+)\} \+ \{1'h0, (\S+)\};", text))
    line = f"    wire [{int(sum_[1]) - 1}:0] {sum_[2]} = {{{sum_[3]}}} + {{{sum_[4]}}};"
    assert problems(core, path, text.replace(sum_[0], line))


def test_a_module_of_another_instance(core: Path) -> None:
    """Swapped, with hashes that agree."""
    first, second = sorted((core / "rtl").glob("top_*_adders.v"))[:2]
    a, b = first.read_text(), second.read_text()
    second.write_text(a.replace(first.stem, second.stem))
    sign(core, f"rtl/{second.name}")
    assert problems(core, first, b.replace(second.stem, first.stem))


def test_an_additional_module(core: Path) -> None:
    (core / "rtl" / "top_mv9_adders.v").write_text("module top_mv9_adders; endmodule\n")
    assert any("is not in certificate.json" in text for text in messages(core))


@pytest.mark.sweep
def test_registers_that_are_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers at the end of long chains: each is set to 0 in reset and written otherwise, from its own value."""
    monkeypatch.setattr(adder_text, "MOST_WAITS", 0)
    core = CASES["adders"].build(tmp_path / "core")
    path = adder_file(core)
    text, certificate = path.read_text(), (core / "certificate.json").read_text()
    assert messages(core) == []
    first = re.search(r"        (n\w+) <= (\d+)'h0;\n", text)
    assert first is not None
    name, bits = first.groups()
    moved = re.search(rf"        {name} <= n\w+;\n", text)
    assert moved is not None
    for old, new in (
        (first[0], ""),
        (moved[0], ""),
        (f"{name} <= {bits}'h0", f"{name} <= {bits}'h1"),
        (first[0], first[0] * 2),
        (f"{name} <= {bits}'h0", f"{name} <= {int(bits) + 1}'h0"),
        ("    end else if (en) begin", "    end else begin"),
        ("if (rst) begin", "if (!rst) begin"),
        (moved[0], moved[0].replace("_0;", "_1;")),
    ):
        assert old in text
        assert problems(core, path, text.replace(old, new, 1)), (old, new)
        (core / "certificate.json").write_text(certificate)


def test_sums_of_one_bit(tmp_path: Path) -> None:
    """A sum of -1 and 0 has one bit, in which weights of -1 and 1 are equal, but not one of 0."""
    net = Net((1, 1)).quant(1.0, 0.0, 1.0, signed=0, narrow=0)
    net.linear(1, 2, np.array([[-1, 0]], np.float32), "fc", scale=1.0, bits=2.0)
    core = Case(net.model, hlsgen.Options(target_cycles=1)).build(tmp_path / "core")
    path = core / "rtl" / "top_fc_adders.v"
    text = path.read_text()
    assert messages(core) == []
    assert "row (channel) 1" in problems(core, path, text.replace("m_data[1:1] = 1'h0", "m_data[1:1] = ~n1_1[0]"))
