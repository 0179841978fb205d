"""Which modules of the Verilog library are mutated, and the tests that have to find it."""

from __future__ import annotations

#: The modules that every build needs and that `hlsgen certify` does not look into, with the tests of each.
UNITS = {
    "hg_axis_in": "test_axis.py", "hg_axis_out": "test_axis.py", "hg_beside": "test_plumbing.py",
    "hg_concat": "test_plumbing.py", "hg_fifo": "test_fifo.py", "hg_fork": "test_plumbing.py",
    "hg_gather": "test_gather.py", "hg_join": "test_plumbing.py", "hg_load": "test_load.py",
    "hg_pad": "test_plumbing.py", "hg_pick": "test_plumbing.py", "hg_replay": "test_replay.py",
    "hg_reset": "test_reset.py", "hg_rotate": "test_unfold.py", "hg_slice": "test_slice.py",
    "hg_take": "test_plumbing.py", "hg_unfold": "test_unfold.py", "hg_unfold_store": "test_unfold.py",
    "hg_unfold_walk": "test_unfold.py", "hg_weights": "test_weights.py", "hg_width": "test_width.py",
    "hg_window": "test_window_conv.py", "hg_window_flow": "test_window_conv.py",
    "hg_window_step": "test_window_conv.py", "hg_window_walk": "test_window_conv.py",
}  # fmt: skip
