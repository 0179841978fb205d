"""`hlsgen build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hlsgen
from hlsgen.cli.console import emit, out, plain, say_all, stop
from hlsgen.cli.options import BuildFlags, Json, ModelArg, takes_build_flags
from hlsgen.cli.progress import Watch
from hlsgen.cli.summary_text import print_summary
from hlsgen.diagnostics import HlsgenError, counted
from hlsgen.driver import summary as report
from hlsgen.driver.build_directory import check_output


@takes_build_flags
def build(
    model: ModelArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Directory to write.", show_default=False)
    ],
    flags: BuildFlags,
    as_json: Json = False,
) -> None:
    try:
        options = flags.options()
        check_output(output)
        with Watch(as_json) as watch:
            result = hlsgen.build(model, output, options, watch.layer)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    summary = report.summary(result, result.options.rate_mhz)
    if as_json:
        emit(
            {
                "ok": True,
                "output": str(output),
                **summary,
                "diagnostics": [d.as_dict() for d in result.warnings],
            }
        )
        return
    say_all(result.warnings)
    print_summary(summary)
    tops = [f"top {kind} {name}" for kind, name in result.tops.items()]
    out.print(f"wrote {plain(str(output))}: {', '.join([counted(len(result.files), 'file'), *tops])}")
