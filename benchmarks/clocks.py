"""The clock that `hlsgen synth` finds for networks that nobody has tuned: `python benchmarks/clocks.py [NAME ...]`.

Each network is built with `--device ecp5-85k --clock-mhz 150` and synthesized, placed and routed with several seeds.
Rows are kept in `data/clocks.json` and shown on the page `docs/benchmarks.md`. A seed is not measured again while the
Verilog stays the same. `--page` writes the page alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from estimate_cases import cnn, mlp
from image_nets import network
from places import ROOT

import hlsgen

DATA, PAGE = ROOT / "benchmarks" / "data" / "clocks.json", ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- clocks -->", "<!-- end of clocks -->"
HEAD = ("| network | MHz | LUT | FF | EBR | MULT | cycles |", "|---|---|---|---|---|---|---|")
DEVICE, CLOCK_MHZ, SEEDS = "ecp5-85k", 150.0, (1, 2, 3)


@dataclass(frozen=True)
class Case:
    """A network, and options of its build."""

    model: Callable[[], onnx.ModelProto]
    options: dict[str, Any] = field(default_factory=dict)


def _cases() -> Iterator[tuple[str, Case]]:
    """Networks by name; their seeds are used nowhere else."""
    for w, x, sizes, cycles, options in [
        (2, 3, (48, 24, 8), 24, {}),
        (3, 5, (32, 16, 6), 32, {}),
        (4, 4, (24, 24, 10), 24, {}),
        (5, 6, (20, 16, 5), 20, {}),
        (6, 7, (16, 12, 4), 48, {}),
        (8, 8, (16, 16, 6), 64, {}),
        (1, 1, (96, 48, 10), 16, {}),
        (1, 4, (64, 24, 8), 32, {}),
        (4, 4, (16, 12, 5), 1, {}),
        (2, 2, (32, 20, 6), 1, {}),
        (8, 8, (24, 16, 8), 48, {"prefer": "dsp"}),
    ]:
        name = f"perceptron, weights of {w} bits, codes of {x}, {cycles} cycles"
        yield _named(name, options, cycles, lambda w=w, x=x, sizes=sizes: mlp(w, x, sizes, 4000 + 10 * w + x))
    for w, x, channels, cycles, options in [
        (3, 6, (2, 4, 4, 4), 600, {}),
        (1, 1, (8, 12, 12, 8), 500, {}),
        (4, 4, (2, 3, 3, 5), 900, {}),
        (2, 2, (3, 6, 6, 6), 600, {}),
        (8, 8, (1, 2, 2, 3), 800, {"prefer": "dsp"}),
    ]:
        name = f"convolutions, weights of {w} bits, codes of {x}, {cycles} cycles"
        made = lambda w=w, x=x, channels=channels: cnn(w, x, channels, 8, 5000 + 10 * w + x)  # noqa: E731
        yield _named(name, options, cycles, made)
    for kind in ("residual", "pooled", "keras", "mixer"):
        yield _named(f"{kind}, 600 cycles", {}, 600, lambda kind=kind: network(kind, 6001, True, 8, 5))


def _named(name: str, options: dict[str, Any], cycles: int, model: Callable[[], onnx.ModelProto]) -> tuple[str, Case]:
    suffix = ", DSP" if options.get("prefer") == "dsp" else ""
    return name + suffix, Case(model, {"target_cycles": cycles, **options})


CASES = dict(_cases())


def measure(name: str, seed: int, row: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The row with the clock of a seed; a new row if the Verilog is another one."""
    from canonical_verilog import digest  # of tests/support, which estimate_cases puts on the path

    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        path, core = Path(folder) / "model.onnx", Path(folder) / "core"
        onnx.save(case.model(), path)
        options = hlsgen.Options(device=DEVICE, clock_mhz=CLOCK_MHZ, top="top", **case.options)
        build = hlsgen.build(path, core, options)
        rtl = digest({one.name: one.read_bytes() for one in (core / "rtl").iterdir()})
        if row.get("rtl") != rtl:
            row = {"rtl": rtl, "cycles": build.timing.interval, "mhz": {}}
        if str(seed) in row["mhz"]:
            return row
        routed = hlsgen.synth(core, DEVICE, seed=seed, seeds=1, timeout=seconds)
    if routed.fmax_mhz is None:
        raise RuntimeError(f"{name}: nextpnr reports no clock")
    counts = {kind: getattr(routed, kind) for kind in ("lut", "ff", "bram", "dsp")}
    return {**row, **counts, "mhz": {**row["mhz"], str(seed): round(routed.fmax_mhz, 1)}}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Markdown: one row a network, with the clocks of its seeds in order."""
    lines = [*HEAD]
    for name in [name for name in CASES if name in rows]:
        row = rows[name]
        clocks = ", ".join(f"{int(row['mhz'][seed])}" for seed in sorted(row["mhz"]))
        counts = " | ".join(f"{row[kind]:,}" for kind in ("lut", "ff", "bram", "dsp", "cycles"))
        lines.append(f"| {name} | {clocks} | {counts} |")
    return "\n".join(lines)


def recorded() -> dict[str, dict[str, Any]]:
    """The rows by network."""
    return json.loads(DATA.read_text()) if DATA.exists() else {}


def page_with(rows: dict[str, dict[str, Any]]) -> str:
    """The page with the table of these rows."""
    text = PAGE.read_text(encoding="utf-8")
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{table(rows)}\n{END}{text.split(END)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks, as the page names them")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--seconds", type=float, default=1800, help="time limit of a tool")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    rows = recorded()
    for seed, name in [] if arguments.page else itertools.product(arguments.seeds, arguments.names or CASES):
        rows[name] = measure(name, seed, rows.get(name, {}), arguments.seconds)
        DATA.write_text(json.dumps({name: rows[name] for name in CASES if name in rows}, indent=1) + "\n")
        print(f"{name}: seed {seed}: {rows[name]['mhz'][str(seed)]} MHz, {rows[name]['lut']:,} LUT", flush=True)
    PAGE.write_text(page_with(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
