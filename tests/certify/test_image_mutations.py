"""`hlsgen certify` of networks on images: right builds are certified, and every change of a build is detected."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import image_nets
import numpy as np
import onnx
import pytest
from builds import LazyBuilds
from certified import messages, sign
from certified_images import IMAGES, WHOLE, build

import hlsgen
from hlsgen.certify.binary_functions import WAYS

#: Parameters that may change without changing the function: sizes and kinds of memories, pipeline registers.
_FREE = {"DEPTH", "EVERY", "STYLE"}


#: Networks on images, folded ones, and those on whole images.
NAMES = [*IMAGES, *(f"{name} folded" for name in IMAGES), *(f"{name} whole" for name in WHOLE)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilds:
    """Builds by the names of NAMES."""
    folder = tmp_path_factory.mktemp("builds")

    def build_of(name: str) -> Path:
        image, _, variant = name.partition(" ")
        return build(image, folder / name.replace(" ", "_"), fold=variant == "folded", whole=variant == "whole")

    return LazyBuilds(build_of)


@pytest.fixture
def core(built: LazyBuilds, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a build that a test may change."""
    shutil.copytree(built[request.param], tmp_path / "core")
    return tmp_path / "core"


def for_cores(*names: str) -> Any:
    return pytest.mark.parametrize("core", names or NAMES, indirect=True)


@pytest.mark.cases(2)
@pytest.mark.sweep
@pytest.mark.parametrize(
    "name, variant", [(n, w) for n in IMAGES for w in ("", " folded")] + [(n, " whole") for n in WHOLE]
)
def test_networks_on_images_are_certified(built: LazyBuilds, name: str, variant: str) -> None:
    core = built[name + variant]
    certified = hlsgen.certify(core)
    assert certified.ok, certified.problems
    text = (core / "certificate.json").read_text()
    assert all(f'"{module}"' in text for module in (WHOLE[name] if variant == " whole" else IMAGES[name][0].modules))
    rows = [row for row in json.loads((core / "manifest.json").read_text())["layers"] if row["kind"] != "rename"]
    assert [layer.layer for layer in certified.layers] == [row["name"] for row in rows]


def test_a_pool_between_renamed_elements(tmp_path: Path) -> None:
    """The codes at the quantizer after a pool of a signal are known by channel."""
    onnx.save(image_nets.network("grouped", 6, False), tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "core")
    assert hlsgen.certify(tmp_path / "core").ok


@pytest.mark.sweep
def test_weights_that_can_be_loaded(tmp_path: Path) -> None:
    """The proof holds for the core with the weights of its files; the port for other weights is checked."""
    onnx.save(image_nets.network("grouped", 3), tmp_path / "model.onnx")
    core = tmp_path / "core"
    hlsgen.build(tmp_path / "model.onnx", core, hlsgen.Options(loadable=True, top="top"))
    assert hlsgen.certify(core).ok
    top = (core / "rtl" / "top.v").read_text()
    for original, changed in [
        (".LOAD_UNIT(0)", ".LOAD_UNIT(-1)"),
        (".LOAD_UNIT(0)", ".LOAD_UNIT(1)"),
        (".UNITS(", ".UNITS(1"),
        (".load(load)", ".load(s_axil_wdata)"),
        ("[49:0] load", "[48:0] load"),
        ("[3:0] s_axil_wstrb", "s_axil_wstrb"),
        (".s_axil_wstrb(s_axil_wstrb)", ".s_axil_wstrb(s_axil_awaddr)"),
    ]:
        assert original in top
        (core / "rtl" / "top.v").write_text(top.replace(original, changed, 1))
        sign(core, "rtl/top.v")
        assert not hlsgen.certify(core).ok, changed


@pytest.mark.slow
@pytest.mark.sweep
def test_the_cases_have_every_module_of_images(built: LazyBuilds) -> None:
    modules = {path.stem for name in NAMES for path in (built[name] / "rtl").glob("top_hg_*.v")}
    assert modules >= {
        f"top_hg_{n}"
        for n in "conv dwconv pool mvu width fork fifo join_sum join_product join_pair concat take pad gather".split()
    }


# --------------------------------------------------------------------------- changes of one kind


class Core:
    """The files of a build, with changes that are consistent in all of them as far as possible."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.top, self.path = directory, directory / "rtl" / "top.v", directory / "certificate.json"
        self.text, self.original = self.top.read_text(), self.path.read_text()

    @property
    def instances(self) -> list[dict[str, Any]]:
        return [x for layer in json.loads(self.original)["layers"] for x in layer["instances"]]

    def instance(self, module: str, number: int = 0) -> dict[str, Any]:
        return [x for x in self.instances if x["module"] == module][number]

    def set(self, instance: dict[str, Any], **values: int | str) -> None:
        """Change parameters of an instance, in top level and certificate."""
        certificate = json.loads(self.path.read_text())
        text = self.top.read_text()
        block = re.search(rf"{instance['module']} #\([^;]*?\) {instance['instance']} \(", text)
        assert block
        new = block[0]
        for name, value in values.items():
            if name not in instance["parameters"]:
                new = new.replace("#(", f"#(.{name}({value}),", 1)
            else:
                assert f".{name}({instance['parameters'][name]})" in new
                new = new.replace(f".{name}({instance['parameters'][name]})", f".{name}({value})")
            for x in (x for layer in certificate["layers"] for x in layer["instances"]):
                if x["instance"] == instance["instance"]:
                    x["parameters"][name] = value
        self.path.write_text(json.dumps(certificate))
        self.write(text.replace(block[0], new))

    def write(self, text: str) -> None:
        assert text != self.text
        self.top.write_text(text)
        sign(self.directory, "rtl/top.v")

    def words(self, name: str, words: list[str]) -> None:
        path = self.directory / "rtl" / name
        original = path.read_text()
        path.write_text("".join(f"{word}\n" for word in words))
        assert path.read_text() != original
        sign(self.directory, f"rtl/{name}")

    def undo(self) -> None:
        self.top.write_text(self.text)
        self.path.write_text(self.original)

    def fails(self, pattern: str) -> None:
        reported = messages(self.directory)
        assert reported
        assert re.search(pattern, reported[0]), reported[0]


@pytest.mark.sweep
@for_cores("padded", "grouped folded", "binary", "pools folded", "three", "agreements folded")
def test_weights(core: Path) -> None:
    """A bit of a weight is changed, or two words are swapped."""
    c = Core(core)
    for x in c.instances:
        if x["module"] not in ("hg_conv", "hg_dwconv", "hg_mvu"):
            continue  # DA tables are in test_sum_tables.py
        (name,) = x["memories"]
        words = (core / "rtl" / name).read_text().split()
        flipped = f"{int(words[0], 16) ^ 1:0{len(words[0])}x}"
        c.words(name, [flipped, *words[1:]])
        c.fails(rf"row \(channel\) 0, .*: the model's weight is -?\d+, the weight of {x['instance']} is -?\d+")
        if len(set(words)) > 1:
            other_index = next(n for n, word in enumerate(words) if word != words[0])
            swapped = [words[other_index], *words[1:]]
            swapped[other_index] = words[0]
            c.words(name, swapped)
            c.fails(rf"the model's weight is -?\d+, the weight of {x['instance']}")
        c.words(name, words)
    assert messages(core) == []


@pytest.mark.cases(1)
@for_cores("binary folded", "padded folded")
@pytest.mark.sweep
def test_empty_lanes(core: Path) -> None:
    """Weights of missing rows may have any value, weights of missing columns may not."""
    c = Core(core)
    rng = np.random.default_rng(5)
    harmless = harmful = 0
    for x in c.instances:
        if x["module"] not in ("hg_conv", "hg_mvu"):
            continue
        p = x["parameters"]
        (name,) = x["memories"]
        words = (core / "rtl" / name).read_text().split()
        for _ in range(16):
            n, bit = int(rng.integers(len(words))), int(rng.integers(p["PE"] * p["SIMD"] * p["W_W"]))
            c.words(name, [f"{int(w, 16) ^ (1 << bit if k == n else 0):0{len(w)}x}" for k, w in enumerate(words)])
            reported = messages(core)
            assert not reported or "the model's weight" in reported[0] or "an empty lane" in reported[0]
            harmless += not reported
            harmful += bool(reported) and "an empty lane" in reported[0]
            c.words(name, words)
    assert harmless
    assert harmful


@pytest.mark.cases(1)
@for_cores("padded", "pools")
def test_windows(core: Path) -> None:
    c = Core(core)
    for module in ("hg_conv", "hg_dwconv", "hg_pool"):
        if not any(x["module"] == module for x in c.instances):
            continue
        x = c.instance(module)
        bits = x["parameters"]["X_W"]
        pad = int(x["parameters"]["PAD"].split("h")[1], 16)
        for name, value, pattern in (
            ("PAD", f"{bits}'h{pad ^ 1:x}", "the padding of the model is the code"),
            ("DEPTH", least_depth(c, x) - 1, r"DEPTH of \w+ is \d+: a window needs \d+ words"),
            ("PT", x["parameters"]["PT"] ^ 1, r"PT of \w+ is \d, in the model \d"),
            ("X_SIGNED", x["parameters"]["X_SIGNED"] ^ 1, "it reads 4 bits|it reads 5 bits"),
            ("ACC_W", x["parameters"]["ACC_W"] - 1, "its sums are|its results are"),
        ):
            c.set(x, **{name: value})
            c.fails(pattern)
            c.undo()
    assert messages(core) == []


def join_of(c: Core) -> dict[str, Any]:
    """The only join of a core."""
    (join,) = (x for x in c.instances if x["module"] in WAYS)
    return join


def least_depth(c: Core, x: dict[str, Any]) -> int:
    """The smallest accepted DEPTH, found by trying."""
    depth = x["parameters"]["DEPTH"]
    while True:
        c.set(x, DEPTH=depth - 1)
        # The manifest states the size of the buffer.
        reported = [text for text in messages(c.directory) if "manifest.json" not in text]
        c.undo()
        if reported:
            return depth
        depth -= 1


@pytest.mark.sweep
@for_cores("sums", "product", "residual", "largest")
def test_joins(core: Path) -> None:
    """Changes of a factor, of a zero point, of an operand's sign and of the result's bits."""
    c = Core(core)
    x = join_of(c)
    names = [name for name in ("FA", "FB", "ZA", "ZB", "A_SIGNED", "OUT_W", "A_W", "B_W") if name in x["parameters"]]
    assert len(names) > 1
    for name in names:
        value = x["parameters"][name]
        c.set(x, **{name: value ^ 1 if name.endswith("SIGNED") else value - 1})
        c.fails(
            r"at a = -?\d+, b = -?\d+ the model gives|the operands (have|are 0)|it reads \d|does not read the output|"
            "not fit OUT_W|exceeds its model|it sends \\d+ bits"
        )
        c.undo()
    assert messages(core) == []


@for_cores("product", "sums")
def test_swapped_operands(core: Path) -> None:
    """The nets of a join are swapped."""
    c = Core(core)
    x = join_of(c)
    block = re.search(rf"\) {x['instance']} \([^;]*;", c.text)
    assert block
    swapped = re.sub(r"\.([ab])_", lambda m: f".{'b' if m[1] == 'a' else 'a'}_", block[0])
    c.write(c.text.replace(block[0], swapped))
    c.fails("it needs element|bits a beat, its stream|it reads")
    data = re.sub(r"\.([ab])_data", lambda m: f".{'b' if m[1] == 'a' else 'a'}_data", block[0])
    c.write(c.text.replace(block[0], data))
    c.fails("do not belong to stream")


@pytest.mark.sweep
@for_cores("three")
def test_branches(core: Path) -> None:
    """Beats of a concatenation, consumers of a fork, a stream without a consumer or with two."""
    c = Core(core)
    x = c.instance("hg_concat")
    beats = {"BEATS_A": x["parameters"]["BEATS_B"], "BEATS_B": x["parameters"]["BEATS_A"]}
    assert beats["BEATS_A"] != beats["BEATS_B"]
    c.set(x, **beats)
    c.fails("it needs element|turns of side A|no multiple of that")
    c.undo()
    last = c.instance("hg_concat", -1)
    side = "A" if last["parameters"]["A_SIGNED"] else "B"
    c.set(last, **{f"{side}_SIGNED": 0})
    c.fails(rf"it extends codes of .* of side {side} .* as unsigned ones")
    c.undo()
    fork = c.instance("hg_fork")
    c.set(fork, COUNT=fork["parameters"]["COUNT"] + 1)
    c.fails("has no valid and ready for each of")
    c.undo()
    name = fork["instance"]
    c.write(re.sub(rf"\.m_valid\({{(\w+), ({name}_\d_valid)", r".m_valid({\2, \1", c.text))
    c.fails("do not belong to stream|streams form a cycle|it needs element")
    c.undo()
    # The first stream of the fork has two consumers, the second none.
    c.write(re.sub(rf"(\.[sab]_(?:valid|ready)\({name}_)1_", r"\g<1>0_", c.text))
    c.fails(rf"which \w+ also reads|nothing reads stream {name}_1")


@pytest.mark.sweep
@for_cores("residual")
def test_slices(core: Path) -> None:
    """Between streams, and between the units of a function."""
    c = Core(core)
    functions = {x["instance"] for x in c.instances if x["module"] in WAYS}
    slices = [x for x in c.instances if x["module"] == "hg_slice"]
    assert any(x["instance"].removesuffix("_slice") in functions for x in slices)
    for slice_ in slices:
        c.set(slice_, WIDTH=slice_["parameters"]["WIDTH"] - 1)
        c.fails("a beat has")
        c.undo()


@pytest.mark.sweep
@for_cores("moved", "moved folded")
def test_modules_that_move_elements(core: Path) -> None:
    c = Core(core)
    take, pad = c.instance("hg_take"), c.instance("hg_pad")
    p = take["parameters"]
    for name, value in (("Y0", p["Y0"] ^ 1), ("Y1", p["Y1"] - 1), ("CS", p["CS"] + 1), ("WIDTH", p["WIDTH"] + 1)):
        c.set(take, **{name: value})
        c.fails("it needs element|elements a frame, not|a beat has|select nothing|no multiple")
        c.undo()
    p = pad["parameters"]
    for value in (
        {"TOP": p["TOP"] + 1},
        {"TOP": p["BOTTOM"], "BOTTOM": p["TOP"]},
        {"LEFT": p["RIGHT"], "RIGHT": p["LEFT"]},
    ):
        if value != {name: p[name] for name in value}:
            c.set(pad, **value)
            c.fails("it needs|elements a frame, not")
            c.undo()
    c.set(pad, VALUE=f"{p['UNIT']}'h1")
    c.fails("it gets the constant 1, it needs the constant 0")
    c.undo()
    gathers = [x for x in c.instances if x["module"] == "hg_gather"]
    assert len(gathers) == 2
    for x in gathers:
        sizes: list[int] = []
        for name in ("EXTENTS", "STRIDES"):
            width, digits = x["parameters"][name].split("'h")
            values = [int(digits, 16) >> 32 * d & 0xFFFFFFFF for d in range(int(width) // 32)]
            sizes = sizes or values
            for d in range(len(values)):
                if name == "STRIDES" and sizes[d] == 1:
                    continue
                new = [v + (k == d) for k, v in enumerate(values)]
                c.set(x, **{name: f"{width}'h{sum(v << 32 * k for k, v in enumerate(new)):x}"})
                c.fails("it needs|elements a frame, not|exceed|no multiple of that|words a pixel")
                c.undo()
    assert messages(core) == []


@pytest.mark.sweep
@for_cores("padded whole", "three whole")
def test_entire_windows(core: Path) -> None:
    """Window positions, buffered rows and words, the layout of vectors in a beat, and weights."""
    c = Core(core)
    unfold, mvu = c.instance("hg_unfold"), c.instance("hg_mvu")
    p = unfold["parameters"]
    assert p["WINDOWS"] > 1
    for values in (
        {"PL": p["PL"] ^ 1},
        {"WINDOWS": 1},
        {"PIXELS": 1},
        {"ROWS": p["KH"] - 1},
        {"DW": 2},
        {"SH": p["SH"] + 1},
    ):
        if all(p.get(name, 1) != value for name, value in values.items()):
            c.set(unfold, **values)
            c.fails(
                "windows would be wrong|not supported together|it reads|multiple of that|does not get|several images"
            )
            c.undo()
    for values in ({"TAPS": 1}, {"WINDOWS": 1}):
        c.set(mvu, **values)
        c.fails("not entire ones|it reads")
        c.undo()
    words = (core / "rtl" / mvu["parameters"]["FILE"]).read_text().split()
    c.words(mvu["parameters"]["FILE"], [f"{int(words[0], 16) ^ 1:0{len(words[0])}x}", *words[1:]])
    c.fails("the model's weight is")


@for_cores("binary folded")
def test_pieces_of_one_vector(core: Path) -> None:
    """hg_mvu skips elements if TAPS does not divide a vector."""
    c = Core(core)
    units = [x for x in c.instances if x["module"] == "hg_mvu" and "WINDOWS" not in x["parameters"]]
    for x in units:
        c.set(x, TAPS=3)
        c.fails("not entire ones")
        c.undo()
    assert units


@for_cores("three", "moved")
def test_order_of_the_certificate(core: Path) -> None:
    """An instance that is listed before its producer."""
    c = Core(core)
    certificate = json.loads(c.original)
    layer = next(x for x in certificate["layers"] if len(x["instances"]) > 1)
    layer["instances"].reverse()
    c.path.write_text(json.dumps(certificate))
    c.fails("certificate.json lists it before the instance that sends")


# --------------------------------------------------------------------------- changes of any kind


@pytest.mark.sweep
@pytest.mark.cases(2)
@for_cores()
def test_a_parameter_in_both_top_level_and_certificate(core: Path) -> None:
    """One more or less changes the function, unless the parameter does not affect it."""
    rng = np.random.default_rng(8)
    c = Core(core)
    choices = [(x, name) for x in c.instances for name, v in x["parameters"].items() if isinstance(v, int)]
    choices = [
        (x, n)
        for x, n in choices
        if not re.match(r"hg_(rank|shift|table|threshold|compare|correct|scale)", x["module"])
    ]
    for k in rng.choice(len(choices), min(len(choices), 16), replace=False):
        x, name = choices[k]
        change = int(rng.choice([-1, 1]))
        c.set(x, **{name: x["parameters"][name] + change})
        reported = messages(core)
        assert reported or name in _FREE or unused(x, name, change), (x["instance"], name, x["parameters"])
        c.undo()
    assert messages(core) == []


def unused(x: dict[str, Any], name: str, change: int) -> bool:
    """True for parameters that do not affect the function.

    These are ends of ranges after the last element, and groups of single elements. Also more
    rows than a window needs, the cycles in which a slice consumes a beat, and the register of hg_lane_shift.
    """
    single = x["parameters"].get({"IN_GROUP": "IN", "OUT_GROUP": "OUT"}.get(name, "")) == 1
    spare_rows = x["module"] == "hg_unfold" and name == "ROWS" and change > 0
    paced = x["module"] == "hg_slice" and name == "FULL"
    register = x["module"] == "hg_lane_shift" and name == "ADD"
    return single or spare_rows or paced or register or (x["module"] == "hg_take" and name[1:] in ("1", "S"))


def all_numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every number of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, int):
            yield value, key
        yield from all_numbers(item)


@pytest.mark.cases(2)
@for_cores()
def test_every_number_of_the_certificate(core: Path) -> None:
    rng = np.random.default_rng(9)
    c = Core(core)
    count = len(list(all_numbers(json.loads(c.original))))
    for n in rng.choice(count, min(count, 10), replace=False):
        certificate = json.loads(c.original)
        container, key = list(all_numbers(certificate))[n]
        value = container[key]
        container[key] = (not value) if isinstance(value, bool) else value + int(rng.choice([-1, 1]))
        c.path.write_text(json.dumps(certificate))
        assert messages(core), (key, value, container[key])
