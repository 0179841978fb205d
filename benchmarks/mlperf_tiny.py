"""MLPerf Tiny: the int8 files of the closed division on three FPGAs, beside published results.

    python benchmarks/mlperf_tiny.py FOLDER [--task NAME ...] [--device NAME ...] [--runtime tflm] [--write]

FOLDER holds the reference files of mlcommons/tiny, unchanged: see `FILES`. Every network is planned for every device
with the fastest folding that fits, on chip. LUT, block RAM and DSP are estimates; cycles are exact; inferences a
second are at the clock of the device as `hlsgen devices` lists it. `--write` keeps the rows in
`data/mlperf_tiny.json`, and shows all rows on the page `docs/tflite.md`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = ROOT / "benchmarks" / "data" / "mlperf_tiny.json", ROOT / "docs" / "tflite.md"
BEGIN, END = "<!-- made by benchmarks/mlperf_tiny.py -->", "<!-- end -->"
HEAD = ("| task | device | LUT | BRAM18 | DSP | cycles | MHz | inferences/s |", "|---|---|---|---|---|---|---|---|")

DEVICES = ("ecp5-85k", "xc7z020", "xc7a100t")
#: Task and possible file names by short name.
FILES = {
    "ad": ("anomaly detection", ("ad01_int8.tflite", "mlperf_ad01.tflite")),
    "ic": ("image classification", ("pretrainedResnet_quant.tflite", "mlperf_ic01.tflite")),
    "kws": ("keyword spotting", ("kws_ref_model.tflite", "mlperf_kws.tflite")),
    "vww": ("visual wake words", ("vww_96_int8.tflite", "mlperf_vww.tflite")),
}
#: Inferences a second as published: closed and open division, v0.7 to v1.3. Their clocks and devices differ.
PUBLISHED = {
    "STM32 L4R5 (closed)": {"ad": 209, "ic": 6.0, "kws": 23, "vww": 11},
    "Snapdragon, next generation (closed, the fastest)": {"ad": 14625, "ic": 10437, "kws": 15396, "vww": 8753},
    "VCU128 with an ANPU (the only FPGA in closed)": {"vww": 4625},
    "hls4ml on PYNQ-Z2 (open, own models)": {"ic": 131},
    "hls4ml on A7-100T (open, own models)": {"ad": 694000},
}


@dataclass
class Row:
    """One network on one device. `reason`: why it is refused, else empty."""

    task: str
    device: str
    lut: int = 0
    bram18: float = 0
    dsp: int = 0
    cycles: int = 0
    clock_mhz: float = 0
    inferences: float = 0
    reason: str = ""

    @property
    def cells(self) -> str:
        """The row of a Markdown table."""
        if self.reason:
            return f"| {self.task} | {self.device} | {self.reason}" + " |" * 6
        figures = f"{self.lut:,} | {self.bram18:g} | {self.dsp} | {self.cycles:,} | {self.clock_mhz:g}"
        return f"| {self.task} | {self.device} | {figures} | {self.inferences:,.0f} |"


def file_of(folder: Path, task: str) -> Path | None:
    """The file of a task, or None if the folder has none."""
    return next((folder / name for name in FILES[task][1] if (folder / name).is_file()), None)


def measure(path: Path, task: str, device: str, runtime: str) -> Row:
    """Plan one network for one device, with DSP blocks, in a process of its own."""
    command = [sys.executable, "-m", "hlsgen", "check", str(path), "--device", device]
    ended = subprocess.run(
        [*command, "--prefer", "dsp", "--runtime", runtime, "--json"], capture_output=True, text=True, check=False
    )
    facts: dict[str, Any] = json.loads(ended.stdout)
    if not facts["ok"]:
        reason = " ".join(f"{d['code']}: {d['message']}" for d in facts["diagnostics"][:3])
        return Row(task, device, reason=reason.partition(" Layers with")[0])
    estimate, rate = facts["estimate"], facts["rate"]
    return Row(
        task,
        device,
        estimate["lut"],
        estimate["bram"],
        estimate["dsp"],
        facts["cycles"]["interval"],
        rate["clock_mhz"],
        rate["frames_per_second"],
    )


def recorded() -> list[Row]:
    """The rows that were written, in the order of the tasks and devices."""
    rows = [Row(**row) for row in json.loads(DATA.read_text())] if DATA.is_file() else []
    return sorted(rows, key=lambda row: (list(FILES).index(row.task), DEVICES.index(row.device)))


def page_with(rows: list[Row]) -> str:
    """The page with the table of these rows and the published figures."""
    before, _, after = PAGE.read_text().partition(BEGIN)
    lines = [*HEAD, *(row.cells for row in rows), "", "| published | " + " | ".join(FILES) + " |"]
    lines.append("|---" * (1 + len(FILES)) + "|")
    for name, figures in PUBLISHED.items():
        lines.append(f"| {name} | " + " | ".join(f"{figures[t]:,}" if t in figures else "" for t in FILES) + " |")
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", nargs="+", default=DEVICES)
    parser.add_argument("--task", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--runtime", default="tflm")
    parser.add_argument("--write", action="store_true", help="keep the rows, and show them on the page")
    arguments = parser.parse_args()
    rows = []
    print(*HEAD, sep="\n")
    for task in arguments.task:
        path = file_of(arguments.folder, task)
        if path is None:
            print(f"{task}: none of {', '.join(FILES[task][1])} in {arguments.folder}", file=sys.stderr)
            continue
        for device in arguments.device:
            rows.append(measure(path, task, device, arguments.runtime))
            print(rows[-1].cells, flush=True)
    for name, published in PUBLISHED.items():
        print(f"{name}: " + ", ".join(f"{task} {figure:,}" for task, figure in published.items()))
    if arguments.write and rows:
        measured = {(row.task, row.device) for row in rows}
        rows += [row for row in recorded() if (row.task, row.device) not in measured]
        DATA.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
        PAGE.write_text(page_with(recorded()))
    return 0 if rows else 1


if __name__ == "__main__":
    raise SystemExit(main())
