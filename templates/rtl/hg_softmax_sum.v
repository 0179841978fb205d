// hg_softmax_sum: what the elements of a row of a Softmax are multiplied with, or divided by.
//
// Purpose     IN_ORDER = 0: fl(1 / sum of the words of a row), where the sum is exact, rounded once; words
//             are fixed point. IN_ORDER = 1: the sum of float32 words, rounded after each addition, from
//             the first to the last.
// Parameters  LANES     words of a beat; 1 if IN_ORDER
//             BEATS     beats of a row
//             W         bits of a word; 32 if IN_ORDER
//             FRACTION  bits of a word behind its binary point, if not IN_ORDER
//             IN_ORDER  0 or 1
// Latency     from the last beat of a row, advancing on en: 22 + ceil(log2(LANES)) cycles; 1 if IN_ORDER
// Contract    the result, float32, is there in the enabled cycle in which m_valid is 1, and in no other one.
//             Sums are 1 or more if not IN_ORDER, and finite.
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
    localparam integer STAGES = (IN_ORDER != 0) ? 1 : 22 + LEVELS;
    localparam integer SUM_W  = W + $clog2(LANES * BEATS);
    localparam integer WIDE   = (SUM_W < 27) ? 27 : SUM_W;
    localparam integer TOP    = 126 + SUM_W - FRACTION;
    localparam [12:0] E_TOP   = TOP[12:0];

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
            wire [31:0]         sum;
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
            wire [WIDE-1:0] significant;
            if (SUM_W < 27) begin : narrow
                assign significant = {sum_reg, {WIDE-SUM_W{1'b0}}};
            end else begin : whole
                assign significant = sum_reg;
            end
            hg_f32_pack #(
                .PIPE(1),
                .N   (WIDE),
                .PRE (0)
            ) u_round (
                .clk  (clk),
                .en   (en),
                .sign (1'b0),
                .inf  (1'b0),
                .nan  (1'b0),
                .e_top(E_TOP),
                .sig  (significant),
                .y    (sum)
            );
            hg_f32_div #(
                .PIPE(1)
            ) u_div (
                .clk(clk),
                .en (en),
                .a  (32'h3F800000),
                .b  (sum),
                .y  (m_data)
            );
        end
    endgenerate
    wire unused = &{1'b0, done_in[STAGES], s_first};
endmodule
`default_nettype wire
