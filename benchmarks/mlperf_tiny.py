"""MLPerf Tiny: the int8 files of the closed division on three FPGAs, beside published results.

    python benchmarks/mlperf_tiny.py FOLDER [--device NAME ...] [--runtime tflm] [--json FILE]

FOLDER holds the reference files of mlcommons/tiny, unchanged: see `FILES`. Every network is planned for every device
with the fastest folding that fits, on chip. LUT, block RAM and DSP are estimates; cycles are exact; inferences a
second are at the clock of the device as `hlsgen devices` lists it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    """One network on one device. `state`: fits or refused; `seconds` of planning."""

    task: str
    device: str
    state: str
    seconds: float
    lut: int = 0
    bram18: float = 0
    dsp: int = 0
    cycles: int = 0
    clock_mhz: float = 0
    inferences: float = 0
    reason: str = ""


def file_of(folder: Path, task: str) -> Path | None:
    """The file of a task, or None if the folder has none."""
    return next((folder / name for name in FILES[task][1] if (folder / name).is_file()), None)


def measure(path: Path, task: str, device: str, runtime: str) -> Row:
    """Plan one network for one device, with DSP blocks, in a process of its own."""
    command = [sys.executable, "-m", "hlsgen", "check", str(path), "--device", device]
    start = time.perf_counter()
    ended = subprocess.run(
        [*command, "--prefer", "dsp", "--runtime", runtime, "--json"], capture_output=True, text=True, check=False
    )
    seconds = round(time.perf_counter() - start, 1)
    facts: dict[str, Any] = json.loads(ended.stdout)
    if not facts["ok"]:
        reason = " ".join(f"{d['code']} {d['node']}: {d['message']}" for d in facts["diagnostics"][:3])
        return Row(task, device, "refused", seconds, reason=reason)
    estimate, rate = facts["estimate"], facts["rate"]
    return Row(
        task,
        device,
        "fits",
        seconds,
        estimate["lut"],
        estimate["bram18"],
        estimate["dsp"],
        facts["cycles"]["interval"],
        rate["clock_mhz"],
        rate["frames_per_second"],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", nargs="+", default=DEVICES)
    parser.add_argument("--task", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--runtime", default="tflm")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print(
        "| task | device | LUT | BRAM18 | DSP | cycles | MHz | inferences/s | planning |",
        "|---|---|---|---|---|---|---|---|---|",
        sep="\n",
    )
    for task in arguments.task:
        path = file_of(arguments.folder, task)
        if path is None:
            print(f"{task}: none of {', '.join(FILES[task][1])} in {arguments.folder}", file=sys.stderr)
            continue
        for device in arguments.device:
            row = measure(path, task, device, arguments.runtime)
            rows.append(row)
            figures = (
                f"{row.lut:,} | {row.bram18:g} | {row.dsp} | {row.cycles:,} | {row.clock_mhz:g} | {row.inferences:,.0f}"
                if row.state == "fits"
                else f"{row.reason} | | | | | "
            )
            print(f"| {task} | {device} | {figures} | {row.seconds:.1f} s |", flush=True)
    for name, published in PUBLISHED.items():
        print(f"{name}: " + ", ".join(f"{task} {figure:,}" for task, figure in published.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    raise SystemExit(main())
