// hg_correct: Monotone functions: a coarse guess of the code, corrected by one comparison.
//
// Purpose     The high bits of x select a bucket, which has a code and a start. The high bits of y = x -
//             start select a cell, which has a count and a threshold. Then code = bucket's code + cell's
//             count + (y >= cell's threshold).
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             OUT_W      Bits of the code. Sums of codes are modulo 2^OUT_W.
//             FRACTION   Fraction bits of starts and thresholds.
//             REST       Bits of a finer part of the threshold, selected by the code; 0: none.
//             COUNT      Bits of a count.
//             SHAPES     4 bytes per lane, listed from the low byte. BUCKET: bits of a bucket number. CELL:
//                        bits of a cell number. COARSE: lowest bit of the bucket number in x. FINE: lowest
//                        bit of the cell number in y, not counting FRACTION.
//             FIRST      IN_W bits per lane. An x < FIRST uses the bucket of FIRST, count 0, threshold
//                        reached.
//             LAST       IN_W bits per lane. An x > LAST uses the bucket of LAST, count ABOVE, threshold
//                        reached.
//             ABOVE      COUNT bits per lane.
//             OPEN       1: the code has no output register, because the consumer has one.
//             DEEP       1: cell lookup tables have an output register. Requires FOLDS = 1 and REST = 0;
//                        otherwise elaboration stops.
//             FILE       File name stem of the memory files of each lane (four digits). A threshold has
//                        THRESHOLD = FINE + FRACTION bits.
//                         FILE_<lane>_00.mem  FOLDS * 2^BUCKET words {code, start}; the start has
//                                             CELL + THRESHOLD bits.
//                         FILE_<lane>_01.mem  FOLDS * 2^CELL words {always reached, count, threshold}.
//                         FILE_<lane>_02.mem  If REST > 0: FOLDS * 2^OUT_W words, OR-ed to the
//                                             threshold above its fraction.
//                         With FOLDS = 1, word i of a file holds bit i of all entries.
// Latency     3 cycles, 1 more if REST > 0 or DEEP, 2 more if FOLDS > 1, 1 less if OPEN. One beat per
//             cycle.
// Contract    With FOLDS = 1 the lookup tables are logic. If BUCKET and CELL are at most 5, each bit of
//             start and threshold is one LUT. With FOLDS > 1 they are memories with a registered read and
//             the set in the high address bits.
`default_nettype none
module hg_correct #(
    parameter integer            LANES     = 2,
    parameter integer            FOLDS     = 2,
    parameter integer            IN_W      = 10,
    parameter integer            IN_SIGNED = 1,
    parameter integer            OUT_W     = 4,
    parameter integer            FRACTION  = 1,
    parameter integer            REST      = 2,
    parameter integer            COUNT     = 3,
    parameter [32*LANES-1:0]     SHAPES    = {LANES{32'h06080202}},
    parameter [IN_W*LANES-1:0]   FIRST     = 0,
    parameter [IN_W*LANES-1:0]   LAST      = 0,
    parameter [COUNT*LANES-1:0]  ABOVE     = 0,
    parameter integer            OPEN      = 0,
    parameter integer            DEEP      = 0,
    parameter                    FILE      = ""
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*IN_W-1:0]  s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer MORE    = (REST > 0 || DEEP != 0) ? 1 : 0;
    localparam integer LATENCY = 3 + MORE + ((FOLDS > 1) ? 2 : 0) - ((OPEN != 0) ? 1 : 0);
    // Lookup tables are logic, and all inputs above LAST have one code: a reset replaces them where the sum
    // is a carry chain.
    localparam integer TOPPED  = (FOLDS == 1 && REST == 0 && OUT_W > 4) ? 1 : 0;
    localparam integer FW      = (FOLDS <= 1) ? 1 : $clog2(FOLDS);

    reg  [LATENCY-1:0] valid_reg;
    wire [LATENCY:0]   valid_in = {valid_reg, s_valid};
    wire               en = m_ready || !valid_reg[LATENCY-1];

    assign s_ready = en;
    assign m_valid = valid_reg[LATENCY-1];

    wire [FW-1:0] fold, unused_next;
    hg_index #(.N(FOLDS)) turn (.clk(clk), .rst(rst), .step(s_valid && en), .index(fold), .next(unused_next));

    // The channel set travels with the beat: folds[k] is the set of the beat k cycles ago.
    reg  [3*FW-1:0] folds_reg;
    wire [4*FW-1:0] folds = {folds_reg, fold};
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= valid_in[LATENCY-1:0];
            folds_reg <= folds[3*FW-1:0];
        end
        if (rst) valid_reg <= {LATENCY{1'b0}};
    end

    genvar g;
    generate
        if ((DEEP != 0 && DEEP != 1) || (DEEP != 0 && (FOLDS > 1 || REST > 0))) begin : bad
            hg_parameter_error_correct_deep bad ();
        end
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer D3 = 48 + (g / 1000) % 10;
            localparam integer D2 = 48 + (g / 100) % 10;
            localparam integer D1 = 48 + (g / 10) % 10;
            localparam integer D0 = 48 + g % 10;
            localparam integer BUCKET = {24'd0, SHAPES[32*g +: 8]}, CELL = {24'd0, SHAPES[32*g+8 +: 8]};
            localparam integer COARSE = {24'd0, SHAPES[32*g+16 +: 8]}, FINE = {24'd0, SHAPES[32*g+24 +: 8]};
            localparam integer SHORT  = (OUT_W <= 4 && REST == 0 && (FOLDS > 1 || BUCKET == 1)) ? 1 : 0;
            wire [FINE+CELL-1:0] x;
            wire [BUCKET-1:0]    own, bucket, first_bucket, last_bucket;
            wire [2:0]           side;
            wire [OUT_W-1:0]     base, more, top;
            wire                 late, reached, beyond;
            hg_correct_bucket #(
                .IN_W(IN_W), .IN_SIGNED(IN_SIGNED), .FIRST(FIRST[IN_W*g +: IN_W]),
                .LAST(LAST[IN_W*g +: IN_W]), .BUCKET(BUCKET), .COARSE(COARSE), .X_W(FINE+CELL), .LATE(TOPPED)
            ) guess (
                .x(s_data[g*IN_W +: IN_W]), .low(x), .own(own), .bucket(bucket),
                .first_bucket(first_bucket), .last_bucket(last_bucket), .late(late), .side(side)
            );
            hg_correct_lane #(
                .FOLDS(FOLDS), .OUT_W(OUT_W), .FRACTION(FRACTION), .REST(REST), .COUNT(COUNT),
                .BUCKET(BUCKET), .CELL(CELL), .FINE(FINE), .DEEP(DEEP),
                .FILE(FILE == "" ? "" : {FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0]})
            ) lane (
                .clk(clk), .en(en), .folds(folds), .x(x), .own(own), .bucket(bucket),
                .first_bucket(first_bucket), .last_bucket(last_bucket), .late(late), .side(side),
                .above(ABOVE[COUNT*g +: COUNT]),
                .base(base), .more(more), .reached(reached), .beyond(beyond), .top(top)
            );
            hg_correct_sum #(.OUT_W(OUT_W), .SHORT(SHORT), .OPEN(OPEN)) last (
                .clk(clk), .en(en), .base(base), .more(more), .reached(reached),
                .above(beyond), .top(top), .code(m_data[g*OUT_W +: OUT_W])
            );
        end
    endgenerate
    wire unused = &{1'b0, unused_next, valid_in, folds};
endmodule
`default_nettype wire
