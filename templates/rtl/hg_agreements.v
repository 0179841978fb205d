// hg_agreements: rows of hg_popcount that take the same x.
//
// Purpose     the sums of hg_mac for binary layers.
// Parameters  SIMD      bits of x and of a row of w
//             ROWS      rows
//             EVERY     see hg_popcount
//             CONSTANT  1: w never changes
//             ALONE     0: of 4 * n positions, one is left for the user's adder; 1: none is
// Latency     1 + that of hg_popcount from x, all advancing on en; w comes a cycle after its x
// Contract    exact. Row r of w at bit r * SIMD. All rows share the two registers of x, which are kept: tools
//             make one of two that are alike. One does where w is wired into the tables. The lowest bit of
//             each row of counts is hg_popcount's `one`, the others are its count: their sum is the number.
`default_nettype none
module hg_agreements #(
    parameter integer SIMD     = 8,
    parameter integer ROWS     = 2,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer ALONE    = 0
) (
    input  wire                                       clk,
    input  wire                                       en,
    input  wire [SIMD-1:0]                            x,
    input  wire [ROWS*SIMD-1:0]                       w,
    output wire [ROWS*(3+$clog2((SIMD+ALONE+3)/4))-1:0] counts
);
    localparam integer ALL    = SIMD + ALONE;  // with one that never agrees: the one that is left
    localparam integer TERMS  = (ALL + 3) / 4;
    localparam integer THREES = (ALL < 3 * TERMS) ? ALL : 3 * TERMS;
    localparam integer W      = 3 + $clog2(TERMS);

    wire [SIMD-1:0]   x_now;
    wire [SIMD:0]     x_all = {1'b0, x_now}, x_in = {1'b0, x};
    wire [THREES-1:0] x_again;
    hg_delay #(.WIDTH(SIMD), .CYCLES(1)) once (.clk(clk), .en(en), .d(x), .q(x_now));
    genvar r;
    generate
        if (CONSTANT != 0) begin : wired
            assign x_again = x_all[THREES-1:0];
        end else begin : twice
            wire [THREES-1:0] d = x_in[THREES-1:0];
            hg_delay #(.WIDTH(THREES), .CYCLES(1)) again (.clk(clk), .en(en), .d(d), .q(x_again));
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            wire [SIMD:0] own = {1'b1, w[r*SIMD +: SIMD]};
            wire unused_own = own[SIMD];
            hg_popcount #(.SIMD(ALL), .EVERY(EVERY)) popcount (
                .clk(clk), .en(en), .x(x_all[ALL-1:0]), .x_again(x_again), .w(own[ALL-1:0]),
                .count(counts[r*W+1 +: W-1]), .one(counts[r*W])
            );
        end
    endgenerate
    wire unused = &{1'b0, x_all, x_in};
endmodule
`default_nettype wire
