"""Settings of all tests."""

import os

#: Every Model behind every pass, and every Graph, is checked (docs/diagnostics.md, HG098). Subprocesses inherit it.
os.environ["HLSGEN_CHECK"] = "1"
