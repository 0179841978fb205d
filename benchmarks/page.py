"""The tables and the picture of docs/benchmarks.md, of the data alone: `python benchmarks/page.py [--out FOLDER]`.

data/hardware.json and data/routed.json are what hardware.py measures, data/peers.json what peers.py measures of other
tools and what others have published. data/built.json has the digests of the Verilog that hardware.py built last: a row
whose digest differs is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from places import ROOT
from workloads import WORKLOADS

sys.path.insert(0, str(ROOT / "docs" / "images"))

from draw import BLUE, ORANGE, Svg

DATA = Path(__file__).with_name("data")
SIZES, ROUTED, PEERS = DATA / "hardware.json", DATA / "routed.json", DATA / "peers.json"
BUILT = DATA / "built.json"
PAGE, PICTURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "benchmarks.svg"


def load(path: Path) -> Any:
    """Rows by workload; of peers a list."""
    return json.loads(path.read_text()) if path.exists() else [] if path == PEERS else {}


def save(path: Path, data: Any) -> None:
    if path not in (PEERS, BUILT):
        data = {name: data[name] for name in WORKLOADS if name in data}
    path.write_text(json.dumps(data, indent=1) + "\n")


def save_built(path: Path, name: str, digest: str) -> None:
    """Writes the digest of today's Verilog of a row of SIZES or ROUTED."""
    built = load(BUILT)
    save(BUILT, {**built, path.stem: dict(sorted({**built.get(path.stem, {}), name: digest}.items()))})


def is_stale(path: Path, name: str) -> bool:
    """Whether the Verilog of a row that was built last is not the one that was measured."""
    measured = load(path)[name].get("rtl")
    return bool(measured) and load(BUILT).get(path.stem, {}).get(name, measured) != measured


def peers(name: str) -> list[dict[str, Any]]:
    """What other tools make of a workload, the smallest first, those without a count of LUT last."""
    return sorted((row for row in load(PEERS) if row["workload"] == name), key=lambda row: row.get("lut", 10**9))


def number(row: dict[str, Any], key: str) -> str:
    return f"{row[key]:,}" if key in row else ""


def ratio(name: str, peer: dict[str, Any]) -> str:
    ours = load(SIZES).get(name)
    return f"{ours['lut'] / peer['lut']:.2f}" if ours and "lut" in peer else ""


def line(name: str) -> str:
    """A workload in a line of text: ours, the other tools, the ratios, the clock."""
    ours = load(SIZES).get(name)
    parts = ["not measured"]
    if ours:
        counts = [
            f"{ours[key]:,} {text}"
            for key, text in (("lut", "LUT"), ("dsp", "DSP"), ("bram18", "BRAM18"))
            if ours.get(key)
        ]
        parts = [", ".join([*counts, f"{ours['ns']} ns"])]
    for peer in peers(name):
        text = f"{peer['tool']}: {number(peer, 'lut') or 'unknown'} LUT ({peer['from']})"
        parts.append(f"{text}, ratio {ratio(name, peer)}" if ratio(name, peer) else text)
    if name in (routed := load(ROUTED)):
        parts.append(f"routed {clocks(routed[name])} MHz")
    return f"{name}: " + "; ".join(parts)


def clocks(row: dict[str, Any]) -> str:
    """By seed of the placement, rounded down: what is shown is reached."""
    return ", ".join(str(int(mhz)) for mhz in row["mhz"].values())


def label(path: Path, name: str) -> str:
    """A workload with what its figures are: of pieces, of Verilog without a digest, of other Verilog than today's."""
    row = load(path)[name]
    notes = {"by pieces": row.get("pieces"), "earlier": not row.get("rtl"), "stale": is_stale(path, name)}
    return ", ".join([name, *(note for note, holds in notes.items() if holds)])


def table(titles: str, rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {titles} |", "|" + "---|" * (titles.count("|") + 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def sizes_table() -> str:
    keys = ("lut", "packed", "ff", "bram18", "dsp", "ns", "interval", "latency")
    return table(
        "workload | LUT | packed | FF | BRAM18 | DSP | ns | cycles | latency",
        ([label(SIZES, name), *(number(row, key) for key in keys)] for name, row in load(SIZES).items()),
    )


def peers_table() -> str:
    """Every figure of another tool beside ours."""
    sizes, keys = load(SIZES), ("lut", "ff", "bram18", "ns", "cycles")
    return table(
        "workload | LUT | ns | cycles | other tool | its LUT | FF | BRAM18 | ns | cycles | LUT ratio | its figures are",
        (
            [
                name,
                *(number(sizes.get(name, {}), key) for key in ("lut", "ns", "interval")),
                peer["tool"],
                *(number(peer, key) for key in keys),
                ratio(name, peer),
                peer["from"],
            ]
            for name in WORKLOADS
            for peer in peers(name)
        ),
    )


def routed_table() -> str:
    return table(
        "workload | asked MHz | MHz | seed | COMB | FF | EBR | MULT | cycles | latency",
        (
            [
                label(ROUTED, name),
                f"{row['asked']:.0f}",
                clocks(row),
                ", ".join(row["mhz"]),
                *(number(row, key) for key in ("lut", "ff", "bram", "dsp", "interval", "latency")),
            ]
            for name, row in load(ROUTED).items()
        ),
    )


def picture() -> Svg:
    """The LUT of each workload as a bar, on a scale of powers of ten, beside that of the smallest other tool."""
    data = load(SIZES)
    drawing = Svg(760, 40 + 34 * len(data))
    for n, (name, row) in enumerate(data.items()):
        y, others = 30 + 34 * n, [peer["lut"] for peer in peers(name) if "lut" in peer]
        drawing.text(290, y + 15, name, "end", 12)
        for value, fill, top, height in ((row["lut"], BLUE, 2, 14), (min(others, default=0), ORANGE, 17, 9)):
            if value:
                length = 100 * float(np.log10(value / 100))
                drawing.box(300, y + top, length, height, fill, "none")
                drawing.text(306 + length, y + top + height - 2, f"{value:,}", size=11)
    text = "LUT (a step of 100 pixels is a factor of ten): hlsgen, and below it the smallest other tool"
    drawing.text(300, 20, text, size=11)
    return drawing


def filled(text: str) -> str:
    """The page with the tables of today's data."""
    for mark, made in (("figures", sizes_table()), ("peers", peers_table()), ("routed", routed_table())):
        begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
        text = f"{text.split(begin)[0]}{begin}\n{made}\n{end}{text.split(end)[1]}"
    return text


def write(page: Path = PAGE, images: Path = PICTURE.parent) -> None:
    page.write_text(filled(PAGE.read_text()))
    picture().save(PICTURE.name, images)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for both, which are left as they are in docs/")
    out = parser.parse_args().out
    write(*((out / PAGE.name, out) if out else ()))
