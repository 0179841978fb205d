"""A build takes the place of the one before at once, whenever it is stopped, and keeps what is the user's."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from models import mlp, quantizer, save

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver import build_directory
from hlsgen.driver.build_directory import write_build


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> hlsgen.Build:
    return hlsgen.check(save(quantizer().model(), tmp_path_factory.mktemp("model") / "m.onnx"))


def small(build: hlsgen.Build, **files: str) -> hlsgen.Build:
    """A build of few files; `_` in their names stands for `/`."""
    content = {name.replace("_", "/"): text.encode() for name, text in {"model": "an onnx", **files}.items()}
    content["model.onnx"] = content.pop("model")
    manifest = json.loads(build.files["manifest.json"])
    manifest["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    manifest["model"]["sha256"] = manifest["files"]["model.onnx"]
    return replace(build, files={**content, "manifest.json": json.dumps(manifest).encode()})


def content(folder: Path) -> dict[str, str]:
    """All that is in a folder, at any depth: text of files, targets of links, kinds of all else."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes().decode("latin-1")
        elif path.is_dir():
            found[f"{name}/"] = oct(path.stat().st_mode & 0o777)
        else:
            found[name] = "special"
    return found


def users_files(out: Path) -> dict[str, str]:
    """Puts into a build what users put there; gives it."""
    before = set(content(out))
    (out / "constraints.xdc").write_text("create_clock")
    (out / "vivado" / "runs" / "empty").mkdir(parents=True)
    (out / "vivado" / "runs" / "top.dcp").write_bytes(bytes(range(256)))
    (out / "vivado").chmod(0o750)
    (out / "rtl" / "wrapper.v").write_text("module wrapper; endmodule")
    (out / "latest").symlink_to("vivado/runs")
    os.mkfifo(out / "pipe")
    return {name: text for name, text in content(out).items() if name not in before}


def files_of(build: hlsgen.Build) -> dict[str, str]:
    return {name: data.decode("latin-1") for name, data in build.files.items()}


def without_folders(found: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    """Without the folders that are not among the names: those of the build."""
    return {name: text for name, text in found.items() if not name.endswith("/") or name in names}


# --------------------------------------------------------------------------- the user's files


def test_files_of_the_user_stay(real: hlsgen.Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_build(small(real, rtl_a="old", rtl_b="old", tb_x="old", hls_y="old"), out)
    users = users_files(out)
    inode = (out / "constraints.xdc").stat().st_ino
    new = small(real, rtl_a="new", rtl_c="new", docs_z="new")
    write_build(new, out)
    assert without_folders(content(out), users) == users | files_of(new)
    assert not (out / "tb").exists()
    assert not (out / "hls").exists()
    assert (out / "constraints.xdc").stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    write_build(new, out)
    assert without_folders(content(out), users) == users | files_of(new)


def test_a_real_build_over_another(tmp_path: Path) -> None:
    one, other = save(mlp().model(), tmp_path / "m.onnx"), save(quantizer().model(), tmp_path / "n.onnx")
    hlsgen.build(one, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    build = hlsgen.build(other, tmp_path / "out")
    found = {name for name in content(tmp_path / "out") if not name.endswith("/")}
    assert found == {"notes.txt", *build.files}
    assert json.loads(build.files["manifest.json"])["files"] == {
        name: hashlib.sha256(data).hexdigest() for name, data in build.files.items() if name != "manifest.json"
    }


IN_THE_WAY: dict[str, Callable[[Path], Any]] = {
    "tb/x": lambda out: (out / "tb" / "x").write_text("a test of mine"),
    "rtl/c": lambda out: (out / "rtl" / "c").write_text("mine"),
    "docs": lambda out: (out / "docs").write_text("mine"),
    "docs/z": lambda out: (out / "docs" / "z").mkdir(parents=True),
    "rtl": lambda out: ((out / "rtl").rename(out / "kept"), (out / "rtl").symlink_to("kept")),
    "rtl/a": lambda out: ((out / "rtl" / "a").unlink(), (out / "rtl" / "a").symlink_to("/etc/passwd")),
}


@pytest.mark.parametrize("where", IN_THE_WAY)
def test_files_in_the_way_are_refused(where: str, real: hlsgen.Build, tmp_path: Path) -> None:
    """Also a file of the build that was edited."""
    out = tmp_path / "out"
    write_build(small(real, rtl_a="old", tb_x="old"), out)
    users_files(out)
    IN_THE_WAY[where](out)
    (out / "report").write_text("mine too")
    before = content(tmp_path)
    with pytest.raises(HlsgenError) as refused:
        write_build(small(real, rtl_a="new", rtl_c="new", tb_x="new", docs_z="new", report="new"), out)
    assert {d.code for d in refused.value.diagnostics} == {"HG060"}
    named = {d.node.removeprefix(f"{out}/").rstrip("/") for d in refused.value.diagnostics}
    assert {where, "report"} <= named
    assert content(tmp_path) == before


def test_an_edited_file_that_is_not_needed_stays(real: hlsgen.Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_build(small(real, rtl_a="old", rtl_b="old"), out)
    (out / "rtl" / "b").write_text("edited")
    write_build(small(real, rtl_a="new"), out)
    assert (out / "rtl" / "b").read_text() == "edited"


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("files"),
        lambda m: m.pop("model"),
        lambda m: m.update(hlsgen=1),
        lambda m: m.update(files=list(m["files"])),
        lambda m: m["files"].update({"../victim": m["files"]["rtl/a"]}),
        lambda m: m["files"].update({"/etc/passwd": m["files"]["rtl/a"]}),
        lambda m: m["files"].update({"rtl/./a": m["files"]["rtl/a"]}),
        lambda m: m["files"].update({"rtl/b": "no hash"}),
        lambda m: m["model"].update(sha256="0" * 64),
    ],
)
def test_a_manifest_that_is_not_ours(change: Callable[[Any], Any], real: hlsgen.Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build = small(real, rtl_a="old")
    write_build(build, out)
    (tmp_path / "victim").write_text("old")
    manifest = json.loads((out / "manifest.json").read_text())
    change(manifest)
    (out / "manifest.json").write_text(json.dumps(manifest))
    before = content(tmp_path)
    with pytest.raises(HlsgenError, match="HG050"):
        write_build(build, out)
    assert content(tmp_path) == before


def test_a_listed_file_behind_a_link_is_not_removed(real: hlsgen.Build, tmp_path: Path) -> None:
    """A manifest lists a file of the build; its folder now is a link to another place that has the same file."""
    out = tmp_path / "out"
    write_build(small(real, rtl_a="old", tb_x="old"), out)
    shutil.copytree(out / "tb", tmp_path / "elsewhere")
    shutil.rmtree(out / "tb")
    (out / "tb").symlink_to("../elsewhere")
    write_build(small(real, rtl_a="new"), out)
    assert (tmp_path / "elsewhere" / "x").read_text() == "old"
    assert os.readlink(out / "tb") == "../elsewhere"


def test_what_the_user_does_meanwhile(real: hlsgen.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file made, and a file of the build edited, in the moment before the new build takes its place."""
    from hlsgen.driver import replace_directory

    out = tmp_path / "out"
    write_build(small(real, rtl_a="old", tb_x="old"), out)
    change = replace_directory._change_places

    def late(work: Any, directory: Path) -> None:
        (out / "sub").mkdir()
        (out / "sub" / "late").write_text("mine")
        (out / "rtl" / "late").write_text("mine")
        (out / "tb" / "x").write_text("edited")
        (out / "link").symlink_to("nowhere")
        os.mkfifo(out / "sub" / "pipe")
        change(work, directory)

    with monkeypatch.context() as patch:
        patch.setattr(replace_directory, "_change_places", late)
        write_build(small(real, rtl_a="new"), out)
    found = content(out)
    assert (found["sub/late"], found["rtl/late"], found["rtl/a"], found["tb/x"]) == ("mine", "mine", "new", "edited")
    assert (found["link"], found["sub/pipe"]) == ("-> nowhere", "special")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_edit_that_is_overtaken(real: hlsgen.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the build edited, and one of the user saved anew, in the last moment: no version is lost, and a warning
    says where it is, as long as it is there."""
    from hlsgen.driver import replace_directory

    out = tmp_path / "out"
    write_build(small(real, rtl_a="old"), out)
    (out / "notes").write_text("mine")
    change = replace_directory._change_places

    def late(work: Any, directory: Path) -> None:
        (out / "rtl" / "a").write_text("edited")
        (out / "notes").unlink()
        (out / "notes").write_text("saved")
        change(work, directory)

    with monkeypatch.context() as patch:
        patch.setattr(replace_directory, "_change_places", late)
        first = write_build(small(real, rtl_a="new"), out)
    for found in (first, write_build(small(real, rtl_a="newer"), out)):
        assert [(x.code, x.severity, x.node) for x in found] == [
            ("HG063", "warning", str(out / name)) for name in ("notes", "rtl/a")
        ]
        places = [Path(re.search(r"Your version is (\S+)\.", x.message)[1]) for x in found]  # type: ignore[index]
        assert [place.read_text() for place in places] == ["saved", "edited"]
    assert (out / "rtl" / "a").read_text() == "newer"
    for place in places:
        place.unlink()
    assert write_build(small(real, rtl_a="new"), out) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_interrupted_between_two_steps(real: hlsgen.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two folders cannot change places at once: the old one comes back."""
    out, rename = tmp_path / "out", os.rename
    write_build(small(real, rtl_a="old"), out)
    before = content(tmp_path)

    def interrupted(source: Any, target: Any) -> None:
        rename(source, target)
        if Path(source) == out:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hlsgen.driver.replace_directory._exchanged", lambda one, other: False)
        patch.setattr(os, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_build(small(real, rtl_a="new"), out)
    assert content(tmp_path) == before


def test_mode_of_the_directory_stays(real: hlsgen.Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    write_build(small(real), out)
    assert out.stat().st_mode & 0o777 == 0o700


# --------------------------------------------------------------------------- stopped at any time

EVENTS = {
    "open",
    "os.mkdir",
    "os.link",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.scandir",
    "ctypes.dlopen",
    "ctypes.get_errno",
    "tempfile.mkdtemp",
    "fcntl.flock",
}


def stopped(at: int, how: str, action: Callable[[], object]) -> bool:
    """Runs `action` in a process that is stopped before the operation number `at` on files; whether it came to that."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    seen = 0

    def hook(event: str, _: object) -> None:
        nonlocal seen
        seen += event in EVENTS
        if seen == at and event in EVENTS:
            seen += 1
            if how == "killed":
                os._exit(9)
            raise KeyboardInterrupt if how == "interrupted" else OSError(errno.ENOSPC, "No space left on device")

    try:
        sys.addaudithook(hook)
        action()
    except BaseException:
        os._exit(1)
    os._exit(0 if seen < at else 2)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "how, exchange, step",
    [
        ("killed", True, 1),
        ("killed", False, 2),
        ("interrupted", True, 4),
        ("interrupted", False, 5),
        ("full disk", True, 3),
    ],
)
@pytest.mark.sweep
def test_stopped(
    how: str, exchange: bool, step: int, real: hlsgen.Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old or new, with all that is the user's, whatever the operation before which it is stopped; then as new."""
    old, new = small(real, rtl_a="old", tb_x="old"), small(real, rtl_a="new", docs_z="new")
    if not exchange:
        monkeypatch.setattr("hlsgen.driver.replace_directory._exchanged", lambda one, other: False)
    states = set()
    for at in range(1, 1000, step):
        home = tmp_path / f"at{at}"
        out = home / "out"
        write_build(old, out)
        users = {"mine.xdc": "mine", "rtl/wrapper.v": "mine", "sub/": "0o755", "sub/deep": "mine"}
        (out / "sub").mkdir(mode=0o755)
        for name in users:
            if not name.endswith("/"):
                (out / name).write_text("mine")
        if not stopped(at, how, lambda: write_build(new, out)):  # noqa: B023
            break
        found = without_folders(content(out), users)
        right = [users | files_of(old), users | files_of(new)]
        if found in right:
            states.add(right.index(found))
        else:
            assert not exchange
            assert how == "killed"
            assert not out.exists()
        write_build(new, out)
        assert without_folders(content(out), users) == users | files_of(new), at
        assert [path.name for path in home.iterdir()] == ["out"], at
    assert at > 30
    assert states == {0, 1}


# --------------------------------------------------------------------------- working folders


def test_a_running_process_is_left_alone(real: hlsgen.Build, tmp_path: Path) -> None:
    from hlsgen.driver import replace_directory

    out = tmp_path / "out"
    write_build(small(real, rtl_a="old"), out)
    with replace_directory._working(out) as work:
        before = content(tmp_path)
        with pytest.raises(HlsgenError, match=r"HG001.*another process"):
            write_build(small(real, rtl_a="new"), out)
        assert content(tmp_path) == before
        assert work.folder.exists()
    write_build(small(real, rtl_a="new"), out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_only_looks_like_a_working_folder_stays(real: hlsgen.Build, tmp_path: Path) -> None:
    from hlsgen.driver import replace_directory

    out, prefix = tmp_path / "out", replace_directory._prefix(tmp_path / "out")
    marked = [b"", b"{}", b"[]", b"\xff", b"[" * 100000, b'{"new": ["precious"], "old": {}}']
    for n, text in enumerate(marked):
        folder = tmp_path / f"{prefix}{n}"
        (folder / "new").mkdir(parents=True)
        (folder / "new" / "precious").write_text("mine")
        (folder / replace_directory.MARKER).write_bytes(text)
    (tmp_path / f"{prefix}pipe").mkdir()
    os.mkfifo(tmp_path / f"{prefix}pipe" / replace_directory.MARKER)
    (tmp_path / f"{prefix}unmarked").mkdir()
    (tmp_path / f"{prefix}unmarked" / "precious").write_text("mine")
    (tmp_path / "elsewhere" / "new").mkdir(parents=True)
    (tmp_path / "elsewhere" / "new" / "precious").write_text("mine")
    (tmp_path / "elsewhere" / replace_directory.MARKER).write_text('{"new": ["precious"], "old": {}, "inode": 1}')
    (tmp_path / f"{prefix}link").symlink_to("elsewhere")
    (tmp_path / ".out.abc").mkdir()
    before = content(tmp_path)
    write_build(small(real, rtl_a="new"), out)
    assert {name: text for name, text in content(tmp_path).items() if not name.startswith("out/")} == before


def test_a_working_folder_with_links_in_it(real: hlsgen.Build, tmp_path: Path) -> None:
    """What a killed process left is removed without following links out of it."""
    from hlsgen.driver import replace_directory

    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("precious")
    folder = tmp_path / f"{replace_directory._prefix(out)}0"
    (folder / "new").mkdir(parents=True)
    (folder / "new" / "rtl").symlink_to(elsewhere)
    inode = (folder / "new").stat().st_ino
    state = {"new": ["rtl/a", "rtl"], "old": {}, "inode": inode}
    (folder / replace_directory.MARKER).write_text(json.dumps(state))
    write_build(small(real, rtl_a="new"), out)
    assert (elsewhere / "a").read_text() == "precious"
    assert not folder.exists()


# --------------------------------------------------------------------------- reading what is not trusted


def test_special_files_are_not_read(tmp_path: Path) -> None:
    """Pipes would block for ever, devices never end, a huge file fills the memory."""
    out = tmp_path / "out"
    path = save(mlp().model(), tmp_path / "m.onnx")
    build = hlsgen.build(path, out)
    for name in ("rtl/m.v", "files.f", "tb/run.py", "certificate.json"):
        (out / name).unlink()
    os.mkfifo(out / "rtl" / "m.v")
    (out / "files.f").symlink_to("/dev/zero")
    os.mkfifo(out / "tb" / "run.py")
    os.mkfifo(out / "certificate.json")
    with open(out / "report.md", "r+b") as stream:
        stream.truncate(1 << 40)
    expected = ["certificate.json", "files.f", "report.md", "rtl/m.v", "tb/run.py"]
    assert build_directory.changed_files(build.files, out) == expected
    with pytest.raises(HlsgenError, match=r"HG050.*certificate\.json"):
        hlsgen.certify(out)
    for name in ("manifest.json", "model.onnx"):
        copy = tmp_path / name
        shutil.copytree(
            path.parent / "out", copy, ignore=lambda folder, names: set(names) - {"manifest.json", "model.onnx"}
        )
        (copy / name).unlink()
        os.mkfifo(copy / name)
        for action in (hlsgen.verify, hlsgen.certify):
            with pytest.raises(HlsgenError, match="HG050"):
                action(copy)
        with pytest.raises(HlsgenError, match="HG050"):
            hlsgen.build(path, copy) if name == "manifest.json" else hlsgen.run(copy, 0)  # type: ignore[arg-type]
        (copy / name).unlink()
        (copy / name).symlink_to("/dev/zero")
        with pytest.raises(HlsgenError, match="HG050"):
            hlsgen.verify(copy)


def test_all_that_is_executed_is_compared(tmp_path: Path) -> None:
    out = tmp_path / "out"
    build = hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), out)
    added = ["rtl/include/x.vh", "rtl/x.sv", "rtl/x.v", "tb/cocotb.py", "tb/numpy/__init__.py", "tb/sitecustomize.py"]
    for name in added:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("")
    (out / "tb" / "sim_build").mkdir()
    (out / "tb" / "sim_build" / "x.py").write_text("")
    (out / "constraints.xdc").write_text("")
    (out / "tb" / "Makefile").unlink()
    (out / "tb" / "Makefile").symlink_to("elsewhere")
    assert build_directory.changed_files(build.files, out) == ["tb/Makefile", *added]


def test_a_model_with_a_name_of_verilog(tmp_path: Path) -> None:
    """No text of a model becomes Verilog."""
    evil = [
        '*/ initial $system("id"); /*',
        '\n initial $system("id");',
        '\r\u2028initial $system("id");',
        '\\"; $c("id")',
    ]
    for name in evil:
        model = mlp().model()
        for node in model.graph.node:
            node.name = name + node.name
        model.graph.name = name
        model.graph.input[0].name = name
        for node in model.graph.node:
            node.input[:] = [name if i == "x" else i for i in node.input]
        onnx.save(model, tmp_path / "m.onnx")
        build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(name=name))
        for file, data in build.files.items():
            if file.startswith("rtl/"):
                lines = data.decode().splitlines()
                code = " ".join(line.split("//")[0] for line in lines)
                assert "initial $system" not in code, file
                assert "$c(" not in code, file
