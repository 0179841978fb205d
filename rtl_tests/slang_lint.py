"""Diagnostics of slang, a strict parser of Verilog and SystemVerilog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyslang import DiagnosticSeverity, driver

#: Instances in benches have open ports, and modules shift by all bits of a constant on purpose: that is 0.
_ALLOWED = ["-Wno-unconnected-input-port", "-Wno-unconnected-output-port", "-Wno-shift-count-overflow"]
_SEVERE = (DiagnosticSeverity.Warning, DiagnosticSeverity.Error, DiagnosticSeverity.Fatal)


def slang_complaints(files: Sequence[Path], tops: Sequence[str], standard: str = "1364-2005") -> list[str]:
    """Errors and warnings, "FILE:LINE: TEXT" each, of these top modules."""
    slang = driver.Driver()
    slang.addStandardArgs()
    words = [f'"{file}"' for file in files] + [word for top in tops for word in ("--top", top)]
    command = " ".join(["slang", "-Wdefault", *_ALLOWED, "--std", standard, "--error-limit", "0", *words])
    if not (slang.parseCommandLine(command) and slang.processOptions() and slang.parseAllSources()):
        return ["the sources cannot be read"]
    compilation = slang.createCompilation()
    complaints = []
    for diagnostic in compilation.getAllDiagnostics():
        severity = slang.diagEngine.getSeverity(diagnostic.code, diagnostic.location)
        if severity in _SEVERE:
            line = slang.sourceManager.getLineNumber(diagnostic.location)
            file = Path(slang.sourceManager.getFileName(diagnostic.location)).name
            complaints.append(f"{file}:{line}: {slang.diagEngine.formatMessage(diagnostic)}")
    return complaints
