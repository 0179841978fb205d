"""`hlsgen check`."""

from __future__ import annotations

import hlsgen
from hlsgen.cli.console import emit, say_all, stop
from hlsgen.cli.options import BuildFlags, Json, ModelArg, takes_build_flags
from hlsgen.cli.progress import Watch
from hlsgen.cli.summary_text import print_choices, print_summary
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver import summary as report


@takes_build_flags
def check(model: ModelArg, flags: BuildFlags, as_json: Json = False) -> None:
    try:
        options = flags.options()
        with Watch(as_json) as watch:
            result = hlsgen.check(model, options, watch.layer)
    except HlsgenError as error:
        raise stop(error, as_json) from None
    summary = report.summary(result, result.options.rate_mhz)
    if as_json:
        emit({"ok": True, **summary, "diagnostics": [d.as_dict() for d in result.warnings]})
        return
    say_all(result.warnings)
    print_summary(summary)
    print_choices(summary)
