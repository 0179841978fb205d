// hg_totals: sums over the words of reductions, of several rows.
//
// Purpose     the last registers of hg_mac.
// Parameters  ROWS   sums at a time
//             SUM_W  bits of what is added
//             ACC_W  bits of a total
//             COUNTS 0: two's complement is added; 1: counts, and the lowest bit of each is a carry into the
//                    total instead of a part of the count
// Latency     1: a step adds sums to the totals; the first one of a reduction puts them in their place
// Contract    modulo 2^ACC_W. Row p of both at bit p * SUM_W and p * ACC_W.
`default_nettype none
module hg_totals #(
    parameter integer ROWS   = 2,
    parameter integer SUM_W  = 9,
    parameter integer ACC_W  = 12,
    parameter integer COUNTS = 0
) (
    input  wire                  clk,
    input  wire                  step,
    input  wire                  first,
    input  wire [ROWS*SUM_W-1:0] sums,
    output wire [ROWS*ACC_W-1:0] totals
);
    localparam integer LOW = (COUNTS != 0) ? 1 : 0;
    genvar p;
    generate
        for (p = 0; p < ROWS; p = p + 1) begin : row
            wire [SUM_W-1:0]       sum = sums[p*SUM_W +: SUM_W];
            wire [SUM_W+ACC_W-1:0] extended = {{ACC_W+LOW{COUNTS == 0 && sum[SUM_W-1]}}, sum[SUM_W-1:LOW]};
            wire [ACC_W:0]         one = {{ACC_W{1'b0}}, COUNTS != 0 && sum[0]};
            reg  [ACC_W-1:0]       acc_reg;
            always @(posedge clk)
                if (step) acc_reg <= (first ? {ACC_W{1'b0}} : acc_reg) + extended[ACC_W-1:0] + one[ACC_W-1:0];
            assign totals[p*ACC_W +: ACC_W] = acc_reg;
            wire unused = &{1'b0, extended, one};
        end
    endgenerate
endmodule
`default_nettype wire
