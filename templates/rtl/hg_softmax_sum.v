// hg_softmax_sum: Factor or divisor of the elements of a Softmax row.
//
// Purpose     IN_ORDER = 0: fl(1 / sum of the words of a row), where the sum is exact and rounded once.
//             Words are fixed point. IN_ORDER = 1: the sum of float32 words, rounded after each addition,
//             from the first to the last.
// Parameters  LANES     Words of a beat; 1 if IN_ORDER.
//             BEATS     Beats of a row.
//             W         Bits of a word; 32 if IN_ORDER.
//             FRACTION  Fraction bits of a word, if not IN_ORDER.
//             IN_ORDER  0 or 1.
// Latency     From the last beat of a row, advancing on en: 17 + ceil(log2(LANES)) cycles; 1 if IN_ORDER.
// Contract    The float32 result is valid only in the enabled cycle in which m_valid is 1. Sums are finite,
//             and at least 1 if not IN_ORDER.
`default_nettype none
module hg_softmax_sum #(
    parameter integer LANES    = 2,
    parameter integer BEATS    = 3,
    parameter integer W        = 32,
    parameter integer FRACTION = 31,
    parameter integer IN_ORDER = 0
) (
    input  wire               clk,
    input  wire               rst,
    input  wire               en,
    input  wire [LANES*W-1:0] s_data,
    input  wire               s_valid,
    input  wire               s_first,
    input  wire               s_last,
    output wire [31:0]        m_data,
    output wire               m_valid
);
    localparam integer LEVELS = (IN_ORDER != 0) ? 0 : $clog2(LANES);
    localparam integer STAGES = (IN_ORDER != 0) ? 1 : 17 + LEVELS;
    localparam integer SUM_W  = W + $clog2(LANES * BEATS);
    // The highest bit of a sum is one of its first PLACES. After a shift by up to MORE bits, 24 and a half
    // bits remain.
    localparam integer PLACES = (IN_ORDER != 0) ? 1 : SUM_W - FRACTION;
    localparam integer MORE   = PLACES - 1;
    localparam integer KEPT   = MORE + 25;
    localparam integer WIDE   = (SUM_W <= KEPT) ? KEPT + 1 : SUM_W;
    localparam integer E_W    = $clog2(PLACES + 1);
    localparam integer WAIT   = 13;  // latency of hg_softmax_reciprocal

    reg  [STAGES-1:0] done_reg;
    wire [STAGES:0]   done_in = {done_reg, s_valid && s_last};
    assign m_valid = done_reg[STAGES-1];
    always @(posedge clk) begin
        if (en)  done_reg <= done_in[STAGES-1:0];
        if (rst) done_reg <= {STAGES{1'b0}};
    end

    generate
        if (IN_ORDER != 0) begin : in_order
            reg  [31:0] sum_reg;
            wire [31:0] next;
            hg_f32_add #(
                .PIPE(0)
            ) u_add (
                .clk(clk),
                .en (en),
                .a  (sum_reg),
                .b  (s_data[31:0]),
                .y  (next)
            );
            always @(posedge clk) if (en && s_valid) sum_reg <= s_first ? s_data[31:0] : next;
            assign m_data = sum_reg;
        end else begin : exact
            wire [W+LEVELS-1:0] beat;
            wire [SUM_W-1:0]    wide_beat = {{SUM_W-W-LEVELS{1'b0}}, beat};
            reg  [SUM_W-1:0]    sum_reg;
            wire                first, valid;
            hg_adder_tree #(
                .N     (LANES),
                .IN_W  (W),
                .SIGNED(0),
                .EVERY (1),
                .CLOSED(0)
            ) u_tree (
                .clk  (clk),
                .en   (en),
                .terms(s_data),
                .sum  (beat)
            );
            if (LEVELS == 0) begin : at_once
                assign first = s_first;
                assign valid = s_valid;
            end else begin : delayed
                reg  [LEVELS-1:0] first_reg, valid_reg;
                wire [LEVELS:0]   first_in = {first_reg, s_first};
                wire [LEVELS:0]   valid_in = {valid_reg, s_valid};
                always @(posedge clk) if (en) begin
                    first_reg <= first_in[LEVELS-1:0];
                    valid_reg <= valid_in[LEVELS-1:0];
                end
                assign first = first_reg[LEVELS-1];
                assign valid = valid_reg[LEVELS-1];
                wire unused_delayed = &{1'b0, first_in[LEVELS], valid_in[LEVELS]};
            end
            always @(posedge clk) if (en && valid) sum_reg <= wide_beat + (first ? {SUM_W{1'b0}} : sum_reg);

            // Leading zeros, and the sum without them.
            wire [WIDE-1:0] whole = {sum_reg, {WIDE-SUM_W{1'b0}}};
            reg  [E_W-1:0]  zeros;
            integer k;
            always @* begin
                zeros = {E_W{1'b0}};
                for (k = 0; k < PLACES; k = k + 1)
                    if (sum_reg[FRACTION+k]) zeros = MORE[E_W-1:0] - k[E_W-1:0];
            end
            wire [KEPT-1:0] moved = whole[WIDE-1 -: KEPT] << zeros;
            reg  [24:0]     high_reg;
            reg             rest_reg;
            reg  [E_W-1:0]  zeros_reg;
            wire            rest;
            if (MORE == 0) begin : short
                assign rest = 1'b0;
            end else begin : long
                assign rest = moved[KEPT-26:0] != {MORE{1'b0}};
            end

            // Round to 24 bits; 2^24 becomes half of it. Then compute the reciprocal and its exponent.
            wire            up = high_reg[0] && (high_reg[1] || rest_reg);
            wire [24:0]     rounded = {1'b0, high_reg[24:1]} + {24'd0, up};
            reg  [23:0]     divisor_reg;
            reg  [E_W-1:0]  size_reg;  // exponent of the sum: 2^size to 2^(size + 1)
            reg  [WAIT*E_W-1:0] sizes_reg;
            wire [WAIT*E_W+E_W-1:0] sizes = {sizes_reg, size_reg};
            wire [23:0]     quotient;
            wire [7:0]      exponent = 8'd126 - {{8-E_W{1'b0}}, sizes_reg[WAIT*E_W-1 -: E_W]};
            reg  [30:0]     result_reg;
            wire            divided;
            hg_softmax_reciprocal #(
                .GAP(BEATS)
            ) u_reciprocal (
                .clk    (clk),
                .rst    (rst),
                .en     (en),
                .s_data (divisor_reg),
                .s_valid(done_reg[LEVELS+2]),
                .m_data (quotient),
                .m_valid(divided)
            );
            always @(posedge clk) if (en) begin
                high_reg    <= moved[KEPT-1 -: 25];
                rest_reg    <= rest || whole[WIDE-KEPT-1:0] != {WIDE-KEPT{1'b0}};
                zeros_reg   <= zeros;
                divisor_reg <= {1'b1, rounded[22:0]};
                size_reg    <= MORE[E_W-1:0] - zeros_reg + {{E_W-1{1'b0}}, rounded[24]};
                sizes_reg   <= sizes[WAIT*E_W-1:0];
                result_reg  <= {exponent, quotient[23:1]} + {30'd0, quotient[0]};
            end
            assign m_data = {1'b0, result_reg};
            wire unused_exact = &{1'b0, divided, rounded[23], sizes[WAIT*E_W+E_W-1 -: E_W]};
        end
    endgenerate
    wire unused = &{1'b0, done_in[STAGES], s_first};
endmodule
`default_nettype wire
