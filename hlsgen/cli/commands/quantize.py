"""`hlsgen quantize`."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.array_files import read_array
from hlsgen.cli.console import emit, out, plain, stop
from hlsgen.cli.options import Json
from hlsgen.cli.progress import Watch
from hlsgen.diagnostics import HlsgenError, counted
from hlsgen.quantization import QuantizeOptions
from hlsgen.quantization.comparison import OutputComparison

_DEFAULTS = QuantizeOptions()


def quantize(
    model: Annotated[
        Path, typer.Argument(metavar="FLOAT", help="Float or dynamically quantized ONNX file.", show_default=False)
    ],
    sample: Annotated[
        Path,
        typer.Option(
            "--calibrate",
            metavar="X",
            help="Typical inputs of the model, .npy; for several inputs .npz. A hundred frames or more.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="QUANTIZED", help="ONNX file to write.", show_default=False)
    ],
    weight_bits: Annotated[int, typer.Option("--weight-bits", help="Bits of weights, 2 to 8.")] = _DEFAULTS.weight_bits,
    activation_bits: Annotated[
        int, typer.Option("--activation-bits", help="Bits of activations, 8 or 16.")
    ] = _DEFAULTS.activation_bits,
    per_tensor: Annotated[
        bool,
        typer.Option("--per-tensor", help="One scale for all weights of a layer, not one for each output channel."),
    ] = False,
    power_of_two: Annotated[
        bool,
        typer.Option(
            "--power-of-two",
            help="Scales are powers of two, one for each layer: rescaling needs shifts and no multipliers.",
        ),
    ] = False,
    method: Annotated[str, typer.Option(help="How ranges are chosen: minmax, entropy, percentile.")] = _DEFAULTS.method,
    as_json: Json = False,
) -> None:
    try:
        options = QuantizeOptions(weight_bits, activation_bits, per_tensor, power_of_two, method)
        with Watch(as_json) as watch:
            watch.text("quantizing")
            quantized = hlsgen.quantize(model, read_array(sample), output, options)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    if as_json:
        outputs = [
            {
                name: value if not isinstance(value, float) or isfinite(value) else None
                for name, value in asdict(output_comparison).items()
            }
            for output_comparison in quantized.outputs
        ]
        emit(
            {
                "ok": True,
                "output": str(output),
                "frozen": quantized.frozen,
                "runs": quantized.frames,
                "outputs": outputs,
            }
        )
        return
    if quantized.frozen is not None:
        out.print(f"dynamic scales: {counted(quantized.frozen, 'quantizer')} frozen at the ranges of the sample")
    for output_comparison in quantized.outputs:
        out.print(f"{plain(output_comparison.name)}: {_in_words(output_comparison)}")
    out.print(f"compared with the given model in onnxruntime on {counted(quantized.frames, 'run')} of the sample")
    out.print(f"wrote {plain(str(output))}; next: hlsgen check {plain(str(output))}")


def _in_words(comparison: OutputComparison) -> str:
    if comparison.equal is not None:
        return f"{comparison.equal:.1%} of the integers equal"
    text = f"largest difference {comparison.largest:.3g}, mean {comparison.mean:.3g}, SNR {comparison.snr_db:.1f} dB"
    if comparison.same_class is None:
        return text
    return f"{text}, same class in {comparison.same_class:.1%} of the frames"
