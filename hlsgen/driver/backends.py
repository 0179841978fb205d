"""The targets of a build."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.dataflow.backend import Backend
from hlsgen.diagnostics import fail
from hlsgen.hls.backend import emit_cpp
from hlsgen.hls.prices import PRICES
from hlsgen.hls.reserved import is_reserved
from hlsgen.verilog.backend import VERILOG

#: C++ for HLS is planned like Verilog, with other costs of quantizers. Its weights are constants in the source.
HLS = replace(
    VERILOG,
    emit=emit_cpp,
    prices=PRICES,
    memories=("auto",),
    load_pieces=None,
    adders_pay=None,
    tables_of=None,
    choose_dsp_layers=None,
    folding_price=replace(VERILOG.folding_price, constants=None),
    reserved=is_reserved,
    unsupported={
        "latency_cycles": "its latency is that of the HLS tool",
        "loadable": "its weights are constants",
        "reset_active_low": "the HLS tool makes the reset port",
        **dict.fromkeys(("clock_name", "reset_name"), "the HLS tool makes clock and reset"),
        **dict.fromkeys(("bus_width", "tkeep"), "each word of its ports is one beat of the core"),
        "control": "its ports are streams only",
    },
)

BACKENDS: dict[str, Backend] = {"verilog": VERILOG, "hls": HLS}


def backends_of(target: str) -> dict[str, Backend]:
    """The targets that --target names, separated by commas; the first one plans the network. Raises HG040."""
    names = target.split(",")
    if not all(name in BACKENDS for name in names) or len(set(names)) < len(names):
        raise fail("HG040", "--target", f"{target!r} is not supported.", f"Supported: {', '.join(BACKENDS)}.")
    return {name: BACKENDS[name] for name in names}


def planning_backend(target: str) -> Backend:
    """The first target, which plans and estimates the network, without implementations that another target lacks."""
    first, *further = backends_of(target).values()
    missing = first.prices.missing.union(*(backend.prices.missing for backend in further))
    return replace(first, prices=replace(first.prices, missing=missing))
