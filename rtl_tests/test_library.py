"""Every module of the library: style, lint without a warning, and synthesis without latches."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from streams import RTL
from verilated import tool_environment

MODULES = sorted(file.stem for file in RTL.glob("*.v"))

#: Parameter sets, in addition to the defaults, with which a module is linted. The second one is also synthesized.
SETS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "hg_add3": ({"WIDTH": 1, "CARRY": 1}, {"WIDTH": 60, "CARRY": 2}),
    "hg_adder_tree": ({"N": 1, "SIGNED": 0, "EVERY": 0}, {"N": 9, "IN_W": 1, "EVERY": 1}),
    "hg_agreements": ({"SIMD": 1, "ROWS": 1, "EVERY": 0}, {"SIMD": 31, "CONSTANT": 1}, {"ALONE": 1}),
    "hg_argmax": (
        {"LANES": 1, "BEATS": 1, "IN_W": 1, "INDEX_W": 1},
        {"LANES": 4, "BEATS": 2, "IN_W": 3, "IN_SIGNED": 0, "INDEX_W": 5},
    ),
    "hg_axis_in": ({"WIDTH": 8, "TDATA_W": 8, "BEATS": 1}, {"WIDTH": 1, "TDATA_W": 8, "BEATS": 5}, {"CUT": 1}),
    "hg_axis_out": ({"WIDTH": 8, "TDATA_W": 8, "BEATS": 1}, {"WIDTH": 1, "TDATA_W": 8, "BEATS": 5}, {"CUT": 0}),
    "hg_bus_in": (
        {"WIDTH": 8, "TDATA_W": 8, "SLOT": 8, "BEATS": 1},
        {"WIDTH": 20, "TDATA_W": 16, "SLOT": 32, "BEATS": 3},
    ),
    "hg_bus_out": (
        {"WIDTH": 8, "TDATA_W": 8, "SLOT": 8, "BEATS": 1},
        {"WIDTH": 20, "TDATA_W": 16, "SLOT": 32, "BEATS": 3},
    ),
    "hg_control": ({"WORDS": 1}, {"VERSION": 5, "MODEL": 7, "WORDS": 6}),
    "hg_control_starts": ({"WORDS": 1, "STARTS": 0}, {"VERSION": 5, "MODEL": 7, "WORDS": 6}),
    "hg_count": ({"COUNTED": 1, "PLACES": 1, "SUM_W": 2}, {"COUNTED": 3, "PLACES": 2, "SUM_W": 3}, {"SUM_W": 3}),
    "hg_correct": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 1, "IN_SIGNED": 0, "OUT_W": 1, "FRACTION": 0, "REST": 0, "COUNT": 1},
        {"LANES": 3, "FOLDS": 1, "IN_W": 4, "REST": 3, "FRACTION": 0, "OPEN": 1},
        {"LANES": 2, "FOLDS": 1, "REST": 0, "DEEP": 1},
    ),
    "hg_correct_bucket": (
        {"IN_W": 1, "IN_SIGNED": 0, "BUCKET": 2, "COARSE": 40, "X_W": 1, "LATE": 1},
        {"IN_W": 12, "FIRST": "12'h805", "LAST": "12'h123", "BUCKET": 3},
    ),
    "hg_correct_lane": (
        {"FOLDS": 1, "REST": 0, "OUT_W": 1, "COUNT": 1, "FRACTION": 0, "CELL": 1, "FINE": 2},
        {"FOLDS": 3, "REST": 0, "BUCKET": 4},
        {"FOLDS": 1, "REST": 0, "DEEP": 1, "OUT_W": 6},
    ),
    "hg_correct_reach": ({"WIDTH": 1}, {"WIDTH": 7, "PART": 3}, {"WIDTH": 2, "PART": 5}),
    "hg_correct_side": ({"IN_W": 1, "IN_SIGNED": 0}, {"IN_W": 5}),
    "hg_correct_sum": ({"OUT_W": 1, "SHORT": 1, "OPEN": 1}, {"OUT_W": 5, "SHORT": 1}),
    "hg_correct_table": ({"ADDR_W": 1, "WIDTH": 1}, {"ADDR_W": 3, "WIDTH": 2}),
    "hg_enable": ({"WAYS": 1},),
    "hg_delay": ({"CYCLES": 0}, {"WIDTH": 1, "CYCLES": 3}),
    "hg_digits": (
        {"N": 1, "SIGNED": 1},
        {"N": 5, "IN_W": 3, "OUT_W": 20, "EVERY": 1},
        {"N": 5, "PLACE": 1, "MINUS": 1, "SIGNED": 1},
    ),
    "hg_dot_chain": (
        {"SIMD": 1, "ROWS": 1, "EACH": 1, "X_W": 1, "W_W": 2, "GUARD": 0, "EVERY": 0},
        {"SIMD": 9, "ROWS": 3, "X_SIGNED": 1, "EVERY": 1},
        {"SIMD": 16, "ROWS": 5, "EACH": 3, "CONSTANT": 1},
    ),
    "hg_chain": (
        {"COUNT": 1, "ROWS": 1, "SHARED": 0, "X_W": 1, "W_W": 2},
        {"START": 4, "ROWS": 3, "X_W": 4, "W_W": 4, "GUARD": 2},
        {"COUNT": 8, "ROWS": 1, "X_SIGNED": 1, "CONSTANT": 1},
    ),
    "hg_dot_pairs": ({"SIMD": 1, "X_W": 1, "W_W": 1, "EVERY": 0}, {"SIMD": 9, "ROWS": 2, "X_SIGNED": 1, "EVERY": 1}),
    "hg_dot_packed": (
        {"SIMD": 1, "ROWS": 3, "X_SIGNED": 1, "W_W": 2, "GUARD": 1, "EVERY": 0},
        {"SIMD": 9, "X_W": 8, "W_W": 8, "GUARD": 0, "EVERY": 1},
    ),
    "hg_dot_plain": ({"SIMD": 1, "X_W": 1, "W_W": 1, "EVERY": 0}, {"SIMD": 9, "X_SIGNED": 1, "EVERY": 1, "DSP": 1}),
    "hg_f32_add": ({"PIPE": 0}, {"PIPE": 1}),
    "hg_f32_decode": (
        {"IN_W": 1, "IN_SIGNED": 0, "SHIFT": 3, "B_W": 20, "M_W": 1, "LANES": 2, "FOLDS": 4},
        {"IN_W": 4, "B_W": 4, "M_W": 4, "FOLDS": 2},
        {"IN_W": 3, "IN_SIGNED": 0, "B_W": 3, "M_W": 2, "LANES": 1},
    ),
    "hg_f32_div": ({"PIPE": 0}, {"PIPE": 1}),
    "hg_f32_encode": (
        {"MODE": 7, "OUT_W": 1, "OUT_SIGNED": 0, "LANES": 4, "FOLDS": 2},
        {"MODE": 5, "OUT_W": 4, "FOLDS": 3},
    ),
    "hg_f32_join": ({"OP": 1, "LANES": 2}, {"OP": 5, "LANES": 1}),
    "hg_f32_minmax": ({"PIPE": 0, "MAX": 0}, {"PIPE": 1, "MAX": 1}),
    "hg_f32_mul": ({"PIPE": 0}, {"PIPE": 1}),
    "hg_f32_pack": ({"PIPE": 0}, {"PIPE": 1}),
    "hg_f32_round": ({"PIPE": 0, "MODE": 6}, {"PIPE": 1, "MODE": 1}),
    "hg_f32_round_unit": ({"MODE": 5, "LANES": 2}, {"MODE": 2, "LANES": 1}),
    "hg_f32_scale": ({"PIPE": 1, "W": 64, "M_W": 48}, {"PIPE": 1, "W": 4, "M_W": 3}),
    "hg_f32_to_code": ({"MODE": 7, "OUT_W": 1, "OUT_SIGNED": 0}, {"PIPE": 1, "OUT_W": 5}),
    "hg_f32_unit": ({"OP": 2, "LANES": 2, "FOLDS": 3}, {"OP": 3, "LANES": 1, "FOLDS": 2}),
    "hg_beside": (
        {"UNIT_A": 1, "A_SIGNED": 0, "UNIT_B": 1, "UNIT_OUT": 1, "LANES_A": 1, "LANES_B": 1, "PIXELS": 1},
        {"UNIT_A": 3, "B_SIGNED": 1, "UNIT_B": 2, "UNIT_OUT": 3, "LANES_A": 1, "LANES_B": 4, "PIXELS": 3},
    ),
    "hg_concat": (
        {"UNIT_A": 1, "UNIT_B": 1, "UNIT_OUT": 1, "LANES": 1, "BEATS_A": 1, "BEATS_B": 1},
        {"A_SIGNED": 0, "UNIT_B": 3, "B_SIGNED": 1, "BEATS_A": 5, "BEATS_B": 1},
    ),
    "hg_fifo": ({"WIDTH": 1, "DEPTH": 1}, {"WIDTH": 3, "DEPTH": 600}),
    "hg_frame_start": ({"WIDTH": 1, "BEATS": 1, "WORDS": 1}, {"WIDTH": 3, "BEATS": 5, "WORDS": 2}),
    "hg_state": (
        {"WIDTH": 1, "BEATS": 1, "INITIAL": "1'd1"},
        {"WIDTH": 5, "BEATS": 3, "INITIAL": "5'd9", "TABLE": 1},
    ),
    "hg_fork": ({"WIDTH": 1, "COUNT": 1}, {"WIDTH": 3, "COUNT": 3}),
    "hg_gather": (
        {"WIDTH": 1, "BLOCK": 1, "DIMS": 1, "EXTENTS": "32'd3", "STRIDES": "32'd0"},
        {"WIDTH": 3, "BLOCK": 7, "DIMS": 1, "EXTENTS": "32'd3", "STRIDES": "32'd2"},
    ),
    "hg_join_pair": ({"LANES": 1, "A_W": 1, "B_W": 1},),
    "hg_join_product": (
        {"LANES": 1, "A_W": 1, "A_SIGNED": 0, "B_W": 1, "B_SIGNED": 0, "OUT_W": 2},
        {"LANES": 1, "A_W": 3, "OUT_W": 12, "STYLE": 1},
    ),
    "hg_join_sum": (
        {"LANES": 1, "A_W": 1, "A_SIGNED": 0, "B_W": 1, "B_SIGNED": 0, "OUT_W": 2},
        {"LANES": 3, "A_W": 3, "OUT_W": 12, "FA": -1, "FB": 0},
    ),
    "hg_float_key": ({}, {"LANES": 3}),
    "hg_words_delay": (
        {"SIMD": 1, "X_W": 1, "ADDR_W": 1, "FIRST": 2},
        {"SIMD": 19, "CUT": 1},
        {"SIMD": 16, "EVERY": 1},
        {"SIMD": 14},
    ),
    "hg_words_row": (
        {"SIMD": 1, "X_W": 1, "ADDR_W": 1, "FIRST": 2, "T_W": 1, "S_W": 1, "EVERY": 0},
        {"SIMD": 19, "X_W": 3, "X_SIGNED": 1, "T_W": 4, "S_W": 6, "EVERY": 1, "CUT": 1},
    ),
    "hg_mvu": (
        {"SIMD": 7, "PE": 3, "ROW_FOLDS": 3, "X_W": 1, "W_W": 1, "MODE": 2, "ACC_W": 4, "EVERY": 0},
        {"SIMD": 3, "PE": 2, "COL_FOLDS": 1, "ROW_FOLDS": 1, "X_W": 2, "W_W": 1, "MODE": 1, "EVERY": 1}
        | {"LOAD_UNIT": 2},
        {"SIMD": 6, "PE": 2, "COL_FOLDS": 1, "ROW_FOLDS": 1, "WINDOWS": 2, "TAPS": 3},
    ),
    "hg_mvu_words": (
        {"SIMD": 1, "PE": 1, "COL_FOLDS": 1, "X_W": 1, "FIRST": 2, "T_W": 1, "S_W": 1, "ACC_W": 1, "EVERY": 0},
        {"SIMD": 9, "COL_FOLDS": 2, "ROW_FOLDS": 2, "FIRST": 4, "T_W": 5, "S_W": 7, "ACC_W": 20, "CUT": 1},
        {"SIMD": 19, "X_SIGNED": 1, "T_W": 5, "ACC_W": 20, "EVERY": 1, "CUT": 1},
    ),
    "hg_pad": (
        {"UNIT": 1, "LANES": 1, "HEIGHT": 1, "COLUMNS": 1, "TOP": 0, "LEFT": 0, "RIGHT": 0, "VALUE": "1'h1"},
        {"FOLDS": 1, "TOP": 0, "BOTTOM": 4},
    ),
    "hg_popcount": ({"SIMD": 1, "EVERY": 0}, {"SIMD": 31, "EVERY": 1}, {"SIMD": 64}),
    "hg_rank": (
        {"LANES": 1, "IN_W": 1, "OUT_W": 1, "LEVELS": 1, "CHUNKS": "8'h01", "STATES": "8'h01", "TABLE_W": 2},
        {"LANES": 3, "LOW": 1, "LEVELS": 3, "CHUNKS": "24'h010302", "STATES": "24'h030201", "TABLE_W": 32},
    ),
    "hg_lines": (
        {"LANES": 1, "IN_W": 1, "OUT_W": 1, "M_W": 2, "M": "2'd1", "SHIFT": 0, "ADDR_W": 1, "FRAC_W": 1}
        | {"VALUE_W": 1, "RISE_W": 1, "LEFT": 0, "RIGHT": 9, "STYLE": 0, "STAGES": 1},
        {"IN_SIGNED": 0, "SHIFT": 1, "ADDR_W": 2, "FRAC_W": 1, "M_STAGES": 2, "STAGES": 1, "RIGHT": 0},
    ),
    "hg_lane_shift": (
        {
            "LANES": 1,
            "WIDTHS": "8'd13",
            "LEFTS": "8'd0",
            "SHIFTS": "8'd3",
            "MODES": "8'd0",
            "FLAGS": "8'd0",
            "OFFSETS": "14'd0",
            "LOWS": "5'd0",
            "HIGHS": "5'd0",
            "ADD": 0,
        },
        {
            "LANES": 3,
            "IN_W": 5,
            "IN_SIGNED": 0,
            "SUM_W": 9,
            "WIDTHS": "24'h060907",
            "LEFTS": "24'h000200",
            "SHIFTS": "24'h010002",
            "MODES": "24'h020602",
            "FLAGS": "24'h080605",
            "OFFSETS": "30'h000007ff",
            "LOWS": "15'h0",
            "HIGHS": "15'h1ce7",
        },
    ),
    "hg_lut_network": (
        {
            "IN_W": 1,
            "OUT_W": 1,
            "FUNCTIONS": 1,
            "LEVELS": 1,
            "ENDS": "16'd1",
            "INPUTS": "96'd0",
            "TABLES": "64'haaaaaaaaaaaaaaaa",
        },
        {
            "IN_W": 3,
            "OUT_W": 1,
            "FUNCTIONS": 4,
            "LEVELS": 3,
            "ENDS": "48'h000400030002",
            "INPUTS": "384'h000000000000000000050004000000000000000000030002"
            "000000000000000000020001000000000000000000010000",
            "TABLES": "256'h66666666666666668888888888888888eeeeeeeeeeeeeeee6666666666666666",
        },
    ),
    "hg_lane_table": (
        {
            "LANES": 1,
            "IN_W": 1,
            "OUT_W": 1,
            "SHIFTS": "8'd0",
            "BITS": "8'd0",
            "OFFSETS": "2'd0",
            "SIZE": 1,
            "TABLES": "1'd1",
            "ADD": 0,
        },
        {
            "LANES": 3,
            "IN_W": 5,
            "IN_SIGNED": 0,
            "SHIFTS": "24'h050001",
            "BITS": "24'h010003",
            "OFFSETS": "18'h0c000",
            "SIZE": 22,
            "TABLES": "22'h2a5c3b",
        },
    ),
    "hg_take": (
        {"WIDTH": 1, "HEIGHT": 1, "COLUMNS": 1, "FOLDS": 1, "Y0": 0, "Y1": 1, "X1": 1},
        {"FOLDS": 5, "C0": 1, "C1": 5, "CS": 3, "X0": 3, "XS": 1},
    ),
    "hg_table": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "MODE": 1, "ADDR_W": 9, "C_W": 40, "SUM": "3'h5"},
        {"LANES": 3, "FOLDS": 3, "IN_W": 4, "IN_SIGNED": 0, "OUT_W": 1, "MODE": 0, "ADDR_W": 2, "C_W": 0},
        {"MODE": 2, "C_W": 0},
    ),
    "hg_compare": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "STEPS": 1, "T_W": 33, "OUT_W": 1, "FALLING": 1},
        {"LANES": 3, "FOLDS": 3, "IN_SIGNED": 0, "IN_W": 4, "T_W": 4, "OUT_W": 7, "OFFSET": "7'h55", "FALLING": 1},
    ),
    "hg_replay": (
        {"WIDTH": 1, "LENGTH": 1, "REPEAT": 1},
        {"WIDTH": 2, "LENGTH": 3, "REPEAT": 4},
        {"WIDTH": 2, "LENGTH": 1, "REPEAT": 3},
    ),
    "hg_reset": ({}, {"ACTIVE_LOW": 1}),
    "hg_norm_moments": (
        {
            "LANES": 1,
            "BEATS": 1,
            "X_W": 1,
            "X_SIGNED": 0,
            "SHIFT": 2,
            "Q_W": 4,
            "OFFSET": "4'd9",
            "CENTERED": 0,
            "S_W": 1,
        },
        {"LANES": 5, "BEATS": 2, "X_W": 3, "Q_W": 3, "S_W": 7, "M_W": 11, "EVERY": 1},
    ),
    "hg_norm_root": (
        {"M_W": 5, "S_W": 1, "FACTOR": "14'd5", "WAYS": 1},
        {"M_W": 5, "S_W": 1, "FACTOR": "14'd5", "WAYS": 40, "GAP": 1},
        {"M_W": 3, "S_W": 2, "E_W": 5, "W_W": 5, "STEPS": 27, "WAYS": 3},
    ),
    "hg_norm_root_start": ({"M_W": 5, "FACTOR": "14'd5", "GAP": 2}, {"M_W": 1, "FACTOR": "14'd8", "GAP": 1}),
    "hg_norm_root_way": ({"E_W": 5, "W_W": 5}, {"E_W": 7, "W_W": 70}),
    "hg_norm_scale": (
        {"LANES": 1, "BEATS": 1, "X_W": 1, "X_SIGNED": 0, "SHIFT": 2, "Q_W": 4, "OFFSET": "4'd9", "S_W": 1, "A_W": 1},
        {"LANES": 2, "BEATS": 2, "X_W": 3, "Q_W": 3, "S_W": 6, "E_W": 5, "A_W": 5, "BIAS": 130},
    ),
    "hg_multiply": (
        {"X_W": 1, "M_W": 1, "STYLE": 0, "STAGES": 1},
        {"X_W": 4, "M_W": 7, "STYLE": 2, "STAGES": 3, "M": "7'h4d"},
    ),
    "hg_rows_buffer": (
        {"WIDTH": 1, "BLOCK": 1, "STAT_W": 1, "LAG": 5},
        {"WIDTH": 3, "BLOCK": 3, "STAT_W": 2, "LAG": 2},
    ),
    "hg_rows_divide": ({"LANES": 1, "BITS": 1, "DEN_W": 1}, {"LANES": 3, "BITS": 3, "DEN_W": 2}),
    "hg_rows_max": (
        {"LANES": 1, "BEATS": 1, "IN_W": 1, "OUT_W": 1},
        {"LANES": 3, "BEATS": 2, "IN_W": 3, "IN_SIGNED": 0, "OUT_W": 2},
    ),
    "hg_rows_norm": (
        {
            "LANES": 1,
            "BEATS": 1,
            "CENTERED": 0,
            "BIAS_W": 1,
            "SHIFT": 0,
            "BITS": 20,
            "OUT_W": 8,
            "ACC_W": 40,
            "MEAN_W": 1,
        },
        {
            "LANES": 3,
            "BEATS": 2,
            "IN_W": 3,
            "IN_SIGNED": 0,
            "SUM_W": 9,
            "SQ_W": 11,
            "MEAN_W": 3,
            "ROOT_W": 3,
            "ACC_W": 20,
            "WRAPS": 1,
        },
    ),
    "hg_rows_fixed_share": (
        {"LANES": 1, "BEATS": 1, "IN_W": 1, "SUM_W": 21},
        {"LANES": 3, "BEATS": 9, "IN_W": 3, "SUM_W": 25, "OUT_W": 16},
    ),
    "hg_rows_newton": ({"FIRST": 0, "STEPS": 1}, {"FIRST": 3, "STEPS": 2, "TAG_W": 1}, {"FIRST": 6, "STEPS": 1}),
    "hg_rows_reciprocal": ({"SUM_W": 21, "GAP": 1}, {"GAP": 9}, {"GAP": 30}),
    "hg_rows_root": (
        {"COUNT": 1, "CENTERED": 1, "SUM_W": 3, "SQ_W": 4, "MEAN_W": 1, "ROOT_W": 1},
        {"COUNT": 6, "CENTERED": 0, "SUM_W": 7, "SQ_W": 9, "MEAN_W": 3, "ROOT_W": 3},
        {"COUNT": 3, "CENTERED": 1, "SUM_W": 34, "SQ_W": 36, "MEAN_W": 4, "ROOT_W": 4},
    ),
    "hg_rows_share": (
        {"LANES": 1, "BEATS": 1, "IN_W": 1, "WEIGHT_W": 1, "NUMBER_W": 1, "SUM_W": 2, "OUT_W": 1},
        {"LANES": 3, "BEATS": 2, "IN_W": 3, "WEIGHT_W": 4, "NUMBER_W": 9, "SUM_W": 8, "OUT_W": 5},
    ),
    "hg_scale": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "M_W": 24, "R_W": 40, "SHIFT": 31, "MODE": 1, "STYLE": 0, "STAGES": 2},
        {"LANES": 3, "IN_W": 4, "IN_SIGNED": 0, "M_W": 3, "R_W": 5, "SHIFT": 2, "MODE": 3, "SYMMETRIC": 2},
        {"LANES": 1, "FOLDS": 1, "IN_W": 4, "M_W": 3, "R_W": 12, "R_LSB": 1, "SHIFT": 3, "MODE": 1},
    ),
    "hg_scale_f32": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "U_W": 33, "STYLE": 0, "STAGES": 2},
        {"LANES": 3, "IN_W": 4, "IN_SIGNED": 0, "U_W": 6, "M_W": 5, "SHIFT": 9},
    ),
    "hg_significant": ({"W": 25, "KEEP": 24}, {"W": 9, "KEEP": 4}),
    "hg_rotate": ({"N": 1, "WIDTH": 1}, {"N": 5, "WIDTH": 3}),
    "hg_shift": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "B_W": 40, "SHIFT": 0, "MODE": 2},
        {"IN_W": 1, "IN_SIGNED": 0, "LEFT": 3, "B_W": 1, "SHIFT": 9, "MODE": 5},
        {"FOLDS": 1, "IN_W": 6, "B_W": 1, "SHIFT": 3, "MODE": 4, "ADD": 0, "SPLIT": 0},
    ),
    "hg_slice": ({"WIDTH": 1}, {"WIDTH": 9}, {"WIDTH": 3, "FULL": 0}),
    "hg_norm_square": ({"Q_W": 1}, {"Q_W": 5}, {"Q_W": 6}, {"Q_W": 7}, {"Q_W": 10}),
    "hg_softmax": (
        {"LANES": 1, "BEATS": 1, "IN_W": 3, "LAST": 7, "W": 32, "FRACTION": 0, "IN_ORDER": 1},
        {"LANES": 3, "BEATS": 2, "IN_W": 2, "IN_SIGNED": 0, "LAST": 1, "W": 25, "FRACTION": 24},
        {"LANES": 1, "BEATS": 1, "IN_W": 2, "LAST": 0, "W": 1, "FRACTION": 0, "TINY": 1},
        {"LANES": 2, "BEATS": 1, "IN_W": 14, "LAST": 8000, "W": 30, "FRACTION": 29, "LOW": 6, "M_W": 25},
        {"LANES": 1, "BEATS": 2, "IN_W": 8, "LAST": 255, "W": 30, "FRACTION": 29, "DSP": 25},
    ),
    "hg_softmax_powers": (
        {"LANES": 3, "D_W": 2, "LAST": 2, "W": 25, "FRACTION": 24, "HELD_W": 2},
        {"D_W": 13, "LAST": 8000, "W": 30, "FRACTION": 29, "LOW": 6, "M_W": 25, "HELD_W": 31},
    ),
    "hg_softmax_product": (
        {"D_W": 5, "LOW": 4, "HIGHS": 2, "M_W": 16, "W": 24, "FRACTION": 23},
        {"LANES": 2, "D_W": 13, "LOW": 6, "HIGHS": 126, "M_W": 25, "W": 150, "FRACTION": 149},
    ),
    "hg_softmax_reciprocal": ({"GAP": 1}, {"GAP": 5}, {"GAP": 13}),
    "hg_softmax_rows": (
        {"LANES": 1, "BEATS": 1, "IN_W": 1, "LAST": 1, "D_W": 1},
        {"LANES": 3, "IN_W": 4, "IN_SIGNED": 0, "LAST": 9, "D_W": 4, "MASKS": 1},
        {"LANES": 1, "IN_W": 3, "LAST": 8, "D_W": 4, "MASKS": 5},
    ),
    "hg_softmax_scale": ({"LANES": 1, "DSP": 25}, {"TINY": 1}),
    "hg_softmax_sum": (
        {"LANES": 1, "BEATS": 1, "W": 32, "IN_ORDER": 1},
        {"LANES": 3, "BEATS": 2, "W": 20, "FRACTION": 19},
    ),
    "hg_softmax_table": (
        {"LANES": 1, "D_W": 1, "WORDS": 1, "W": 1},
        {"LANES": 3, "D_W": 2, "WORDS": 3, "W": 40, "BLOCK": 1},
    ),
    "hg_stages": ({"STAGES": 1}, {"STAGES": 7, "JOINED": 1}),
    "hg_threshold": (
        {"LANES": 1, "FOLDS": 1, "IN_W": 32, "BITS": 1, "OUT_W": 1, "OFFSET": -3, "FALLING": 1},
        {"LANES": 2, "FOLDS": 3, "IN_W": 1, "IN_SIGNED": 0, "BITS": 4, "OUT_W": 7, "OFFSET": 5},
        {"LANES": 1, "FOLDS": 40, "IN_W": 3, "BITS": 3},
    ),
    "hg_keep_in": ({"BYTES": 1, "LAST": 1}, {"BYTES": 8, "LAST": 3}),
    "hg_keep_out": ({"BYTES": 1, "LAST": 1}, {"BYTES": 8, "LAST": 3}),
    "hg_load": ({"WORDS": 1, "UNIT": -1}, {"UNIT": 3, "WORDS": 1, "WIDTH": 70}),
    "hg_axil_weights": ({"UNITS": 65536}, {"UNITS": 3}),
    "hg_axil_regs": ({"WORDS": 1, "STATUS": 1, "ADDR_W": 3}, {"WORDS": 2, "STATUS": 2, "ADDR_W": 6}),
    "hg_axil_split": ({"COUNT": 1, "ADDR_W": 13}, {"COUNT": 3}),
    "hg_dma": (
        {"IN_WORDS": 0},
        {"OUT_WORDS": 0, "IN_WORDS": 1},
        {"ADDR_W": 64, "DATA_W": 1024, "IN_WORDS": 1, "OUT_WORDS": 1, "BURST": 256},
        {"ADDR_W": 13, "IN_WORDS": 3, "OUT_WORDS": 1, "BURST": 2},
        {"DATA_W": 1024, "BURST": 32},
    ),
    "hg_dma_engine": (
        {"IN_WORDS": 0},
        {"OUT_WORDS": 0, "IN_WORDS": 1},
        {"ADDR_W": 64, "DATA_W": 1024, "IN_WORDS": 1, "OUT_WORDS": 1, "BURST": 256},
    ),
    "hg_kernel_regs": ({"POINTERS": 1}, {"POINTERS": 5, "WORD_BITS": 7}),
    "hg_dma_bursts": (
        {"ADDR_W": 64, "DATA_W": 1024, "WORDS": 1, "BURST": 256},
        {"ADDR_W": 13, "DATA_W": 512, "WORDS": 3, "BURST": 4},
        {"DATA_W": 1024, "BURST": 32},
    ),
    "hg_dma_read": ({"DATA_W": 64, "WORDS": 1, "BURST": 2}, {"ADDR_W": 13, "WORDS": 3, "BURST": 4}),
    "hg_dma_regs": ({"ADDR_W": 64, "WORD_BITS": 7}, {"ADDR_W": 13, "IN_BYTES": 12, "OUT_BYTES": 4}),
    "hg_dma_write": ({"DATA_W": 64, "WORDS": 1, "BURST": 2}, {"ADDR_W": 13, "WORDS": 3, "BURST": 4}),
    "hg_dynmvu": (
        {
            "SIMD": 1,
            "PE": 1,
            "FOLDS": 1,
            "A_W": 1,
            "A_SIGNED": 0,
            "X_W": 1,
            "X_SIGNED": 0,
            "B_W": 1,
            "W_W": 2,
            "ACC_W": 3,
        },
        {"ROWS_FIRST": 0, "A_SHIFT": 1, "A_OFFSET": 3, "X_W": 6, "B_SIGNED": 0, "B_OFFSET": 7, "W_W": 6, "EVERY": 1},
    ),
    "hg_eltwise_add": ({"LANES": 1, "USER_W": 3}, {"LANES": 2}),
    "hg_eltwise_add_axi": ({"LANES": 1, "REGISTERS": 0}, {"LANES": 3}),
    "hg_eltwise_add_fn": ({"PIPE": 0}, {"PIPE": 1}),
    "hg_pair_add": ({"LANES": 1}, {"LANES": 3}),
    "hg_pair_row": ({"SIMD": 1, "X_W": 1, "W_W": 1, "TURNS": 1}, {"SIMD": 9, "X_SIGNED": 1, "EVERY": 1, "TURNS": 6}),
    "hg_pair_scale": (
        {"LANES": 1, "SIGNED": 0, "PRODUCT": 1, "M_W": 30, "R_W": 3, "SHIFT": 28, "EVEN": 0},
        {"LANES": 3, "PRODUCT": 1, "M_W": 4, "R_W": 40, "SHIFT": 1},
    ),
    "hg_conv": (
        {"SIMD": 1, "PE": 1, "HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1}
        | {"FOLDS": 1, "REPEAT": 1, "DEPTH": 1, "X_W": 1, "W_W": 1, "MODE": 2, "ACC_W": 1, "EVERY": 0},
        {"SIMD": 3, "PE": 3, "DW": 2, "PL": 2, "SH": 2, "OUT_H": 2, "GROUPS": 2, "X_W": 3, "X_SIGNED": 1, "PAD": "3'h5"}
        | {"DEPTH": 64, "STYLE": 1, "LOAD_UNIT": 0},
        {"KH": 1, "KW": 2, "PT": 0, "PL": 0, "OUT_W": 4, "FOLDS": 1, "REPEAT": 1},
    ),
    "hg_dwconv": (
        {"PE": 1, "HEIGHT": 1, "KH": 1, "PT": 0, "OUT_H": 1, "GROUPS": 1, "REPEAT": 1, "DEPTH": 3, "MODE": 1, "W_W": 1},
        {"PE": 3, "SH": 3, "SW": 2, "OUT_H": 2, "OUT_W": 3, "X_W": 1, "ACC_W": 5, "DEPTH": 30, "STYLE": 2}
        | {"LOAD_UNIT": 1, "EVERY": 1},
    ),
    "hg_dwmvu": (
        {"PE": 1, "TAPS": 1, "FOLDS": 1, "X_W": 1, "W_W": 1, "MODE": 1, "ACC_W": 2, "EVERY": 0},
        {"PE": 3, "TAPS": 7, "FOLDS": 3, "X_W": 1, "W_W": 1, "MODE": 2, "ACC_W": 4, "STYLE": 1, "EVERY": 1}
        | {"LOAD_UNIT": 5},
        {"PE": 4, "ROWS": 2, "COLUMNS": 3, "TAPS": 2},
    ),
    "hg_mac": (
        {"SIMD": 7, "PE": 1, "X_W": 1, "W_W": 1, "MODE": 1, "ACC_W": 4, "EVERY": 0},
        {"SIMD": 1, "PE": 3, "X_SIGNED": 1, "W_W": 1, "MODE": 1},
        {"SIMD": 3, "W_W": 1, "CONSTANT": 1},
        {"X_W": 5, "DSP": 1},
        {"SIMD": 3, "PE": 5, "DSP": 25},
        {"PE": 7, "X_W": 8, "W_W": 8, "ACC_W": 20, "DSP": 25, "CONSTANT": 1},
        {"SIMD": 1, "PE": 3, "X_W": 8, "W_W": 3, "DSP": 25},
        {"X_W": 6},
    ),
    "hg_mac_chains": (
        {"SIMD": 1, "PE": 1, "X_W": 1, "W_W": 2, "ROWS": 1, "GUARD": 0, "EVERY": 0},
        {"SIMD": 17, "PE": 3, "X_SIGNED": 1, "CONSTANT": 1, "EVERY": 1},
    ),
    "hg_mac_counts": ({"SIMD": 1, "PE": 1, "ACC_W": 1, "EVERY": 0}, {"SIMD": 18, "CONSTANT": 1, "ALONE": 1}),
    "hg_mac_products": (
        {"SIMD": 1, "PE": 1, "X_W": 1, "W_W": 1, "ACC_W": 1, "EVERY": 0},
        {"SIMD": 5, "PE": 3, "W_W": 4, "X_SIGNED": 1, "ROWS": 2, "GUARD": 1, "EVERY": 1},
        {"SIMD": 3, "ROWS": 1, "CONSTANT": 1},
        {"SIMD": 9, "CONSTANT": 1},
    ),
    "hg_totals": ({"PE": 1, "SUM_W": 1, "ACC_W": 1, "STAGES": 1}, {"SUM_W": 3, "COUNTS": 1}),
    "hg_plain_in": ({"WIDTH": 1}, {"WIDTH": 7}),
    "hg_plain_out": ({"WIDTH": 1}, {"WIDTH": 7}),
    "hg_pick": ({"UNIT": 1, "IN": 1, "OUT": 1}, {"IN": 3, "OUT": 2, "MAP": "64'h200000000"}),
    "hg_pool": (
        {"LANES": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "GROUPS": 1, "DEPTH": 1, "X_W": 1, "ACC_W": 1},
        {"LANES": 3, "SH": 4, "OUT_H": 1, "GROUPS": 1, "X_W": 3, "X_SIGNED": 1, "SUM": 1, "ACC_W": 7},
    ),
    "hg_pool_tree": (
        {"LANES": 1, "TAPS": 1, "X_W": 1, "ACC_W": 1},
        {"LANES": 3, "TAPS": 6, "X_W": 3, "X_SIGNED": 1, "SUM": 1, "ACC_W": 7},
    ),
    "hg_reduce": (
        {"LANES": 1, "X_W": 1, "ACC_W": 1, "HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "FOLDS": 1},
        {"LANES": 3, "X_SIGNED": 1, "SUM": 1, "ACC_W": 9, "HEIGHT": 6, "WIDTH": 12, "KH": 6, "KW": 3, "FOLDS": 1},
    ),
    "hg_reduce_walk": ({"SIZE": 1, "KERNEL": 1, "COUNT": 1}, {"SIZE": 9, "KERNEL": 1, "COUNT": 8}),
    "hg_unfold": (
        {"UNIT": 1, "LANES": 1, "HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1}
        | {"FOLDS": 1, "ROWS": 1, "COLUMNS": 1},
        {"LANES": 1, "HEIGHT": 1, "WIDTH": 20, "KH": 1, "KW": 4, "SW": 3, "PT": 0, "PL": 2, "OUT_H": 1, "OUT_W": 7}
        | {"FOLDS": 3, "ROWS": 1, "COLUMNS": 24, "PAD": "4'h9"},
        {"WIDTH": 40, "OUT_W": 40, "COLUMNS": 40, "ROWS": 5},
        {"WIDTH": 6, "OUT_W": 6, "FOLDS": 1, "COLUMNS": 3, "PIXELS": 2, "WINDOWS": 2},
        {"HEIGHT": 8, "FOLDS": 1, "ROWS": 5, "DH": 2, "DW": 2, "PT": 2, "PL": 2, "OUT_H": 8, "WINDOWS": 2},
    ),
    "hg_unfold_store": (
        {"WORD": 1, "FOLDS": 1, "ROWS": 1, "COLUMNS": 1, "SPAN": 1, "BANKS": 1, "BANK": 1, "ADDR_W": 1},
        {"FOLDS": 1, "COLUMNS": 9, "SPAN": 4, "BANKS": 1, "BANK": 9, "ADDR_W": 4},
    ),
    "hg_unfold_walk": (
        {"HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1, "FOLDS": 1}
        | {"ROWS": 1, "BANKS": 1, "BANK": 1, "ADDR_W": 1, "TURN_H": 1, "TURN_W": 1},
        {"KH": 1, "PT": 0, "PL": 2, "SH": 2, "OUT_H": 2, "FOLDS": 3, "ROWS": 1, "BANK": 9, "ADDR_W": 4, "TURN_H": 1},
    ),
    "hg_index": ({"N": 1}, {"N": 5}),
    "hg_loop": ({"N": 1}, {"N": 5}),
    "hg_next": ({"W": 1}, {"W": 9}),
    "hg_weights_table": ({"WORDS": 1, "WIDTH": 1, "COUNT": 1}, {"WORDS": 3, "FROM": 2, "COUNT": 5}),
    "hg_weight_words": ({"WORDS": 1, "WIDTH": 1, "STYLE": 1}, {"WORDS": 3, "STYLE": 2, "LOAD_UNIT": 7}),
    "hg_weights": ({"WORDS": 1, "WIDTH": 1, "STYLE": 1}, {"WORDS": 3, "STYLE": 2, "LOADABLE": 1}),
    "hg_window": (
        {"UNIT": 1, "LANES": 1, "HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1}
        | {"FOLDS": 1, "REPEAT": 1, "DEPTH": 1},
        {"PT": 7, "PL": 8, "OUT_H": 12, "OUT_W": 14, "PAD": "4'h9", "GROUPS": 3},
    ),
    "hg_window_count": ({"W": 1}, {"W": 7, "FROM": "7'h41", "LATE": 1}),
    "hg_window_flow": (
        {"HEIGHT": 1, "WIDTH": 1, "SPAN_X": 0, "SPAN_Y": 0, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1, "DEPTH": 1}
        | {"PIXEL": 1},
        {"SH": 7, "OUT_H": 1, "SW": 2, "OUT_W": 2, "LATE": 1},
    ),
    "hg_window_step": ({"FIRST": 3, "LIMIT": 0}, {"STRIDE": 1, "LIMIT": 9, "OFFSET": 4}),
    "hg_window_walk": (
        {"HEIGHT": 1, "WIDTH": 1, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 1}
        | {"FOLDS": 1, "REPEAT": 1, "DEPTH": 1, "ADDR_W": 1},
        {"SW": 3, "OUT_W": 2, "GROUPS": 3, "DEPTH": 32},
    ),
    "hg_width": (
        {"UNIT": 1, "IN": 1, "OUT": 1},
        {"UNIT": 3, "IN": 3, "OUT": 5, "IN_GROUP": 7, "OUT_GROUP": 14},
    ),
    "hg_width_gearbox": ({"IN": 1, "OUT": 1}, {"WIDTH": 1, "IN": 3, "OUT": 2, "IN_TAIL": 1, "OUT_TAIL": 1}),
    "hg_width_narrow": ({"WIDTH": 1, "COUNT": 1, "TAIL": 1}, {"WIDTH": 2, "COUNT": 5, "TAIL": 1}),
    "hg_width_widen": (
        {"WIDTH": 1, "COUNT": 2, "TAIL": 2},
        {"WIDTH": 1, "COUNT": 4, "TAIL": 2, "BEATS": 2},
        {"WIDTH": 2, "COUNT": 5, "TAIL": 3, "BEATS": 3},
        {"WIDTH": 4, "COUNT": 5, "TAIL": 3, "BEATS": 3},
    ),
}


def test_every_module_is_listed() -> None:
    assert sorted(SETS) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_style(module: str) -> None:
    text = (RTL / f"{module}.v").read_text()
    header = "\n".join(line for line in text.splitlines() if line.startswith("//"))
    for word in ("Purpose", "Parameters", "Latency", "ontract"):
        assert word in header, word
    assert "`default_nettype none" in text
    assert text.rstrip().endswith("`default_nettype wire")
    assert re.findall(r"^\s*module (\w+)", text, re.MULTILINE) == [module]
    assert "lint_off" not in text
    assert max(map(len, text.splitlines())) <= 110


def complaints(command: list[str], folder: Path) -> str:
    completed = subprocess.run(command, cwd=folder, env=tool_environment(), capture_output=True, text=True, check=False)
    lines = (completed.stdout + completed.stderr).splitlines()
    kept_lines = [line for line in lines if "timescale" not in line and "$readmemh" not in line]
    return "\n".join([*kept_lines, *([f"exit {completed.returncode}"] if completed.returncode else [])])


def instances(module: str) -> str:
    """A module `sets` with one instance of `module` per parameter set. Its inputs are wires that are too wide."""
    ports = re.findall(r"^ +(input|output) [^;]*?(\w+),?(?: *//.*)?$", (RTL / f"{module}.v").read_text(), re.MULTILINE)
    control_ports = {"clk", "rst", "en"}
    pins = [
        f".{name}({'' if direction == 'output' else name if name in control_ports else 'in'})"
        for direction, name in ports
    ]
    off = ("DECLFILENAME", "UNUSEDSIGNAL", "WIDTHTRUNC", "PINCONNECTEMPTY")  # in this file alone
    lines = [
        *(f"// verilator lint_off {name}" for name in off),
        "module sets (input clk, rst, en, input [16383:0] in);",
    ]
    for k, parameters in enumerate(({}, *SETS[module])):
        values = ", ".join(f".{name}({value})" for name, value in parameters.items())
        lines.append(f"{module} #({values}) set{k} ({', '.join(pins)});")
    return "\n".join([*lines, "endmodule", ""])


@pytest.mark.parametrize("module", MODULES)
def test_lint_by_verilator(module: str, tmp_path: Path) -> None:
    (tmp_path / "sets.v").write_text(instances(module))
    # cocotb makes all signals public. A vector that is assigned bit by bit then counts as a loop (UNOPTFLAT).
    options = ["--cc", "--public-flat-rw", "-Wall", "--quiet", "-y", str(RTL), "--top-module", "sets"]
    assert complaints(["verilator", *options, "sets.v"], tmp_path) == ""


@pytest.mark.parametrize("number", range(max(map(len, SETS.values())) + 1))
def test_lint_by_icarus(number: int, tmp_path: Path) -> None:
    """All modules together, each with its parameter set of this number."""
    sets = {module: ({}, *SETS[module])[number] for module in MODULES if number <= len(SETS[module])}
    command = ["iverilog", "-g2005", "-Wall", "-y", str(RTL), "-o", "out.vvp"]
    for module, parameters in sets.items():
        command += ["-s", module, *(f"-P{module}.{name}={value}" for name, value in parameters.items())]
    command += [str(RTL / f"{module}.v") for module in sets]
    assert complaints(command, tmp_path) == ""


# Runs in a separate process, because an error of Yosys ends the process.
SYNTHESIZE = """
import json, sys
from pyosys import libyosys as ys
folder, module, parameters = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
design = ys.Design()
run = lambda command: ys.run_pass(command, design)
run(f"read_verilog -defer {folder}/*.v")
values = " ".join(f"-chparam {name} {value}" for name, value in parameters.items())
run(f"hierarchy -check -top {module} {values}")
# A loop variable that is not always assigned is a latch as well, and synth_ecp5 rejects it.
run("proc -latches error; flatten; opt_expr; opt_clean; check -assert")
run("select -assert-none t:$dlatch* t:$adlatch* t:$sr t:$_DLATCH*")
run("synth -run coarse:check -noabc")
run("select -assert-none t:$dlatch* t:$_DLATCH* t:$_SR*")
wires = module in ("hg_pick", "hg_plain_in", "hg_plain_out")
run("select -assert-none t:*" if wires else "select -assert-min 1 t:*")
print("DONE")
"""


def memories(folder: Path) -> None:
    """Write files for the $readmemh of any module, with more words than any parameter set needs."""
    stems = ["memory", *(f"memory_{g:04d}" for g in range(4)), *(f"memory_{k:02d}" for k in range(6))]
    stems += [f"memory_{g:04d}_{k:02d}" for g in range(4) for k in range(6)]
    stems += [f"memory_{end}" for end in ("power", "numerator", "high", "low", "mask")]
    for name in ("memory", *(f"{stem}.mem" for stem in stems)):
        (folder / name).write_text("96c5a3_5d2e19b4_c3a5965e\n693a5c_a2d1e64b_3c5a69a1\n")


def reading(text: str) -> str:
    """Module text whose default file name is one of `memories` instead of none."""
    return re.sub(r'(parameter\s+FILE\s*= )""', r'\1"memory"', text)


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_synthesis(module: str, tmp_path: Path) -> None:
    """Yosys synthesizes the module with a small parameter set, without latches or conflicts."""
    pytest.importorskip("pyosys")
    memories(tmp_path)
    texts = {name: reading((RTL / f"{name}.v").read_text()) for name in MODULES}
    assert all('"memory"' in text for text in texts.values() if re.search(r"parameter\s+FILE\b", text))
    for name, text in texts.items():
        (tmp_path / f"{name}.v").write_text(text)
    completed = subprocess.run(
        [sys.executable, "-c", SYNTHESIZE, ".", module, json.dumps(SETS[module][:2][-1])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout.rstrip().endswith("DONE"), completed.stdout[-3000:] + completed.stderr[-3000:]
