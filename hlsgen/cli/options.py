"""Arguments and options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hlsgen import rescale

ModelArg = Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX file.", show_default=False)]
DirArg = Annotated[Path, typer.Argument(metavar="DIR", help="Directory that `build` has written.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
InputOption = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="TYPE",
        help="What the input port carries: codes (the host quantizes), fixed:W,I or ufixed:W,I (W bits, I of them "
        "integer, as ap_fixed), float32, or a QONNX datatype such as INT8. Default: the type the model declares; "
        "else codes for networks, float32 for graphs of quantizers.",
        show_default=False,
    ),
]
LanesOption = Annotated[
    int | None, typer.Option(help="Elements a beat, for graphs of quantizers. Default 1.", show_default=False)
]
TargetCycles = Annotated[
    int | None,
    typer.Option(
        "--target-cycles",
        help="At most so many cycles a frame, with the least hardware. Default: about 1024 multiplications a cycle, "
        "at most a window a cycle.",
        show_default=False,
    ),
]
Fps = Annotated[
    float | None,
    typer.Option(help="Frames a second at --clock-mhz, instead of --target-cycles.", show_default=False),
]
ClockOption = Annotated[float, typer.Option("--clock-mhz", help="Clock for --fps and for rates that are printed.")]
FoldingOption = Annotated[
    Path | None,
    typer.Option(help="YAML file with PE and SIMD of layers, as a build writes it.", show_default=False),
]
Prefer = Annotated[str, typer.Option(help="What rescaling may use freely: lut (no DSP blocks) or dsp.")]
Realize = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[LAYER=]KIND",
        help=f"How quantizers are realized, all or that one: {', '.join(rescale.KINDS)}. May be given several times. "
        "Default: the cheapest that is proven equal.",
        show_default=False,
    ),
]
AddOption = Annotated[
    str, typer.Option("--add", help="QLinearAdd: exact to its float chain, or fixed-point (multipliers and a shift).")
]
WeightsOption = Annotated[
    str, typer.Option(help="Where weights are held: auto (the synthesis tool chooses), lutram or bram.")
]
Loadable = Annotated[
    bool, typer.Option("--loadable-weights", help="Weights can be written at run time, through an AXI4-Lite port.")
]
MaxLut = Annotated[
    int | None,
    typer.Option("--max-lut", help="The fastest network of at most about so many LUT.", show_default=False),
]
MaxDsp = Annotated[int | None, typer.Option("--max-dsp", help="... DSP blocks, with --prefer dsp.", show_default=False)]
MaxBram = Annotated[int | None, typer.Option("--max-bram", help="... block memories of 18 Kbit.", show_default=False)]
ResetOption = Annotated[str, typer.Option(help="Polarity of the reset port: high (rst) or low (rst_n).")]
TopOption = Annotated[str, typer.Option(help="Name of the top module.")]
