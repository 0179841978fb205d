"""`hlsgen certify` compares unproven files with files generated again from the model and options, or lists them as
assumed.
"""

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
    folder, builds = tmp_path_factory.mktemp("builds"), {}
    for target in TARGETS:
        builds[target] = folder / target.replace(",", "_")
        hlsgen.build(DATA / "floor_ceil.onnx", builds[target], hlsgen.Options(target=target, top="top"))
    return builds


@pytest.fixture(params=TARGETS)
def core(built: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built[request.param], tmp_path / "core"))


@pytest.fixture
def two_targets(built: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(built["verilog,hls"], tmp_path / "core"))


def problems(core: Path) -> list[str]:
    return [str(problem) for problem in hlsgen.certify(core).problems]


def compiled_once(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the same compiled build for each comparison."""
    build = reopen(core)
    monkeypatch.setattr(regenerated, "reopen", lambda directory: build)


def rewrite(core: Path, change: Any) -> None:
    """Change the manifest."""
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def files_of(core: Path) -> Iterator[str]:
    yield from sorted(path.relative_to(core).as_posix() for path in core.rglob("*") if path.is_file())


# --------------------------------------------------------------------------- targets


@pytest.mark.sweep
@pytest.mark.parametrize("removed_target", ["verilog", "hls"])
@pytest.mark.parametrize("listed", [True, False])
def test_files_of_a_target_that_the_option_does_not_name(two_targets: Path, removed_target: str, listed: bool) -> None:
    """A tool that reads the folder would read them, but nothing about them is proven."""
    places = {"verilog": ("rtl/", "files.f", "certificate.json"), "hls": ("hls/",)}[removed_target]
    other_target = "hls" if removed_target == "verilog" else "verilog"

    def change(manifest: dict[str, Any]) -> None:
        manifest["options"]["target"] = other_target
        if not listed:
            manifest["files"] = {n: h for n, h in manifest["files"].items() if not n.startswith(places)}

    rewrite(two_targets, change)
    (two_targets / "rtl" / "evil.v").write_text('module evil; initial $system("id"); endmodule\n')
    messages = problems(two_targets)
    assert all(
        any(text.startswith(f"HG055 {place}: belongs to the target {removed_target}") for text in messages)
        for place in places
    )
    assert any("manifest.json: files: " in text for text in messages) == listed


def test_entries_of_another_target_without_its_files(core: Path) -> None:
    target = json.loads((core / "manifest.json").read_text())["options"]["target"]
    missing = {"verilog": "hls/x.cpp", "hls": "rtl/x.v"}.get(target)
    if missing is not None:
        rewrite(core, lambda manifest: manifest["files"].update({missing: "0" * 64}))
        assert any("manifest.json: files: " in text for text in problems(core))


@pytest.mark.parametrize("target", ["", "hls,hls", "verilog,verilog", "verilog, hls", "vhdl", None, ["hls"]])
def test_invalid_targets(two_targets: Path, target: object) -> None:
    rewrite(two_targets, lambda manifest: manifest["options"].update({"target": target}))
    assert any("option target is" in text for text in problems(two_targets))


# --------------------------------------------------------------------------- files


def test_an_unchanged_build(core: Path) -> None:
    certified = hlsgen.certify(core)
    assert certified.ok, certified.problems
    assert "regenerated" in {statement.name for statement in certified.proven}
    assert not {"other-files", "cpp-other-files", "cpp-manifest"} & {statement.name for statement in certified.assumed}


@pytest.mark.sweep
def test_every_file_is_proven_or_compared(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_once(core, monkeypatch)
    proven = {"files.f", "certificate.json", "model.onnx"}
    for name in files_of(core):
        original = (core / name).read_bytes()
        (core / name).write_bytes(
            original[:-1] + bytes([original[-1] ^ 1]) if name.endswith(".bin") else original + b"\n "
        )
        differing = {problem.node for problem in regenerated.regenerated_differences(core)}
        skipped = name in proven or name.startswith("rtl/") or name == "manifest.json"
        assert differing == (set() if skipped else {name})
        (core / name).write_bytes(original)


@pytest.mark.parametrize(
    "name", ["host/top.c", "host/top.h", "host/top.py", "host/top_vectors.bin", "tb/expected.hex", "report.html"]
)
def test_files_that_are_changed_with_their_hashes(two_targets: Path, name: str) -> None:
    (two_targets / name).write_bytes((two_targets / name).read_bytes().replace(b"0", b"1", 1))
    agree(two_targets)
    assert any(text.startswith(f"HG051 {name}: differs") for text in problems(two_targets))


@pytest.mark.parametrize(
    "name", ["host/more.py", "host/sub/x.c", "tb/more.py", "hls/more.hpp", "hls/csim/ap_int.h", "hls/hg/x.hpp"]
)
def test_files_that_are_too_many(two_targets: Path, name: str) -> None:
    (two_targets / name).parent.mkdir(exist_ok=True)
    (two_targets / name).write_text("")
    assert any(f"{name}: does not belong" in text or f"{name}: is " in text for text in problems(two_targets))


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "name",
    ["hls/hg", "hls/hg/types.hpp", "hls/top.cpp", "hls/top.hpp", "hls/weights.hpp", "hls/certificate.json", "hls"],
)
def test_files_that_are_missing(two_targets: Path, name: str) -> None:
    """Their hashes are still listed, or they are pipes, for which nothing must wait."""
    path = two_targets / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert problems(two_targets)
    if name.endswith(("pp", "json")):
        os.mkfifo(path)
        with pytest.raises(hlsgen.HlsgenError, match="HG050"):
            problems(two_targets)


def test_files_of_the_user_are_named(two_targets: Path) -> None:
    """They are not part of the build; an assumption names them."""
    for name in ("results/x.json", "tb/sim_build/x", "hls/csim.exe", "constraints/x.xdc", "notes.txt"):
        (two_targets / name).parent.mkdir(exist_ok=True)
        (two_targets / name).write_text("")
    certified = hlsgen.certify(two_targets)
    assert certified.ok, certified.problems
    places = next(statement for statement in certified.assumed if statement.name == "user-files").where
    assert {"results/", "tb/sim_build/", "hls/csim.exe"} <= set(places)


# --------------------------------------------------------------------------- fields


@pytest.mark.sweep
def test_every_field_of_the_manifest_is_compared(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time, except the hashes of proven files, which the proof compares."""
    compiled_once(core, monkeypatch)
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    for place, container, key in list(leaves(manifest)):
        original, container[key] = container[key], lie(container[key])
        path.write_text(json.dumps(manifest))
        messages = [str(problem) for problem in regenerated.regenerated_differences(core)]
        proven = re.match(r"files\.(rtl/|files\.f|certificate|model)", place)
        assert (messages == []) == bool(proven), place
        container[key] = original


def test_a_depth_of_a_stream_in_cpp(two_targets: Path) -> None:
    """The proof of the C++ reads no depths."""
    path = two_targets / "hls" / "top.cpp"
    text = path.read_text()
    path.write_text(re.sub(r"depth=\d+", "depth=1", text))
    assert path.read_text() != text
    certificate = json.loads((two_targets / "hls" / "certificate.json").read_text())
    certificate["cpp"]["hls/top.cpp"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (two_targets / "hls" / "certificate.json").write_text(json.dumps(certificate))
    agree(two_targets)
    assert [str(problem) for problem in prove(two_targets).problems] == []
    assert any(text.startswith("HG051 hls/top.cpp: differs") for text in problems(two_targets))


@pytest.mark.parametrize("compared", [True, False])
def test_every_option_is_named(compared: bool) -> None:
    """Another value may give the same build, so the requested value can only be assumed."""
    places = covered(compared)
    for field in fields(hlsgen.Options):
        assert places.fullmatch(f"options.{field.name}"), field.name


def test_every_field_that_the_proof_accepts_is_named(built: dict[str, Path]) -> None:
    """These are NOT_PROVEN: `test_every_statement` changes all others, and each change is detected."""
    places = covered(False)
    for place, _, _ in leaves(json.loads((built["verilog"] / "manifest.json").read_text())):
        assert places.fullmatch(place) or not NOT_PROVEN.fullmatch(place), place


def covered(compared: bool) -> re.Pattern[str]:
    """A pattern of the entries that some assumption names, and of all entries inside them."""
    assumptions = statements.assumed(model=True, loadable=True, once=(), targets=["verilog"], compared=compared)
    places = [re.escape(place).replace(r"\[\]", r"\[\d+\]") for assumption in assumptions for place in assumption.where]
    return re.compile("(?:" + "|".join(places) + r")(?:(?<=/)|(?=[.\[]|$)).*")


def test_a_changed_option_that_changes_the_hardware(core: Path) -> None:
    """The manifest is wrong: this option gives another build."""
    rewrite(core, lambda manifest: manifest["options"].update({"input": "fixed:6,6"}))
    assert problems(core)


def test_a_consistent_change_of_rtl_is_seen_in_other_files(built: dict[str, Path], tmp_path: Path) -> None:
    """The head of the top level also states cycles, without a proof."""
    core = Path(shutil.copytree(built["verilog"], tmp_path / "core"))
    cycles = json.loads((core / "manifest.json").read_text())["cycles"]["latency"]
    top = core / "rtl" / "top.v"
    top.write_text(top.read_text().replace(f"// Timing  {cycles} ", f"// Timing  {cycles + 1} "))
    rewrite(core, lambda manifest: manifest["cycles"].update({"latency": cycles + 1}))
    sign(core, "rtl/top.v")
    assert any(
        text.startswith("HG051 manifest.json: differs from a new build of the model in cycles")
        for text in problems(core)
    )
