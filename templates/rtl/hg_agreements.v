// hg_agreements: rows of hg_popcount that take the same x.
//
// Purpose     the sums of hg_mac for binary layers.
// Parameters  SIMD      bits of x and of a row of w
//             ROWS      rows
//             EVERY     see hg_popcount
//             CONSTANT  1: w never changes
// Latency     1 + that of hg_popcount from x, all advancing on en; w comes a cycle after its x
// Contract    exact. Row r of w at bit r * SIMD. All rows share the two registers of x, which are kept: tools
//             make one of two that are alike. One does where w is wired into the tables. The lowest bit of
//             each row of counts is hg_popcount's `one`, the others are its count: their sum is the number.
`default_nettype none
module hg_agreements #(
    parameter integer SIMD     = 8,
    parameter integer ROWS     = 2,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0
) (
    input  wire                                       clk,
    input  wire                                       en,
    input  wire [SIMD-1:0]                            x,
    input  wire [ROWS*SIMD-1:0]                       w,
    output wire [ROWS*(3+$clog2((SIMD+3)/4))-1:0]     counts
);
    localparam integer TERMS  = (SIMD + 3) / 4;
    localparam integer THREES = (SIMD < 3 * TERMS) ? SIMD : 3 * TERMS;
    localparam integer W      = 3 + $clog2(TERMS);

    wire [SIMD-1:0]   x_now;
    wire [THREES-1:0] x_again;
    hg_delay #(.WIDTH(SIMD), .CYCLES(1)) once (.clk(clk), .en(en), .d(x), .q(x_now));
    genvar r;
    generate
        if (CONSTANT != 0) begin : wired
            assign x_again = x_now[THREES-1:0];
        end else begin : twice
            hg_delay #(.WIDTH(THREES), .CYCLES(1)) again (.clk(clk), .en(en), .d(x[THREES-1:0]), .q(x_again));
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            hg_popcount #(.SIMD(SIMD), .EVERY(EVERY)) popcount (
                .clk(clk), .en(en), .x(x_now), .x_again(x_again), .w(w[r*SIMD +: SIMD]),
                .count(counts[r*W+1 +: W-1]), .one(counts[r*W])
            );
        end
    endgenerate
endmodule
`default_nettype wire
