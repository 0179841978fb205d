"""`hlsgen certify` of builds that are made to stop it: an answer soon, without a traceback, in little memory."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certified_images
import pytest
from certified import CASES, messages, sign

import hlsgen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("builds")
    builds = {name: CASES[name].build(folder / name) for name in ("network", "rank", "compare", "scale", "float")}
    builds["moved"] = certified_images.build("moved", folder / "moved")
    return builds | {
        name: certified_images.build(name, folder / f"w{name}", whole=True) for name in ("three", "padded")
    }


@pytest.fixture
def core(built: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(built["network"], tmp_path / "core")
    return tmp_path / "core"


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """A limit, with which a test of memory fails before the machine does."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def edited(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", ["files.f", "manifest.json", "model.onnx", "certificate.json"])
@pytest.mark.parametrize("kind", ["pipe", "device", "link"])
@pytest.mark.sweep
def test_certified_files_must_be_plain_files(core: Path, name: str, kind: str) -> None:
    (core / name).rename(core / "elsewhere")
    if kind == "pipe":
        os.mkfifo(core / name)
    else:
        (core / name).symlink_to("elsewhere" if kind == "link" else "/dev/zero")
    with pytest.raises(hlsgen.HlsgenError, match=f"HG050.*{name}"):
        hlsgen.certify(core)


@pytest.mark.sweep
@pytest.mark.parametrize("number", [".EVERY({})", ".EVERY(-{})", ".EVERY({}'h1)", ".EVERY(0'h0{}"])
def test_numbers_that_python_does_not_read(core: Path, number: str) -> None:
    top = core / "rtl" / "top.v"
    text = top.read_text()
    assert ".EVERY(2)" in text
    top.write_text(text.replace(".EVERY(2)", number.format("9" * 5000), 1))
    sign(core, "rtl/top.v")
    assert any(text.startswith("HG055 rtl/top.v: ") for text in messages(core))


DEEP = json.loads("[" * 900 + "]" * 900)


@pytest.mark.parametrize("place", [("hlsgen",), ("options", "top"), ("options", "input"), ("cycles",), ("layers",)])
def test_a_manifest_of_many_levels(core: Path, place: tuple[str, ...]) -> None:
    def change(manifest: Any) -> None:
        for key in place[:-1]:
            manifest = manifest[key]
        manifest[place[-1]] = DEEP

    edited(core / "manifest.json", change)
    with pytest.raises(hlsgen.HlsgenError, match="HG050"):
        hlsgen.certify(core)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(certificate=DEEP),
        lambda c: c["layers"][0].update(kind=[]),
        lambda c: c["layers"][0].update(kind={}),
        lambda c: [s.update(codes=[], thresholds=[]) for layer in c["layers"] for s in layer.get("sets", [])],
        lambda c: [layer.update(period=10**4000) for layer in c["layers"] if "period" in layer],
    ],
)
def test_certificates_of_any_form(core: Path, change: Callable[[Any], object]) -> None:
    edited(core / "certificate.json", change)
    assert messages(core)


@pytest.mark.parametrize("data", [b"garbage", b"\xff" * 100, b"\n" * 50, b"\x08\x07:\xff\xff"], ids=range(4))
def test_models_that_are_none(core: Path, tmp_path: Path, data: bytes) -> None:
    """In the build, and as the one that is meant."""
    (tmp_path / "other.onnx").write_bytes(data)
    assert any("HG002" in str(x) for x in hlsgen.certify(core, tmp_path / "other.onnx").problems)
    (core / "model.onnx").write_bytes(data)
    assert any("HG002" in text for text in messages(core))


@pytest.mark.sweep
def test_a_memory_that_is_too_long_is_not_read(core: Path) -> None:
    with open(core / "rtl" / "top_node_linear.mem", "r+b") as stream:
        stream.truncate(1 << 30)
    certificate = json.loads((core / "certificate.json").read_text())
    certificate["rtl"]["rtl/top_node_linear.mem"] = "0" * 64
    (core / "certificate.json").write_text(json.dumps(certificate))
    assert messages(core)


WIDE = {32: f"{32 << 27}'h1", 8: f"{8 << 28}'h1"}
#: Build, module, and parameters that ask for memory, or for numbers of millions of digits.
SIZES: list[tuple[str, str, dict[str, int | str]]] = [
    ("three", "hg_width", {"OUT": (1 << 31) - 1, "OUT_GROUP": 1}),
    ("moved", "hg_gather", {"DIMS": 1 << 27, "EXTENTS": WIDE[32], "STRIDES": WIDE[32]}),
    ("moved", "hg_pad", {"TOP": 1 << 30}),
    ("padded", "hg_unfold", {"OUT_H": 1 << 30}),
    ("rank", "hg_rank", {"LEVELS": 1 << 28, "CHUNKS": WIDE[8], "STATES": WIDE[8]}),
    ("compare", "hg_compare", {"STEPS": (1 << 31) - 1}),
    ("scale", "hg_scale", {"R_LSB": 64}),
    ("scale", "hg_scale", {"R_LSB": (1 << 31) - 1}),
    ("scale", "hg_scale", {"SHIFT": (1 << 31) - 1}),
    ("float", "hg_f32_decode", {"SHIFT": (1 << 31) - 1}),
    ("network", "hg_threshold", {"FOLDS": 1 << 30}),
    ("network", "hg_mvu", {"ROW_FOLDS": 1 << 30}),
]


@pytest.mark.parametrize(("name", "module", "values"), SIZES)
def test_parameters_that_ask_for_memory(
    built: dict[str, Path], tmp_path: Path, name: str, module: str, values: dict[str, int | str]
) -> None:
    shutil.copytree(built[name], tmp_path / "core")
    set_parameters(tmp_path / "core", module, values)
    assert messages(tmp_path / "core")


def set_parameters(core: Path, module: str, values: dict[str, int | str]) -> None:
    """In the first instance of a module, in top level and certificate."""
    top, path = core / "rtl" / "top.v", core / "certificate.json"
    certificate, text = json.loads(path.read_text()), top.read_text()
    instance = next(x for layer in certificate["layers"] for x in layer["instances"] if x["module"] == module)
    block = re.search(rf"{module} #\([^;]*?\) {instance['instance']} \(", text)
    assert block
    new = block[0]
    for key, value in values.items():
        if key in instance["parameters"]:
            new = new.replace(f".{key}({instance['parameters'][key]})", f".{key}({value})")
        else:
            new = new.replace("#(", f"#(.{key}({value}),", 1)
        instance["parameters"][key] = value
    assert new != block[0]
    top.write_text(text.replace(block[0], new))
    path.write_text(json.dumps(certificate))
    sign(core, "rtl/top.v")


def test_a_sum_that_the_unit_does_not_support(built: dict[str, Path], tmp_path: Path) -> None:
    """(x * 2^SHIFT) * 2^E is the same number for any SHIFT, but hg_f32_decode has 64 bits for the sum."""
    core = tmp_path / "core"
    shutil.copytree(built["float"], core)
    certificate = json.loads((core / "certificate.json").read_text())
    units = [x for layer in certificate["layers"] for x in layer["instances"] if x["module"] == "hg_f32_decode"]
    parameters = units[0]["parameters"]
    for shift in (1, 63):
        name, lanes = parameters["FILE"], parameters["LANES"]
        width = parameters["B_W"] + parameters["M_W"] + 12
        lines = (built["float"] / "rtl" / name).read_text().split()
        words = []
        for line in lines:
            word = 0
            for lane in range(lanes):
                field = int(line, 16) >> (lane * width) & ((1 << width) - 1)
                exponent = ((field >> (width - 12)) - (shift - parameters["SHIFT"])) % (1 << 12)
                word |= (field & ((1 << (width - 12)) - 1) | exponent << (width - 12)) << (lane * width)
            words.append(f"{word:0{len(line)}x}\n")
        shutil.rmtree(core)
        shutil.copytree(built["float"], core)
        (core / "rtl" / name).write_text("".join(words))
        sign(core, f"rtl/{name}")
        set_parameters(core, "hg_f32_decode", {"SHIFT": shift})
        assert (messages(core) == []) == (shift == 1), shift
