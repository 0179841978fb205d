"""Scripts of vendors' tools, run in Tcl with stand-ins for the commands of the tools."""

from __future__ import annotations

import subprocess
from pathlib import Path


def in_tcl(script: str, folder: Path) -> str:
    """What a script calls, in Tcl with stand-ins for the commands of tools."""
    stand_ins = (
        "set argc 0; set ::quartus(qip_path) [pwd]\nset calls {}\n"
        "proc unknown {args} { lappend ::calls $args; puts $args; return known }\n"
        "rename exec {}\nrename glob {}\nproc glob {args} { return [list a.hwh] }\nrename file real_file\n"
        "proc file {sub args} { if {$sub in {mkdir copy}} {return}; return [real_file $sub {*}$args] }\n"
        "namespace eval ipx {}\n"
        f"source {script}\nputs ended\n"
    )
    (folder / "run.tcl").write_text(stand_ins)
    done = subprocess.run(["tclsh", "run.tcl"], cwd=folder, capture_output=True, text=True)
    assert done.stdout.endswith("ended\n"), done.stdout[-500:] + done.stderr
    return done.stdout
