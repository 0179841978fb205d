// hg_agreements: Rows of hg_popcount that share the same x.
//
// Purpose     Counts of hg_mac_counts, for binary layers.
// Parameters  SIMD      Bits of x and of a row of w.
//             ROWS      Number of rows.
//             EVERY     Pipeline registers, see hg_popcount.
//             CONSTANT  1: w never changes.
//             ALONE     0: of 4 * n positions, one is left for the user's adder; 1: none is left.
// Latency     1 + the latency of hg_popcount from x, all advancing on en. Word w arrives one cycle after
//             its x.
// Contract    Exact. Row r of w is at bit r * SIMD. All rows share the two registers of x. These are marked
//             to be kept, because tools merge two equal registers. One register suffices where w is wired
//             into the LUTs. The lowest bit of each row of counts is hg_popcount's `one`. The other bits
//             are its count, and the result is the sum of both.
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
    localparam integer ALL    = SIMD + ALONE;  // plus one position that never agrees: the one left over
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
