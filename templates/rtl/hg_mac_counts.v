// hg_mac_counts: hg_mac for bipolar weights and binary codes.
//
// Purpose     Rows of agreements, summed over the words of a reduction. Arithmetic of the same units with
//             MODE = 2.
// Parameters  SIMD, PE, ACC_W, EVERY, CONSTANT  See hg_mac.
//             ALONE  1: each word is a complete reduction.
// Latency     1 enabled cycle more than hg_agreements, from a reduction's last word.
// Contract    As hg_mac. Lane p, column s of w is at bit p * SIMD + s.
`default_nettype none
module hg_mac_counts #(
    parameter integer SIMD     = 8,
    parameter integer PE       = 2,
    parameter integer ACC_W    = 6,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer ALONE    = 0
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    en,
    input  wire                    en_totals,
    input  wire [SIMD-1:0]            x,
    input  wire                    x_valid,
    input  wire                    x_last,
    input  wire [PE*SIMD-1:0]         w,
    output wire [PE*ACC_W-1:0]     m_data,
    output wire                    m_valid,
    output wire                    m_free
);
    localparam integer TERMS  = (SIMD + ALONE + 3) / 4;
    localparam integer SUM_W  = 3 + $clog2(TERMS);
    localparam integer STAGES = 2 + ((EVERY == 0) ? 0 : ($clog2(TERMS) + EVERY - 1) / EVERY);

    wire [PE*SIMD-1:0]  w_now;
    wire [PE*SUM_W-1:0] sums;
    generate
        if (CONSTANT != 0) begin : fixed
            assign w_now = w;
        end else begin : read
            reg [PE*SIMD-1:0] w_reg;
            always @(posedge clk) if (en) w_reg <= w;
            assign w_now = w_reg;
        end
    endgenerate
    hg_agreements #(
        .SIMD(SIMD), .ROWS(PE), .EVERY(EVERY), .CONSTANT(CONSTANT), .ALONE(ALONE)
    ) dot (.clk(clk), .en(en), .x(x), .w(w_now), .counts(sums));

    hg_totals #(.PE(PE), .SUM_W(SUM_W), .ACC_W(ACC_W), .STAGES(STAGES), .COUNTS(1)) totals (
        .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
        .x_valid(x_valid), .x_last(x_last), .sums(sums),
        .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
    );
endmodule
`default_nettype wire
