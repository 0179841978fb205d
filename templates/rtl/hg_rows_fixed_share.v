// hg_rows_fixed_share: Exponentials divided by their sum over the row, in the fixed point of gemmlowp.
//
// Purpose     Second half of TFLite's SOFTMAX.
// Parameters  LANES  Elements of a beat.
//             BEATS  Beats of a row.
//             IN_W   Bits of an element d, unsigned.
//             SUM_W  Bits of the sum, 21 to 28. The caller proves that it fits.
//             OUT_W  Bits of a share.
//             FILE   2^IN_W exponentials of 31 bits.
// Latency     6 cycles after a beat is read, see hg_rows_buffer with LAG = 32. One beat per cycle.
// Contract    S = the sum over the row of floor(exponential[d] / 2^12 + 1/2). hg_rows_reciprocal gives
//             its place and r. p = floor(r * exponential[d] / 2^31 + 1/2), t = 12 + place - OUT_W, m =
//             floor(p / 2^t + 1/2), at most 2^OUT_W - 1, in the order of s. No S is 0, t is at least 1.
`default_nettype none
module hg_rows_fixed_share #(
    parameter integer LANES = 1,
    parameter integer BEATS = 4,
    parameter integer IN_W  = 8,
    parameter integer SUM_W = 28,
    parameter integer OUT_W = 8,
    parameter         FILE  = ""
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
    localparam integer WORDS = 1 << IN_W;
    localparam integer LAG   = 32;
    // A product has 62 bits; its low bits are dropped at least.
    localparam integer DROP  = 43 - OUT_W;
    localparam integer Q_W   = 63 - DROP;

    wire                  take, first, last, issue, valid;
    wire [LANES*IN_W-1:0] data;
    wire [4:0]            place_now, place0;
    wire [30:0]           r_now, r0;
    wire [LANES*20-1:0]   weights;
    reg                   take1_reg, first1_reg, last1_reg, take2_reg, first2_reg, last2_reg;
    reg  [SUM_W-1:0]      beat, beat_reg, sum_reg;
    integer               k;

    always @* begin
        beat = {SUM_W{1'b0}};
        for (k = 0; k < LANES; k = k + 1) beat = beat + {{SUM_W-20{1'b0}}, weights[k*20 +: 20]};
    end
    wire [SUM_W-1:0] sum = first2_reg ? beat_reg : sum_reg + beat_reg;
    always @(posedge clk) begin
        first1_reg <= first;
        first2_reg <= first1_reg;
        last1_reg  <= last;
        last2_reg  <= last1_reg;
        take1_reg  <= take && !rst;
        take2_reg  <= take1_reg && !rst;
        beat_reg   <= beat;
        if (take2_reg) sum_reg <= sum;
    end
    hg_rows_reciprocal #(.SUM_W(SUM_W), .GAP(BEATS)) reciprocal (
        .clk(clk), .rst(rst), .s_valid(take2_reg && last2_reg), .s(sum), .place(place_now), .r(r_now));

    wire en = m_ready || !m_valid;
    hg_rows_buffer #(.WIDTH(LANES*IN_W), .BLOCK(BEATS), .STAT_W(36), .LAG(LAG)) rows (
        .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready), .take(take),
        .first(first), .last(last), .stat({place_now, r_now}), .en(en), .issue(issue), .m_data(data),
        .m_stat({place0, r0}), .m_valid(valid));

    // Halves of both roundings: of the product, and of its share.
    reg [4:0]  valid_reg;
    reg [30:0] r_reg;
    reg [4:0]  place1_reg, place2_reg, place3_reg, place4_reg;
    reg [62:0] half_reg;
    assign m_valid = valid_reg[4];
    always @(posedge clk) begin
        if (en) begin
            valid_reg  <= {valid_reg[3:0], valid};
            r_reg      <= r0;
            place1_reg <= place0;
            place2_reg <= place1_reg;
            place3_reg <= place2_reg;
            place4_reg <= place3_reg;
            half_reg   <= (63'd1 << (DROP[5:0] - 6'd1 + {1'b0, place2_reg})) + 63'd1073741824;
        end
        if (rst) valid_reg <= 5'd0;
    end
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            (* rom_style = "auto" *) reg [30:0] exponential [0:WORDS-1];
            initial if (FILE != "") $readmemh(FILE, exponential);
            reg [30:0] weight_reg, number_reg;
            reg [46:0] low_reg;
            reg [45:0] high_reg;
            reg [61:0] product_reg;
            reg [62:0] raised_reg;
            reg [OUT_W-1:0] share_reg;
            wire [Q_W-1:0] quotient = raised_reg[62:DROP] >> place4_reg;
            always @(posedge clk) begin
                weight_reg <= exponential[s_data[g*IN_W +: IN_W]];
                if (en) begin
                    number_reg  <= exponential[data[g*IN_W +: IN_W]];
                    low_reg     <= r_reg * number_reg[15:0];
                    high_reg    <= r_reg * number_reg[30:16];
                    product_reg <= {high_reg, 16'd0} + {15'd0, low_reg};
                    raised_reg  <= {1'b0, product_reg} + half_reg;
                    share_reg   <= |quotient[Q_W-1:OUT_W] ? {OUT_W{1'b1}} : quotient[OUT_W-1:0];
                end
            end
            assign weights[g*20 +: 20] = {1'b0, weight_reg[30:12]} + {19'd0, weight_reg[11]};
            assign m_data[g*OUT_W +: OUT_W] = share_reg;
            wire unused_lane = &{1'b0, raised_reg[DROP-1:0]};
        end
    endgenerate
    wire unused = &{1'b0, issue};
endmodule
`default_nettype wire
