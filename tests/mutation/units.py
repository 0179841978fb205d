"""The tests of each module of the Verilog library that have to find its mutants."""

from __future__ import annotations

UNITS = {
    "hg_add3": "test_adders.py", "hg_adder_tree": "test_dot.py", "hg_agreements": "test_mvu.py", "hg_argmax": "test_argmax.py", "hg_axil_regs": "test_eltwise_add.py",
    "hg_axil_weights": "test_load.py", "hg_axis_in": "test_axis.py", "hg_axis_out": "test_axis.py",
    "hg_beside": "test_plumbing.py", "hg_bus_in": "test_bus.py", "hg_bus_out": "test_bus.py", "hg_chain": "test_dot.py test_mvu.py", "hg_compare": "test_compare.py", "hg_concat": "test_plumbing.py",
    "hg_control": "test_control.py", "hg_conv": "test_window_conv.py test_load.py", "hg_correct": "test_correct.py", "hg_correct_lane": "test_correct.py",
    "hg_count": "test_count.py", "hg_correct_reach": "test_correct.py", "hg_correct_side": "test_correct.py", "hg_correct_sum": "test_correct.py", "hg_correct_table": "test_correct.py", "hg_delay": "test_dot.py", "hg_digits": "test_dot.py test_dot_words.py", "hg_dot_pairs": "test_dot.py",
    "hg_dot_chain": "test_dot.py test_mvu.py", "hg_dot_packed": "test_dot.py", "hg_dot_plain": "test_dot.py", "hg_dot_words": "test_dot_words.py test_mvu.py", "hg_words_row": "test_dot_words.py", "hg_dwconv": "test_window_conv.py test_load.py",
    "hg_dwmvu": "test_unfold.py test_load.py", "hg_eltwise_add": "test_eltwise_add.py", "hg_enable": "test_mvu.py",
    "hg_eltwise_add_axi": "test_eltwise_add.py", "hg_eltwise_add_fn": "test_eltwise_add.py",
    "hg_f32_add": "test_f32.py", "hg_f32_decode": "test_f32.py", "hg_f32_div": "test_f32.py",
    "hg_f32_encode": "test_f32.py", "hg_f32_join": "test_plumbing.py", "hg_f32_minmax": "test_f32.py", "hg_f32_mul": "test_f32.py",
    "hg_f32_pack": "test_f32.py", "hg_f32_round": "test_f32.py", "hg_f32_round_unit": "test_f32.py",
    "hg_f32_scale": "test_f32.py", "hg_f32_to_code": "test_f32.py", "hg_f32_unit": "test_f32.py",
    "hg_fifo": "test_fifo.py", "hg_float_key": "test_float_key.py", "hg_fork": "test_plumbing.py",
    "hg_dynmvu": "test_dynmvu.py", "hg_gather": "test_gather.py", "hg_join": "test_plumbing.py", "hg_keep_in": "test_bus.py", "hg_keep_out": "test_bus.py", "hg_load": "test_load.py",
    "hg_index": "test_index.py", "hg_next": "test_index.py test_fifo.py test_replay.py", "hg_loop": "test_width.py test_window_conv.py", "hg_mac": "test_mvu.py test_window_conv.py test_unfold.py", "hg_multiply": "test_multiply.py",
    "hg_mvu": "test_mvu.py test_load.py",
    **dict.fromkeys(
        ["hg_norm_moments", "hg_norm_root", "hg_norm_root_start", "hg_norm_root_way", "hg_norm_scale", "hg_norm_square"],
        "test_norm.py",
    ),
    "hg_pad": "test_plumbing.py", "hg_pair_add": "test_pair.py",
    "hg_pair_row": "test_dot.py", "hg_pair_scale": "test_pair.py", "hg_pick": "test_plumbing.py", "hg_pool": "test_window_conv.py",
    "hg_pool_tree": "test_unfold.py", "hg_popcount": "test_popcount.py", "hg_rank": "test_rank.py",
    "hg_reduce": "test_reduce.py", "hg_reduce_walk": "test_reduce.py", "hg_replay": "test_replay.py",
    "hg_reset": "test_reset.py", "hg_rotate": "test_unfold.py",
    **dict.fromkeys(
        ["hg_rows_buffer", "hg_rows_divide", "hg_rows_max", "hg_rows_norm", "hg_rows_root", "hg_rows_share"], "test_rows.py"
    ),
    "hg_scale": "test_scale.py",
    "hg_scale_f32": "test_scale_f32.py", "hg_shift": "test_shift.py", "hg_significant": "test_scale_f32.py",
    "hg_slice": "test_slice.py", "hg_softmax": "test_softmax.py", "hg_softmax_rows": "test_softmax.py",
    **dict.fromkeys(
        [
            "hg_softmax_powers", "hg_softmax_product", "hg_softmax_reciprocal", "hg_softmax_scale", "hg_softmax_sum",
            "hg_softmax_table",
        ],
        "test_softmax.py",
    ),
    "hg_stages": "test_adders.py", "hg_table": "test_table.py", "hg_take": "test_plumbing.py",
    "hg_threshold": "test_threshold.py", "hg_unfold": "test_unfold.py", "hg_unfold_store": "test_unfold.py",
    "hg_unfold_walk": "test_unfold.py", "hg_weights": "test_weights.py", "hg_weights_table": "test_weights.py", "hg_width": "test_width.py",
    "hg_width_gearbox": "test_width.py", "hg_width_narrow": "test_width.py", "hg_width_widen": "test_width.py",
    "hg_window": "test_window_conv.py", "hg_window_count": "test_window_conv.py", "hg_window_flow": "test_window_conv.py",
    "hg_window_step": "test_window_conv.py", "hg_window_walk": "test_window_conv.py",
}  # fmt: skip
