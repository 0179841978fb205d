"""Other tools on the workloads of workloads.py: `make bench-hardware PEERS=1`.

    pip install -e '.[bench,peers]'
    python benchmarks/peers.py [--seconds N] [TEXT ...]   # those whose tool or workload has TEXT in its name

Their Verilog, of the same weights, goes through the same Yosys as ours. Rows of data/peers.json that this replaces say
"measured"; what is there of tools that are not on PyPI, or of former runs, says where it comes from.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import page
from synthesis.timing import longest_path
from synthesis.yosys import run, synthesize

DESIGNS = Path(__file__).with_name("peer_designs")


@dataclass(frozen=True)
class Peer:
    """A tool on a workload: the program that writes its Verilog into a folder {}, with top module `top`, and prints as
    JSON its cycles and whether its numbers are right.
    """

    workload: str
    package: str
    variant: str
    command: tuple[str, ...]

    @property
    def tool(self) -> str:
        return f"{self.package} {version(self.package)}, {self.variant}"


DENSE, JETS = "dense 64 x 64 w4, a frame a cycle", "jets 16-64-32-32-5 w6a8, a frame a cycle"
MIXED, MIXED_WRAPS = (f"mixed widths 16-64-32-32-5, {text}" for text in ("saturating", "wrapping"))
PEERS = (
    Peer(MIXED, "alkaid", "latency cutoff 2", ("alkaid_design.py", "saturates", "2", "{}")),
    Peer(MIXED_WRAPS, "alkaid", "latency cutoff 2", ("alkaid_design.py", "wraps", "2", "{}")),
    Peer(DENSE, "da4ml", "2 adders a stage", ("da4ml_design.py", "dense", "2", "{}")),
    Peer(DENSE, "da4ml", "2 adders a stage, keep", ("da4ml_design.py", "dense", "2", "{}", "keep")),
    Peer(JETS, "da4ml", "5 adders a stage", ("da4ml_design.py", "jets", "5", "{}")),
    Peer(JETS, "da4ml", "2 adders a stage, keep", ("da4ml_design.py", "jets", "2", "{}", "keep")),
    Peer("CNN int8, 8 x 8 pixels @4608", "nngen", "1 product at a time", ("nngen_design.py", "{}")),
)


def measure(peer: Peer, seconds: float) -> dict[str, object]:
    """A row of the data. Raises RuntimeError with what the tools say, PackageNotFoundError."""
    tool = peer.tool
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "rtl")
        folder.mkdir()
        command = [sys.executable, str(DESIGNS / peer.command[0]), *peer.command[1:]]
        printed = run([part.replace("{}", str(folder)) for part in command], folder, seconds)
        facts = json.loads(printed.splitlines()[-1])
        print(f"  its Verilog is there: {facts}; now Yosys", flush=True)
        netlist = synthesize(sorted(folder.glob("*.v")), Path(name), seconds=seconds)
        size, path = netlist.size(), longest_path(netlist.flat)
    found = {"workload": peer.workload, "tool": tool, **asdict(size), "ns": path.ns, **facts, "from": "measured"}
    if not found.pop("equal"):
        raise RuntimeError("its numbers are wrong")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=1800, help="longest that a tool may take")
    arguments = parser.parse_args()
    for peer in PEERS:
        name, start = f"{peer.package}, {peer.variant}: {peer.workload}", time.perf_counter()
        if arguments.names and not any(text in name for text in arguments.names):
            continue
        print(name, flush=True)
        try:
            row = measure(peer, arguments.seconds)
        except PackageNotFoundError:
            print(f"  not measured: pip install -e '.[peers]' installs {peer.package}")
            continue
        except RuntimeError as error:
            print(f"  not measured: {str(error)[-500:]}")
            continue
        same = (row["workload"], row["tool"])
        kept = [other for other in page.load(page.PEERS) if (other["workload"], other["tool"]) != same]
        page.save(page.PEERS, [*kept, row])
        print(f"  {row}, {time.perf_counter() - start:.0f} s", flush=True)
    page.write()


if __name__ == "__main__":
    main()
