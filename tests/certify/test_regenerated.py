"""`hlsgen certify`: what is not proven is compared with what the model and the options give, or named as assumed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from certified import sign
from certified_cpp import agree
from manifest_fields import NOT_PROVEN, leaves, lie
from paths import DATA

import hlsgen
from hlsgen.certify import certify as prove
from hlsgen.certify import statements
from hlsgen.driver import regenerated
from hlsgen.driver.build_directory import reopen

TARGETS = ("verilog", "hls", "verilog,hls")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, found = tmp_path_factory.mktemp("builds"), {}
    for target in TARGETS:
        found[target] = folder / target.replace(",", "_")
        hlsgen.build(DATA / "floor_ceil.onnx", found[target], hlsgen.Options(target=target, top="top"))
    return found


@pytest.fixture(params=TARGETS)
def core(built: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built[request.param], tmp_path / "core"))


@pytest.fixture
def both(built: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(built["verilog,hls"], tmp_path / "core"))


def problems(core: Path) -> list[str]:
    return [str(problem) for problem in hlsgen.certify(core).problems]


def compiled_once(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comparison takes the same compiled build."""
    build = reopen(core)
    monkeypatch.setattr(regenerated, "reopen", lambda directory: build)


def rewrite(core: Path, change: Any) -> None:
    """Changes the manifest."""
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def files_of(core: Path) -> Iterator[str]:
    yield from sorted(path.relative_to(core).as_posix() for path in core.rglob("*") if path.is_file())


# --------------------------------------------------------------------------- targets


@pytest.mark.parametrize("left", ["verilog", "hls"])
@pytest.mark.parametrize("listed", [True, False])
def test_files_of_a_target_that_the_option_does_not_name(both: Path, left: str, listed: bool) -> None:
    """A tool that is pointed at the folder would read them, and nothing is proven of them."""
    places = {"verilog": ("rtl/", "files.f", "certificate.json"), "hls": ("hls/",)}[left]
    other = "hls" if left == "verilog" else "verilog"

    def change(manifest: dict[str, Any]) -> None:
        manifest["options"]["target"] = other
        if not listed:
            manifest["files"] = {n: h for n, h in manifest["files"].items() if not n.startswith(places)}

    rewrite(both, change)
    (both / "rtl" / "evil.v").write_text('module evil; initial $system("id"); endmodule\n')
    found = problems(both)
    assert all(
        any(text.startswith(f"HG055 {place}: belongs to the target {left}") for text in found) for place in places
    )
    assert any("manifest.json: files: " in text for text in found) == listed


def test_entries_of_another_target_without_its_files(core: Path) -> None:
    target = json.loads((core / "manifest.json").read_text())["options"]["target"]
    missing = {"verilog": "hls/x.cpp", "hls": "rtl/x.v"}.get(target)
    if missing is not None:
        rewrite(core, lambda manifest: manifest["files"].update({missing: "0" * 64}))
        assert any("manifest.json: files: " in text for text in problems(core))


@pytest.mark.parametrize("target", ["", "hls,hls", "verilog,verilog", "verilog, hls", "vhdl", None, ["hls"]])
def test_targets_that_are_none(both: Path, target: object) -> None:
    rewrite(both, lambda manifest: manifest["options"].update({"target": target}))
    assert any("option target is" in text for text in problems(both))


# --------------------------------------------------------------------------- files


def test_a_build_as_it_is(core: Path) -> None:
    found = hlsgen.certify(core)
    assert found.ok, found.problems
    assert "regenerated" in {statement.name for statement in found.proven}
    assert not {"other-files", "cpp-other-files", "cpp-manifest"} & {statement.name for statement in found.assumed}


def test_every_file_is_proven_or_compared(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_once(core, monkeypatch)
    proven = {"files.f", "certificate.json", "model.onnx"}
    for name in files_of(core):
        before = (core / name).read_bytes()
        (core / name).write_bytes(before[:-1] + bytes([before[-1] ^ 1]) if name.endswith(".bin") else before + b"\n ")
        found = {problem.node for problem in regenerated.regenerated_differences(core)}
        skipped = name in proven or name.startswith("rtl/") or name == "manifest.json"
        assert found == (set() if skipped else {name})
        (core / name).write_bytes(before)


@pytest.mark.parametrize(
    "name", ["host/top.c", "host/top.h", "host/top.py", "host/top_vectors.bin", "tb/expected.hex", "report.html"]
)
def test_files_that_are_changed_with_their_hashes(both: Path, name: str) -> None:
    (both / name).write_bytes((both / name).read_bytes().replace(b"0", b"1", 1))
    agree(both)
    assert any(text.startswith(f"HG051 {name}: differs") for text in problems(both))


@pytest.mark.parametrize(
    "name", ["host/more.py", "host/sub/x.c", "tb/more.py", "hls/more.hpp", "hls/csim/ap_int.h", "hls/hg/x.hpp"]
)
def test_files_that_are_too_many(both: Path, name: str) -> None:
    (both / name).parent.mkdir(exist_ok=True)
    (both / name).write_text("")
    assert any(f"{name}: is " in text for text in problems(both))


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "name",
    ["hls/hg", "hls/hg/types.hpp", "hls/top.cpp", "hls/top.hpp", "hls/weights.hpp", "hls/certificate.json", "hls"],
)
def test_files_that_are_missing(both: Path, name: str) -> None:
    """With their hashes still listed, or as pipes, which nothing must wait for."""
    path = both / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert problems(both)
    if name.endswith(("pp", "json")):
        os.mkfifo(path)
        with pytest.raises(hlsgen.HlsgenError, match="HG050"):
            problems(both)


def test_files_of_the_user_are_named(both: Path) -> None:
    """They are no part of the build: the list of assumptions says so."""
    for name in ("results/x.json", "tb/sim_build/x", "hls/csim.exe", "constraints/x.xdc", "notes.txt"):
        (both / name).parent.mkdir(exist_ok=True)
        (both / name).write_text("")
    found = hlsgen.certify(both)
    assert found.ok, found.problems
    where = next(statement for statement in found.assumed if statement.name == "user-files").where
    assert {"results/", "tb/sim_build/", "hls/csim.exe"} <= set(where)


# --------------------------------------------------------------------------- fields


def test_every_field_of_the_manifest_is_compared(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time; but for the hashes of files that are proven, which the proof compares."""
    compiled_once(core, monkeypatch)
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    for place, container, key in list(leaves(manifest)):
        before, container[key] = container[key], lie(container[key])
        path.write_text(json.dumps(manifest))
        found = [str(problem) for problem in regenerated.regenerated_differences(core)]
        proven = re.match(r"files\.(rtl/|files\.f|certificate|model)", place)
        assert (found == []) == bool(proven), place
        container[key] = before


def test_a_depth_of_a_stream_in_cpp(both: Path) -> None:
    """The proof of the C++ reads no depths."""
    path = both / "hls" / "top.cpp"
    text = path.read_text()
    path.write_text(re.sub(r"depth=\d+", "depth=1", text))
    assert path.read_text() != text
    certificate = json.loads((both / "hls" / "certificate.json").read_text())
    certificate["cpp"]["hls/top.cpp"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (both / "hls" / "certificate.json").write_text(json.dumps(certificate))
    agree(both)
    assert [str(problem) for problem in prove(both).problems] == []
    assert any(text.startswith("HG051 hls/top.cpp: differs") for text in problems(both))


@pytest.mark.parametrize("compared", [True, False])
def test_every_option_is_named(compared: bool) -> None:
    """Another value may give the same build: which one was asked for can only be assumed."""
    places = covered(compared)
    for field in fields(hlsgen.Options):
        assert places.fullmatch(f"options.{field.name}"), field.name


def test_every_field_that_the_proof_accepts_is_named(built: dict[str, Path]) -> None:
    """NOT_PROVEN are those: `test_every_statement` changes all others, and each is found."""
    places = covered(False)
    for place, _, _ in leaves(json.loads((built["verilog"] / "manifest.json").read_text())):
        assert places.fullmatch(place) or not NOT_PROVEN.fullmatch(place), place


def covered(compared: bool) -> re.Pattern[str]:
    """The entries that some assumption names, and all that is inside of them."""
    named = statements.assumed(model=True, loadable=True, once=(), targets=["verilog"], compared=compared)
    places = [re.escape(place).replace(r"\[\]", r"\[\d+\]") for one in named for place in one.where]
    return re.compile("(?:" + "|".join(places) + r")(?:(?<=/)|(?=[.\[]|$)).*")


def test_a_changed_option_that_changes_the_hardware(core: Path) -> None:
    """It is a lie of the manifest, or what it asks for would be built."""
    rewrite(core, lambda manifest: manifest["options"].update({"input": "fixed:6,6"}))
    assert problems(core)


def test_a_consistent_change_of_rtl_is_seen_in_other_files(built: dict[str, Path], tmp_path: Path) -> None:
    """Cycles stand in the comment at the head of the top level as well; nothing there proves them."""
    core = Path(shutil.copytree(built["verilog"], tmp_path / "core"))
    cycles = json.loads((core / "manifest.json").read_text())["cycles"]["latency"]
    top = core / "rtl" / "top.v"
    top.write_text(top.read_text().replace(f"// Timing  {cycles} ", f"// Timing  {cycles + 1} "))
    rewrite(core, lambda manifest: manifest["cycles"].update({"latency": cycles + 1}))
    sign(core, "rtl/top.v")
    assert any(
        text.startswith("HG051 manifest.json: differs from a new build of the model in cycles") for text in problems(core)
    )
