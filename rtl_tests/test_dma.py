"""hg_dma, judged by the AXI memory, masters and streams of cocotbext-axi; hg_axil_split."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streams import RTL, SIMULATORS

pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is not installed: pip install cocotbext-axi")

#: Bits of an address, bits of a word, words of an input and of an output frame, words of the longest burst.
SHAPES = [
    (32, 32, 16, 5, 16),
    (20, 64, 3, 7, 2),
    (64, 1024, 1, 2, 32),
    (33, 128, 5, 1, 256),
    (13, 32, 2, 2, 4),
    (40, 512, 2, 3, 4),
    (32, 256, 1, 1, 8),
]
TESTS = 10


@pytest.mark.cases(3)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dma(cocotb_job: Callable[..., None], shape: tuple[int, ...]) -> None:
    run(cocotb_job, "icarus", shape, jobs=12, resets=6)


@pytest.mark.slow
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dma_for_long(cocotb_job: Callable[..., None], simulator: str, shape: tuple[int, ...], seed: int) -> None:
    run(cocotb_job, simulator, shape, jobs=60, resets=40, seed=seed)


def run(
    cocotb_job: Callable[..., None], simulator: str, shape: tuple[int, ...], jobs: int, resets: int, seed: int = 1
) -> None:
    parameters = dict(zip(("ADDR_W", "DATA_W", "IN_WORDS", "OUT_WORDS", "BURST"), shape, strict=True))
    # A job of the tests has up to `words` words; the smallest memory has 2 KB.
    words = min(2 * parameters["BURST"] + 40, 200, (1 << (parameters["ADDR_W"] - 3)) // (parameters["DATA_W"] // 8))
    job = {**parameters, "jobs": jobs, "resets": resets, "words": words, "seed": seed}
    cocotb_job(simulator, "hg_dma", parameters, job, tests=TESTS)


@pytest.mark.parametrize(("data_bits", "words"), [(32, 3), (128, 1)])
@pytest.mark.parametrize("is_input", [True, False])
def test_one_side(cocotb_job: Callable[..., None], is_input: bool, data_bits: int, words: int) -> None:
    """An engine for an input alone, or for an output."""
    sizes = {"IN_WORDS": words if is_input else 0, "OUT_WORDS": 0 if is_input else words}
    parameters = {"ADDR_W": 13, "DATA_W": data_bits, "BURST": 4, **sizes}
    cocotb_job("icarus", "hg_dma", parameters, {**parameters, "jobs": 9, "seed": 3}, tests=1, bench="dma_side_cocotb")


@pytest.mark.cases(2)
@pytest.mark.parametrize(("count", "address_bits"), [(3, 14), (1, 13), (2, 13)])
def test_split(cocotb_job: Callable[..., None], count: int, address_bits: int) -> None:
    job = {"COUNT": count, "ADDR_W": address_bits, "accesses": 80}
    cocotb_job("icarus", "split", {}, job, tests=2, bench="split_cocotb", text=split(count, address_bits))


def split(count: int, address_bits: int) -> str:
    """Text of a module `split`: hg_axil_split with its ports one by one, with the prefixes p0, p1 ..."""
    text = (RTL / "hg_axil_split.v").read_text()
    ports = re.findall(r"^    (input|output) +wire +(?:\[([^\]]+?)(?:-1)?:0\])? *(\w+),?$", text, re.MULTILINE)
    head, wires, pins = [], [], []
    for direction, size, name in ports:
        widths = {"": 1, "ADDR_W": address_bits, "COUNT": 1, "2*COUNT": 2, "32*COUNT": 32}
        width = widths.get(size) or int(size) + 1
        if not name.startswith("m_"):
            head.append(f"{direction} wire [{width - 1}:0] {name}")
            pins.append(f".{name}({name})")
            continue
        single = [f"p{k}_{name.removeprefix('m_axil_')}" for k in range(count)]
        head += [f"{direction} wire [{width - 1}:0] {port}" for port in single]
        if "COUNT" in size:
            pins.append(f".{name}({{{', '.join(reversed(single))}}})")
        else:
            wires += [f"    assign {port} = {single[0]};" for port in single[1:]]
            pins.append(f".{name}({single[0]})")
    instance = f"    hg_axil_split #(.COUNT({count}), .ADDR_W({address_bits})) dut ({', '.join(pins)});"
    return "\n".join([f"module split ({', '.join(head)});", *wires, instance, "endmodule", ""])
