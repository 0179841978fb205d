"""Contracts of modules with valid and ready, proven by the assertions of formal/ for inputs of any length."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from windows import Geometry

pytest.importorskip("pyosys")

from contracts import (
    CONTRACTS,
    Case,
    axil_regs,
    axil_weights,
    axis_in,
    axis_out,
    bus_in,
    bus_out,
    combinational,
    concat,
    concat_channels,
    dma_bursts,
    dma_read,
    dma_regs,
    dma_write,
    dynmvu,
    dynmvu_once,
    f32_join,
    fifo,
    fork,
    frame_start,
    gather,
    join,
    join_results,
    kernel_regs,
    load,
    norm_moments,
    norm_root,
    norm_scale,
    pad,
    pick,
    powered_up,
    prove,
    replay,
    reset,
    rows_buffer,
    rows_fixed_share,
    rows_max,
    rows_norm,
    rows_share,
    slice_,
    softmax,
    softmax_rows,
    state,
    take,
    translate,
    unfold,
    width,
    window,
)

# height, width, kh, kw, sh, sw, dh, dw, pt, pl, out_h, out_w, groups, folds, repeat
LINE = Geometry(1, 3, 1, 2, 1, 1, 1, 1, 0, 0, 1, 2, 1, 1, 1)
PADDED = Geometry(2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1)
STRIDED = Geometry(3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 1, 1, 1, 1, 1)
FOLDED = Geometry(2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 1, 1, 1, 2, 2)
GROUPED = Geometry(2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 1, 2, 2, 1, 1)
DILATED = Geometry(3, 3, 2, 2, 1, 1, 2, 2, 0, 0, 1, 1, 1, 1, 1)
#: For words of two pixels: the first tap within a word, another row than a whole number of words, and taps far apart.
BETWEEN = Geometry(1, 4, 1, 2, 1, 1, 1, 1, 0, 1, 1, 4, 1, 1, 1)
SHORT = Geometry(2, 3, 2, 2, 1, 2, 1, 1, 0, 0, 1, 1, 1, 1, 1)
APART = Geometry(2, 4, 2, 2, 1, 2, 1, 2, 1, 1, 2, 2, 1, 1, 1)

QUICK = [
    dma_bursts(13, 1024, 3, 2, 2),
    dma_regs(33, 2),
    kernel_regs(1, 2),
    dma_read(16, 2, 2, 1),
    dma_write(16, 2, 2, 1),
    fifo(1, 1),
    fifo(2, 3),
    fifo(1, 4, ahead=True),
    slice_(2),
    slice_(2, full=False),
    replay(1, 2, 2),
    replay(1, 1, 3),
    replay(1, 2, 1),
    width(1, (3, 2)),
    width(1, (2, 4)),
    width(1, (2, 2), (3, 3)),
    gather(1, 4, [(2, 1), (2, 2)]),
    fork(1, 2),
    join(1, 1, 2),
    concat_channels(2, (1, 2), (1, 2), (0, 1), 3),
    concat(1, (1, 2), (1, 0), 3, (2, 3)),
    pick(1, 3, (2, 0, 0, 1)),
    take(1, (2, 3, 1), (0, 2, 1), (1, 3, 1), (0, 1, 1)),
    pad(1, 1, (2, 2, 1), (1, 0, 0, 1), 1),
    axis_in(2, 3, 3),
    axis_in(2, 3, 3, cut=1),
    axis_out(2, 4, 3),
    axis_out(2, 4, 3, cut=0),
    bus_in(2, 6, 3, 3),
    bus_out(2, 6, 3, 3),
    window(1, LINE),
    window(1, LINE, late=1),
    unfold(1, LINE, columns=4),
    unfold(1, BETWEEN, columns=3, windows=2, pixels=2),
    join_results(0, 1, (2, 1), (0, 1), (3, -2), 6),
    join_results(1, 1, (2, 2), (1, 0), (-1, 1), 6),
    reset(0),
    reset(1),
    load(3, 3, 40),
    axil_weights(3),
    axil_regs(1, 1, 3, 0x5, 0xFF),
    state(1, 2, 1),
    rows_buffer(1, 2, 1),
    rows_max(2, 1, 1, 1),
    rows_share(1),
    softmax_rows(2, 3),
    norm_moments(2, 1),
    norm_root(1, 1),
    norm_scale(2),
    dynmvu(2),
    dynmvu_once(0),
]
SLOW = [
    dma_bursts(13, 1024, 1, 32, 2),
    dma_regs(13, 7),
    kernel_regs(2, 7),
    replace(dma_read(16, 3, 2, 2), frames=18),
    replace(dma_write(16, 3, 2, 2), frames=17),
    state(2, 1, 2),
    state(1, 3, 0),
    frame_start(2, 3),
    frame_start(1, 1),
    replace(frame_start(3, 2), frames=25),
    rows_buffer(1, 1, 3),
    rows_buffer(2, 3, 1),
    rows_max(1, 2, 1, 0),
    rows_max(1, 3, 2, 1),
    rows_share(2),
    replace(rows_fixed_share(1), frames=44),
    rows_norm(1, 0),
    rows_norm(2, 1),
    softmax(1),
    softmax(2),
    softmax_rows(1),
    softmax_rows(3),
    norm_moments(1, 0),
    norm_root(2, 1),
    norm_root(2, 2),
    norm_scale(1),
    f32_join(0),
    f32_join(1),
    dynmvu(1),
    dynmvu_once(1),
    fifo(3, 2),
    fifo(1, 6),
    fifo(2, 1, ahead=True),
    fifo(1, 5, ahead=True),
    slice_(5),
    replay(2, 1, 1),
    replay(1, 3, 1),
    replay(1, 3, 2),
    replay(1, 4, 1),
    width(2, (1, 1)),
    width(1, (2, 3)),
    width(1, (4, 2)),
    width(1, (1, 4)),
    width(1, (4, 1)),
    width(1, (4, 3), (5, 5)),
    width(1, (2, 4), (3, 6)),
    width(1, (1, 4), (6, 6)),
    width(1, (1, 4), (7, 7)),
    width(1, (4, 2), (6, 3)),
    gather(1, 1, [(3, 0)]),
    gather(2, 3, [(2, 2)]),
    fork(2, 1),
    fork(1, 3),
    join(2, 2, 1),
    concat_channels(1, (1, 1), (1, 1), (0, 0), 1),
    concat(2, (2, 1), (0, 1), 2, (1, 1)),
    concat(1, (1, 1), (0, 0), 1, (4, 1)),
    pick(2, 2, (1,)),
    take(1, (3, 3, 2), (1, 3, 1), (0, 3, 2), (1, 2, 1)),
    take(1, (2, 2, 3), (0, 2, 1), (0, 2, 1), (0, 3, 2)),
    take(2, (1, 1, 1), (0, 1, 1), (0, 1, 1), (0, 1, 1)),
    pad(2, 1, (1, 1, 1), (0, 0, 0, 0), 1),
    pad(1, 2, (2, 1, 2), (0, 1, 1, 2), 0),
    pad(1, 1, (1, 2, 1), (2, 0, 1, 0), 1),
    axis_in(1, 1, 1),
    axis_in(5, 8, 4),
    axis_in(5, 8, 4, cut=1),
    axis_out(1, 1, 1),
    axis_out(5, 8, 2),
    axis_out(5, 8, 2, cut=0),
    bus_in(3, 2, 4, 2),
    bus_in(2, 3, 3, 2),
    bus_in(1, 4, 1, 2),
    bus_out(3, 2, 4, 2),
    bus_out(2, 3, 3, 2),
    bus_out(1, 4, 1, 5),
    window(1, PADDED),
    window(1, STRIDED, extra_words=1),
    window(1, FOLDED),
    window(1, GROUPED, extra_words=2),
    window(1, DILATED),
    unfold(1, PADDED),
    unfold(1, STRIDED),
    unfold(1, DILATED),
    unfold(1, PADDED, windows=2),
    unfold(2, Geometry(1, 4, 1, 2, 1, 2, 1, 1, 0, 0, 1, 2, 1, 1, 1), columns=2, pixels=2),
    unfold(1, PADDED, windows=2, pixels=2),
    unfold(1, SHORT, pixels=2),
    unfold(1, APART, pixels=2),
    unfold(1, replace(BETWEEN, width=6, out_w=6), columns=3, windows=3, pixels=3),
    join_results(0, 2, (1, 2), (1, 0), (-3, -1), 6),
    join_results(0, 1, (3, 3), (1, 1), (-5, 1), 7),
    join_results(0, 1, (3, 2), (1, 0), (5, 9), 4),
    join_results(1, 2, (1, 2), (0, 0), (0, 3), 4),
    join_results(1, 1, (3, 3), (1, 1), (2, -3), 8),
    load(65535, 1, 1),
    load(0, 1, 32),
    load(1, 2, 33),
    load(2, 5, 96),
    axil_weights(1),
    axil_weights(65536),
    axil_regs(2, 1, 4, 0x1234500000005, 0xFF00FF),
    axil_regs(3, 2, 5, 0xFFFFFFFF << 40, 0xFEDC0123 << 48),
]
#: Seeded mistakes, at least one in each unit, and the assertion that must find each.
BROKEN = [
    state(1, 2, 1).broken("first_reg || starts;", "first_reg;", "wrong_state"),  # goes on with the sequence before
    state(1, 2, 1).broken("free && (first_reg || some_reg)", "free", "invented"),
    state(1, 2, 1).broken("first_reg <= 1'b1;", ";", "*"),  # a reset that does not start a sequence
    state(1, 2, 1).broken("if (free) valid_reg", "valid_reg", "offer_withdrawn"),
    state(1, 2, 1).broken("if (free) initial_reg", "initial_reg", "offer_moved"),
    state(1, 2, 1).broken("b_ready = ready_reg;", "b_ready = 1'b1;", "too_many"),  # overwrites beats
    state(1, 2, 1).broken("b_ready = ready_reg;", "b_ready = !some_reg;", "state_refused"),
    state(1, 2, 1).broken(".DEPTH(2)) frames", ".DEPTH(1)) frames", "flag_refused"),
    state(1, 2, 1).broken("(first_reg || some_reg);", "(first_reg || !ready_reg);", "found_late"),
    frame_start(2, 3).broken("m_ready || !first", "m_ready", "rest_is_dropped"),
    frame_start(2, 3).broken(".s_data(fresh)", ".s_data(1'b0)", "bit_changed"),  # ignores the start
    frame_start(2, 3).broken("word && word_reg == {WW{1'b0}}", "word", "begins_at_a_frame"),
    frame_start(2, 3).broken("m_valid = s_valid && first", "m_valid = s_valid", "bit_of_a_frame"),
    fifo(2, 3).broken("s_ready = ready_reg", "s_ready = 1'b1", "changed"),  # overwrites beats
    fifo(2, 3).broken("s_ready = ready_reg", "s_ready = 1'b1", "crowded"),
    fifo(2, 3).broken("push || count_reg != ONE", "1'b1", "created"),  # a beat that never arrived
    fifo(2, 3).broken("some_reg  <= 1'b0;", ";", "created"),  # a reset that does not empty it
    fifo(1, 4).broken("count_reg != NEARLY", "count_reg < NEARLY - 1'b1", "refused"),  # capacity is one beat smaller
    fifo(1, 4, ahead=True).broken("push && write_reg == read_next", "push", "changed"),
    slice_(2, full=False).broken("? 2'b10 : 2'b01", "? 2'b11 : 2'b01", "changed"),  # loses beats
    powered_up(slice_(2)).broken("valid_reg <= full_reg || s_valid", "valid_reg <= !free_reg || s_valid", "quiet"),
    slice_(2).broken("if (!full_reg) skid_reg", "skid_reg", "changed"),  # loses the beat in the second register
    slice_(2).broken("if (m_ready || !valid_reg) begin", "if (1'b1) begin", "moved"),  # does not hold an offer
    slice_(2).broken("<= 2'b10;", "<= 2'b10; valid_reg <= 1'b0;", "withdrawn"),
    replay(1, 3, 2).broken(
        "(half_reg != end_pass) ? HALF", "half_reg ? {AW{1'b0}}", "changed"
    ),  # repeats another vector
    replay(1, 2, 2).broken("push ? !nearly : ready_reg", "1'b1", "changed"),  # overwrites beats
    replay(1, 1, 3).broken("if (ready_reg) wait_reg", "wait_reg", "changed"),  # loses the buffered beat
    replay(1, 1, 3).broken("!(waits_reg || valid_reg)", "1'b0", "refused"),
    replay(1, 3, 1).broken("last_reg  <= end_beat", "last_reg  <= end_pass", "changed"),
    width(1, (3, 2)).broken("? from << (WIDTH << g) : from", "? from << WIDTH : from", "changed"),
    width(1, (3, 2)).broken("count_reg >= less", "count_reg > less", "late"),
    width(1, (2, 4)).broken("!begun_next || !valid_next", "1'b1", "changed"),  # overwrites a buffered beat
    width(1, (2, 4)).broken("if (s_valid && begun_reg && !valid_reg) begin", "if (push) begin", "changed"),
    width(1, (1, 4), (7, 7)).broken("if (short) data_reg", "if (!short) data_reg", "changed"),
    width(1, (4, 2)).broken("!(advance && single)", "!advance"),  # forgets the other parts
    width(1, (4, 2)).broken("advance && COUNT > 1", "1'b0"),  # a part twice
    gather(1, 4, [(2, 1), (2, 2)]).broken("!full_reg[into_reg]", "1'b1", "changed"),
    fork(1, 2).broken("done_reg | m_ready", "m_ready", "created"),  # an output takes a beat twice
    fork(1, 2).broken("{COUNT{s_valid}} & ~done_reg", "{COUNT{s_valid}}", "created"),
    join(1, 1, 2).broken("assign b_ready = en && a_valid", "assign b_ready = en", "changed"),  # loses beats of b
    concat_channels(2, (1, 2), (1, 2), (0, 1), 3).broken(
        "assign a_ready = en && b_valid", "assign a_ready = en", "changed"
    ),
    concat(1, (1, 2), (1, 0), 3, (2, 3)).broken("turn_reg ? LAST_B : LAST_A", "turn_reg ? LAST_A : LAST_B"),
    pick(1, 3, (2, 0, 0, 1)).broken("MAP[32*i +: 32]", "MAP[0 +: 32]", "changed"),
    take(1, (2, 3, 1), (0, 2, 1), (1, 3, 1), (0, 1, 1)).broken("m_ready || !(&keeps)", "m_ready && &keeps", "stuck"),
    take(1, (2, 3, 1), (0, 2, 1), (1, 3, 1), (0, 1, 1)).broken("s_valid && (&keeps)", "s_valid", "created"),
    pad(1, 1, (2, 2, 1), (1, 0, 0, 1), 1).broken("begun_reg && !image", "!image", "created"),
    axis_in(2, 3, 3).broken("if (ready) data_reg", "data_reg", "moved"),
    axis_in(2, 3, 3, cut=1).broken("ready && !rst", "(ready || m_ready) && !rst", "changed"),
    bus_in(2, 6, 3, 3).broken("s_axis_tdata[g*SLOT +: WIDTH]", "s_axis_tdata[g*WIDTH +: WIDTH]", "changed"),
    bus_in(2, 6, 3, 3).broken(".OUT(1), .IN_GROUP(BEATS), .OUT_GROUP(BEATS)", ".OUT(1)", "created"),
    bus_out(2, 6, 3, 3).broken("[g*SLOT +: SLOT] = filled", "[(SLOTS-1-g)*SLOT +: SLOT] = filled", "changed"),
    bus_out(2, 6, 3, 3).broken(".OUT(SLOTS), .IN_GROUP(BEATS), .OUT_GROUP(BEATS)", ".OUT(SLOTS)"),
    axis_out(2, 4, 3).broken("{last, padded", "{!last, padded", "changed"),
    axis_out(2, 4, 3, cut=0).broken("if (s_ready) word_reg", "word_reg", "moved"),
    window(1, LINE).broken("write_reg == TOP", "write_reg == TOP - 1'b1", "changed"),
    window(1, LINE, late=1).broken("(LATE == 0 || go) ? moved", "(LATE != 0 || go) ? moved", "created"),
    window(1, LINE).broken("assign room     = over[CW-1]", "assign room     = 1'b0", "refused"),
    unfold(1, LINE, columns=4).broken("assign complete = !have[CW-1]", "assign complete = 1'b1", "created"),
    # Reads of the address that is written next are undefined, too.
    replay(1, 2, 2).broken("push && write_reg == place", "write_reg == place", "changed"),
    window(1, LINE).broken("take && write_reg == address", "write_reg == address", "changed"),
    unfold(1, LINE, columns=4).broken("write && write_reg ==", "write_reg ==", "changed"),
    join_results(0, 1, (2, 1), (0, 1), (3, -2), 6).broken("pax[OUT_W-1:0] - pbx", "pax[OUT_W-1:0] + pbx", "result"),
    reset(1).broken("? !reset_in", "? reset_in", "follows"),
    load(3, 3, 40).broken("{load[31:0], word_reg}", "{word_reg, load[31:0]}", "kept"),
    axil_weights(3).broken("write && piece", "aw_full_reg && w_full_reg && piece", "moves"),  # a piece twice
    axil_regs(1, 1, 3, 0x5, 0xFF).broken(" && strb_reg[k]", "", "holds"),
    rows_buffer(1, 1, 3).broken("s_ready = !busy_reg[into_reg]", "s_ready = !full_reg[into_reg]", "changed"),
    rows_max(2, 1, 1, 1).broken("first_reg || greater(top_reg, best_reg)", "greater(top_reg, best_reg)", "below"),
    rows_share(1).broken("en = m_ready || !m_valid", "en = 1'b1", "withdrawn"),
    softmax_rows(2, 3).broken("s_ready = !full_reg[into_reg]", "s_ready = 1'b1", "crowded"),
    norm_moments(2, 1).broken("valid_reg[TREE+1] && last_reg[TREE+1]", "valid_reg[TREE+1]", "created"),
    norm_root(1, 1).broken("rows_reg != WAYS[C_W-1:0]", "1'b1", "changed"),
    norm_scale(2).broken("a_valid && beat_reg == LAST", "a_valid", "row"),
    norm_scale(2).broken("valid_reg <= 8'd0;", ";", "on_time"),  # a reset that leaves elements inside
    dynmvu(2).broken(
        "if (rst) fold_reg <= {FW{1'b0}};", "", "created"
    ),  # a sum that includes beats from before a reset
    dynmvu_once(0).broken("assign b_ready = near && a_valid", "assign b_ready = near", "crowded"),  # loses beats of b
]
#: Further mistakes, for every assertion of every contract.
MORE_BROKEN = [
    dma_bursts(13, 1024, 3, 2, 2).broken(" || valid_reg;", ";", "some_left"),
    dma_bursts(13, 1024, 3, 2, 2).broken("PAGE_END - {1'b0, addr_reg[PAGE-1:0]}", "PAGE_END", "in_page"),
    dma_bursts(13, 1024, 3, 2, 2).broken("addr_reg + {{AW-BW{1'b0}}, words_reg}", "addr_reg + 1'b1", "in_order"),
    dma_bursts(13, 1024, 3, 2, 2).broken("open_reg - {{OW-BW{1'b0}}, words}", "open_reg", "not_too_many"),
    dma_bursts(13, 1024, 3, 2, 2).broken("32'd0 && open_reg < MOST", "32'd0 && open_reg == {OW{1'b0}}", "longest"),
    dma_bursts(13, 1024, 3, 2, 2).broken("!fill && !valid_reg &&", "!fill &&", "burst_moved"),
    kernel_regs(1, 2).broken("!unaligned && frames_reg", "frames_reg", "starts_jobs"),
    kernel_regs(1, 2).broken("if (reads) {ready_reg, done_reg} <= 2'b00;", "", "says_control"),
    kernel_regs(1, 2).broken("pending_reg ^ toggled", "pending_reg | toggled", "interrupts"),
    kernel_regs(1, 2).broken("sources_reg : 2'd0);", "2'd1 : 2'd0);", "gives_pending"),
    kernel_regs(1, 2).broken("{unaligned, 3'b000}", "4'd0", "gives_errors"),
    kernel_regs(1, 2).broken("data | (halves_reg[32*k +: 32] & ~bits)", "data", "keeps_address"),
    kernel_regs(1, 2).broken("found = halves_reg[32*m +: 32]", "found = halves_reg[0 +: 32]", "gives_address"),
    kernel_regs(1, 2).broken("data | (frames_reg & ~bits)", "data", "keeps_frames"),
    kernel_regs(1, 2).broken("== OPTIONS && strb_reg[0]", "== OPTIONS", "sequence_option"),
    kernel_regs(1, 2).broken("s_axil_bresp   = 2'b00", "s_axil_bresp = {rvalid_reg, 1'b0}", "okay_write"),
    kernel_regs(1, 2).broken("s_axil_rresp   = 2'b00", "s_axil_rresp = {bvalid_reg, 1'b0}", "okay_read"),
    dma_regs(33, 2).broken("frames_reg != 32'd0 &&", "", "starts"),
    dma_regs(33, 2).broken("sequence_reg || data[2]", "data[2]", "sequence_starts"),
    dma_regs(33, 2).broken("aw_reg <= FRAMES", "aw_reg < FRAMES", "says_register"),
    dma_regs(33, 2).broken("{SLVERR, 32'd0}", "{OKAY, 32'd0}", "says_read"),
    dma_regs(33, 2).broken("busy_reg && !fresh_reg && !active", "busy_reg && !active", "busy"),
    dma_regs(33, 2).broken("{OKAY, sent}", "{OKAY, received}", "gives_sent"),
    dma_read(16, 2, 2, 1).broken("arwords_reg - 1'b1", "arwords_reg", "requests_too_much"),
    dma_read(16, 2, 2, 1).broken("room_reg >= {1'b0, burst_words}", "1'b1", "has_room"),
    dma_read(16, 2, 2, 1).broken("if (free) begin", "begin", "request_moved"),
    dma_read(16, 2, 2, 1).broken("else if (pop && m_axis_tlast)", "else if (pop)", "counts_sent"),
    dma_write(16, 2, 2, 1).broken("awwords_reg - 1'b1", "awwords_reg", "writes_too_much"),
    dma_write(16, 2, 2, 1).broken("(!awvalid_reg || m_axi_awready) && ", "", "write_moved"),
    dma_write(16, 2, 2, 1).broken(" && (!wvalid_reg || sent)", "", "one_burst"),
    dma_write(16, 2, 2, 1).broken("if (sent) wvalid_reg", "if (pop) wvalid_reg", "sends"),
    dma_write(16, 2, 2, 1).broken("beats_reg == ONE", "beats_reg != ONE", "ends"),
    dma_write(16, 2, 2, 1).broken(" || waiting_reg != 8'd0", "", "is_active"),
    dma_write(16, 2, 2, 1).broken("there_reg >= {1'b0, burst_words}", "1'b1", "created"),
    rows_buffer(1, 2, 1).broken("full_reg  <= 2'b00;", "", "created"),
    rows_max(1, 2, 1, 0).broken("if (take_reg) best_reg", "best_reg", "below"),
    softmax_rows(2, 3).broken("last_reg  <= {last_reg[1:0], ends}", "last_reg <= {last_reg[1:0], begins}", "changed"),
    norm_scale(2).broken("assign a_ready = en && b_valid", "assign a_ready = en", "element"),
    norm_scale(2).broken("m_data[g*32 +: 32] = float_reg", "m_data[g*32 +: 32] = {32{m_ready}} & float_reg", "still"),
    f32_join(1).broken("assign a_ready = en && b_valid", "assign a_ready = en", "crowded"),
    unfold(1, BETWEEN, columns=3, windows=2, pixels=2).broken("(SKEW+n*SW+w*DW)", "(n*SW+w*DW)", "changed"),
    unfold(1, SHORT, pixels=2).broken("(WIDTH + PIXELS - 1) / PIXELS", "WIDTH / PIXELS"),
    join_results(0, 1, (2, 1), (0, 1), (3, -2), 6).broken("b_ready = en && a_valid", "b_ready = en", "together"),
    join_results(1, 1, (2, 2), (1, 0), (-1, 1), 6).broken("- ZB_S[DB_W-1:0]", "+ ZB_S[DB_W-1:0]", "result"),
    load(3, 3, 40).broken("if (next_reg == LAST_WORD) live_reg <= 1'b0;", "", "written"),  # writes beyond the last word
    load(3, 3, 40).broken("piece_reg <= {PW{1'b0}};", "", "written"),  # goes on within a word
    load(3, 3, 40).broken("next_reg  <= next_reg + 1'b1;", "", "placed"),
    load(3, 3, 40).broken("load[49] && mine && live_reg", "load[49] && live_reg", "written"),
    axil_weights(3).broken("awready = !aw_full_reg && !rst", "awready = !aw_full_reg", "in_reset"),
    axil_weights(3).broken("write = aw_full_reg && w_full_reg", "write = aw_full_reg", "unasked"),
    axil_weights(3).broken("awready = !aw_full_reg && !rst", "awready = !rst", "overfull"),  # loses an address
    axil_weights(3).broken("!s_axil_bready : write", "!s_axil_bready : write && start", "unanswered"),
    axil_weights(3).broken("awready = !aw_full_reg", "awready = !aw_full_reg && !w_full_reg", "refused_address"),
    axil_weights(3).broken("wready  = !w_full_reg", "wready = !w_full_reg && aw_full_reg", "refused_data"),
    axil_weights(3).broken("if (write) bresp_reg", "bresp_reg", "response_moved"),
    axil_weights(3).broken("!s_axil_rready : s_axil_arvalid", "1'b0 : s_axil_arvalid && ar != INFO", "read_answered"),
    axil_weights(3).broken("arready = !rvalid_reg", "arready = !rvalid_reg && !bvalid_reg", "refused_read"),
    axil_weights(3).broken("arready = !rvalid_reg && !rst", "arready = !rst", "one_read"),
    axil_weights(3).broken("if (!rvalid_reg) read_reg", "read_reg", "read_moved"),
    axil_weights(3).broken("if (!w_full_reg) {strb_reg, w_reg}", "{strb_reg, w_reg}", "brings"),
    axil_weights(3).broken("if (write && start) unit_reg", "if (write && whole && aw_reg == UNIT) unit_reg", "chooses"),
    axil_weights(3).broken("(start || piece) ? OKAY", "whole ? OKAY", "says"),
    axil_weights(3).broken("{OKAY, 16'd0, unit_reg}", "{OKAY, 16'd0, w_reg[15:0]}", "gives"),
    axil_regs(1, 1, 3, 0x5, 0xFF).broken("hit ? OKAY : SLVERR", "OKAY", "says_word"),
    axil_regs(2, 1, 4, 0, 0xFF).broken("{OKAY, all[32*j +: 32]}", "{OKAY, all[0 +: 32]}", "gives_word"),
    axil_regs(1, 1, 3, 0x5, 0xFF).broken("!s_axil_bready : write", "!s_axil_bready : write && hit", "unanswered"),
    axil_regs(1, 1, 3, 0x5, 0xFF).broken("wready  = !w_full_reg && !rst", "wready = !rst", "overfull"),
]


def check(cases: list[Case], folder: Path) -> dict[str, str]:
    """Problems by case; empty if all cases are proven."""
    wrong = {}
    for case, folder_of_case in zip(cases, translate(cases, folder), strict=True):
        paths = combinational(folder_of_case, case)
        if paths != case.paths:
            wrong[str(case)] = f"paths {sorted(paths)}, not {sorted(case.paths)}"
        elif (verdict := prove(folder_of_case, case.frames)) != ("bounded" if case.frames else "proved"):
            wrong[str(case)] = verdict[-500:]
    return wrong


#: A usual run proves three parts of the cases, and the rotating share takes others.
PARTS = 6


@pytest.mark.cases(3)
@pytest.mark.parametrize("part", range(PARTS))
def test_contracts(part: int, tmp_path: Path) -> None:
    assert check(QUICK[part::PARTS], tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=str)
def test_more_contracts(case: Case, tmp_path: Path) -> None:
    assert check([case], tmp_path) == {}


#: Modules with valid and ready, in parts of a few: a usual run proves one part, and the rotating share takes others.
LINKED = sorted({case.module for case in QUICK if case.links})


@pytest.mark.cases(1)
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_sent_at_power_up(part: int, tmp_path: Path) -> None:
    """Exceptions are units whose counters report a full memory if registers begin at 0: they need a reset."""
    modules = LINKED[part::PARTS]
    cases = [powered_up(case) for case in QUICK if case.links and case.module in modules]
    verdicts = [
        (case, prove(folder_of_case, case.frames))
        for case, folder_of_case in zip(cases, translate(cases, tmp_path), strict=True)
    ]
    sending = {case.module for case, verdict in verdicts if verdict == "violated"}
    assert sending == {"hg_replay", "hg_unfold", "hg_window"} & {*modules}
    assert {verdict for case, verdict in verdicts if case.module not in sending} <= {"proved", "bounded"}


def missed(cases: list[Case], folder: Path) -> list[str]:
    """The mistakes that no assertion finds."""
    folders = zip(cases, translate(cases, folder), strict=True)
    return [
        f"{case} {case.only} {case.rewrites}"
        for case, folder_of_case in folders
        if prove(folder_of_case, frames=40) != "violated"
    ]


@pytest.mark.cases(1)
@pytest.mark.parametrize("part", range(PARTS))
def test_broken_units_are_found(part: int, tmp_path: Path) -> None:
    assert missed(BROKEN[part::PARTS], tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_more_broken_units_are_found(part: int, tmp_path: Path) -> None:
    assert missed(MORE_BROKEN[part::PARTS], tmp_path) == []


def test_every_assertion_finds_a_mistake() -> None:
    """Each assertion has a broken unit that violates it."""
    names = [name for file in CONTRACTS for name in re.findall(r"(\w+): assert ", file.read_text())]
    assert len(set(names)) == len(names)
    assert {case.only for case in [*BROKEN, *MORE_BROKEN]} == {"*", *names}
