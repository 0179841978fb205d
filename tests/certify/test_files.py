"""`hlsgen certify`: rtl/ and files.f hold exactly the files of the design, byte for byte as hlsgen emits them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from certified import CASES, messages, sign

import hlsgen
from hlsgen.certify.rtl_files import library_closure
from hlsgen.library import library_modules, library_text, modules_used


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CASES["network"].build(tmp_path_factory.mktemp("builds") / "network")


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def agree(core: Path, *, listing: bool = True) -> None:
    """Update all hashes, and the list of sources, to the present files."""
    path = core / "certificate.json"
    certificate = json.loads(path.read_text())
    files = sorted(p for p in (core / "rtl").rglob("*") if p.is_file())
    certificate["rtl"] = {}
    path.write_text(json.dumps(certificate))
    for file in files:
        sign(core, file.relative_to(core).as_posix())
    if listing:
        names = [p.relative_to(core).as_posix() for p in files if p.suffix == ".v"]
        (core / "files.f").write_text("".join(f"{name}\n" for name in names))


def inverted(core: Path, name: str) -> str:
    """The input port, with all data inverted."""
    text = (core / "rtl" / "top_hg_axis_in.v").read_text()
    assert "s_axis_tdata" in text
    (core / "rtl" / "top_hg_axis_in.v").unlink()
    (core / "rtl" / name).parent.mkdir(exist_ok=True)
    (core / "rtl" / name).write_text(text.replace("= s_axis_tdata", "= ~s_axis_tdata"))
    return name


def linked(core: Path) -> None:
    path = core / "rtl" / "top_hg_axis_in.v"
    path.rename(core / "elsewhere.v")
    path.symlink_to(core / "elsewhere.v")


def linked_folder(core: Path) -> None:
    (core / "rtl").rename(core / "other")
    (core / "rtl").symlink_to(core / "other")


def written(name: str, text: str) -> Callable[[Path], object]:
    return lambda core: (core / "rtl" / name).write_text(text)


def of_core(module: str, prefix: str) -> str:
    """A library module; its name and the names of modules inside it get this prefix."""
    return re.sub(r"\bhg_(?!parameter_error)", f"{prefix}hg_", library_text("rtl", f"{module}.v"))


def renamed(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Replace a module's name in a file of rtl/, and add a file of the module with the new name."""

    def change(core: Path) -> None:
        path = core / "rtl" / f"{name}.v"
        text = path.read_text()
        changed = re.sub(rf"^( *(?:module )?){old}(?= #?\()", rf"\g<1>{new}", text, count=1, flags=re.MULTILINE)
        assert changed != text
        path.write_text(changed)
        (core / "rtl" / f"{new}.v").write_text(of_core("hg_weights", new.removesuffix("hg_weights")))

    return change


ATTACKS: dict[str, Callable[[Path], object]] = {
    "module with another name": lambda core: inverted(core, "axis_in.v"),
    "module in a folder": lambda core: inverted(core, "sub/top_hg_axis_in.v"),
    "module with another suffix": lambda core: inverted(core, "axis_in.sv"),
    "bind": written("aaa.v", "bind top other u (.*);\n"),
    "module of the library that is not used": written("top_hg_argmax.v", of_core("hg_argmax", "top_")),
    "unknown module of the library's name": written("top_hg_aaa.v", "module top_hg_aaa; endmodule\n"),
    "module of another core": written("other_hg_mvu.v", of_core("hg_mvu", "other_")),
    "module of no core": written("hg_mvu.v", of_core("hg_mvu", "")),
    "adders of another core": written("other_mv0_adders.v", "module other_mv0_adders; endmodule\n"),
    "top level of another core": written("other.v", "module other; endmodule\n"),
    "name without a prefix in a module": renamed("top_hg_weight_words", "top_hg_weights", "hg_weights"),
    "name of another core in a module": renamed("top_hg_weight_words", "top_hg_weights", "other_hg_weights"),
    "name without a prefix in the top level": renamed("top", "top_hg_mvu", "hg_mvu"),
    "name of another core in the top level": renamed("top", "top_hg_mvu", "other_hg_mvu"),
    "module that has no prefix": renamed("top_hg_weights", "top_hg_weights", "hg_weights"),
    "header": written("top.vh", "`define x\n"),
    "memory": written("mv9.mem", "0\n"),
    "empty folder": lambda core: (core / "rtl" / "sub").mkdir(),
    "hidden": written(".v", "module hidden; endmodule\n"),
    "link": linked,
    "rtl is a link": linked_folder,
}


@pytest.mark.sweep
@pytest.mark.cases(4)
@pytest.mark.parametrize("name", list(ATTACKS))
def test_additional_files_in_rtl(core: Path, name: str) -> None:
    """Hashes and files.f are updated."""
    agree(core)
    assert messages(core) == []
    ATTACKS[name](core)
    agree(core)
    assert messages(core)


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("prefix", ["", "other_", "top_top_"])
def test_names_of_modules(core: Path, prefix: str) -> None:
    """Each name of a module must have the name of the core as a prefix, exactly once."""
    for module, file in (("hg_mvu", "top_hg_mvu"), ("hg_weights", "top_hg_weight_words"), ("hg_mvu", "top")):
        path = core / "rtl" / f"{file}.v"
        text = path.read_text()
        path.write_text(
            re.sub(rf"^( *(?:module )?)top_{module}\b", rf"\g<1>{prefix}{module}", text, flags=re.MULTILINE)
        )
        assert path.read_text() != text
        agree(core)
        reported = messages(core)
        assert reported
        assert file == "top" or any(f"rtl/{file}.v: is not the module of this version" in line for line in reported)
        path.write_text(text)
    agree(core)
    assert messages(core) == []


def test_modules_of_another_core_in_the_list(core: Path) -> None:
    """Even if the other core is next to this one."""
    (core / "files.f").write_text((core / "files.f").read_text() + "rtl/other_hg_mvu.v\n")
    assert any("files.f" in text and "other_hg_mvu" in text for text in messages(core))


@pytest.mark.parametrize("name", ["top_node_linear.mem", "tb/top_node_linear.mem", "top_hg_mvu.v", "tb/top.v"])
def test_files_that_a_tool_may_find_first(core: Path, name: str) -> None:
    """$readmemh reads a bare name: the file depends on the folder in which a tool is started."""
    (core / name).write_bytes((core / "rtl" / Path(name).name).read_bytes())
    assert any(f"{name}: has the name of rtl/" in text for text in messages(core))


@pytest.mark.parametrize("title", ["x\r`define wire tri", "x\t", "x\u2028", "x\\", "\ufeff"])
def test_titles_that_end_a_comment(core: Path, title: str) -> None:
    """In the manifest and in the comment."""
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"]["name"] = title
    path.write_text(json.dumps(manifest))
    top = core / "rtl" / "top.v"
    top.write_bytes(top.read_bytes().replace(b"model floor_ceil", f"model {title}".encode()))
    agree(core)
    assert any("rtl/top.v" in text for text in messages(core))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines, "+define+SYNTHESIS"],
        lambda lines: [*lines, "-f other.f"],
        lambda lines: [*lines, lines[0]],
        lambda lines: lines[1:],
        lambda lines: [f"./{lines[0]}", *lines[1:]],
        lambda lines: ["// comment", *lines],
        lambda lines: [f"{lines[0]}\r", *lines[1:]],
        lambda lines: [f"{lines[0]} {lines[1]}", *lines[2:]],
        lambda lines: [*lines, ""],
    ],
)
def test_the_list_of_sources(core: Path, change: Callable[[list[str]], list[str]]) -> None:
    path = core / "files.f"
    lines = path.read_text().splitlines()
    path.write_bytes("".join(f"{line}\n" for line in reversed(lines)).encode())
    assert messages(core) == []
    path.write_bytes("".join(f"{line}\n" for line in change(lines)).encode())
    assert any("files.f" in text for text in messages(core))


#: Name -> (text in top.v, its replacement). Other readers may interpret the replacement differently.
TEXTS: dict[str, tuple[str, str]] = {
    "carriage return in a comment": ("wire [2:0] node_symbolic_2_data;", "wire //\r[2:0]\r\n node_symbolic_2_data;"),
    "carriage return": ("endmodule\n", "endmodule\r\n"),
    "tab": ("    wire rst_core;", "\twire rst_core;"),
    "form feed": ("    wire rst_core;", "\f   wire rst_core;"),
    "zero": ("    wire rst_core;", "\0    wire rst_core;"),
    "letter that is not ASCII": ("    wire rst_core;", "    wire rst_core; // \u2028 \u00e9"),
    "byte order mark": ("// Core of", "\ufeff// Core of"),
    "comment after code": ("    wire rst_core;", "    wire rst_core; // synthesis keep"),
    "comment of another form": ("    wire rst_core;", "    // verilator lint_off WIDTH\n    wire rst_core;"),
    "pragma": ("    // layer node_linear:", "    // synthesis translate_off node_linear:"),
    "pragma without a space": ("    // layer node_linear:", "    //translate_off node_linear:"),
    "comment at another place": ("    wire rst_core;", "    // slice\n    wire rst_core;"),
    "layer of another name": ("// layer node_linear:", "// layer node_linear_1:"),
    "another statement on the layer": ("10 x 18, 4-bit weights", "10 x 18, `4`-bit weights"),
    "block comment": ("    wire rst_core;", "    /* */ wire rst_core;"),
    "attribute": ("    wire rst_core;", "    (* keep *) wire rst_core;"),
    "define": ("`default_nettype none\n", "`default_nettype none\n`define wire tri\n"),
    "timescale": ("// Core of", "`timescale 1ns/1ps\n// Core of"),
    "no default_nettype": ("`default_nettype none\n", ""),
    "default_nettype twice": ("    wire rst_core;", "`default_nettype wire\n    wire rst_core;"),
    "other end": ("`default_nettype wire\n", "`default_nettype none\n"),
    "line after the end": ("endmodule\n`default_nettype wire\n", "endmodule\n`default_nettype wire\n\n"),
    "title": ("Core of model floor_ceil", "Core of model another"),
    "types in the head": ("of 1 x int6 [-32, 31]", "of 1 x int6 [-31, 31]"),
    "timing in the head": ("// Timing  ", "// Timing  1"),
    "escaped name": (" rst_core;", " \\rst_core ;"),
    "ends of lines": ("\n", "\r\n"),
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", list(TEXTS))
def test_texts_that_are_never_emitted(core: Path, name: str) -> None:
    path, (old, new) = core / "rtl" / "top.v", TEXTS[name]
    original = path.read_bytes()
    changed = original.replace(old.encode(), new.encode())
    assert original != changed
    path.write_bytes(changed)
    agree(core)
    assert any("rtl/top.v" in text for text in messages(core))


def test_titles_and_names_of_any_language(tmp_path: Path, core: Path) -> None:
    """They are in comments."""
    data = (core / "model.onnx").read_bytes()
    (tmp_path / "verilator café 模型.onnx").write_bytes(data)
    hlsgen.build(tmp_path / "verilator café 模型.onnx", tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", " \n", 1),
        lambda text: text.replace("\n", "\x0b", 1),
        lambda text: text.replace("\n", "\n\n", 1),
        lambda text: "// 0\n" + text,
        lambda text: "@0\n" + text,
        lambda text: text.rstrip("\n"),
        lambda text: "0" + text,
        lambda text: text.lstrip("0") if text.startswith("0") else text.replace(text.split("\n")[1], "0", 1),
        lambda text: re.sub(r"[a-f]", lambda m: m[0].upper(), text),
        lambda text: text.replace("0", "_", 1),
        lambda text: text.replace("0", "x", 1),
    ],
)
def test_texts_of_memories_that_are_never_emitted(core: Path, change: Callable[[str], str]) -> None:
    path = core / "rtl" / "top_node_linear.mem"
    original = path.read_text()
    assert change(original) != original
    path.write_bytes(change(original).encode())
    agree(core)
    assert any("rtl/top_node_linear.mem" in text for text in messages(core))


@pytest.mark.parametrize("name", ["../top", "sub/top", "hg_top", "top.v", "", 7])
def test_names_of_the_top_level(core: Path, name: object) -> None:
    """A name cannot lead out of rtl/, and cannot be a name of the library."""
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"]["top"] = name
    manifest["top"]["module"] = name
    path.write_text(json.dumps(manifest))
    top = core / "rtl" / f"{name}.v"
    top.parent.mkdir(exist_ok=True)
    top.write_text((core / "rtl" / "top.v").read_text().replace("module top (", f"module {name} ("))
    if name != "../top":
        (core / "rtl" / "top.v").unlink()
    agree(core)
    assert any("manifest.json" in text for text in messages(core))


def test_repeated_keys(core: Path) -> None:
    """Programs differ in which of two equal keys they read."""
    path = core / "certificate.json"
    text = path.read_text()
    path.write_text(text.replace('"certificate":', '"certificate": 2, "certificate":'))
    assert any("certificate.json" in text for text in messages(core))
    path.write_text(text)
    path = core / "manifest.json"
    path.write_text(path.read_text().replace('"hlsgen":', '"hlsgen": "0", "hlsgen":'))
    with pytest.raises(hlsgen.HlsgenError, match="HG050"):
        hlsgen.certify(core)


def test_modules_inside_of_modules() -> None:
    """The checker finds the same modules as the compiler, with its own code."""
    for name in library_modules():
        assert library_closure({name}) == set(modules_used({name}))
