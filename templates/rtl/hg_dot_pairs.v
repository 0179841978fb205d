// hg_dot_pairs: ROWS dot products of the same SIMD codes with SIMD weights each, two codes at a time.
//
// Purpose     Rows of hg_mac_products with weights that change.
// Parameters  SIMD      Terms.
//             ROWS      Dot products.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w in two's complement. With W_W = 1, bit 0 means -1 and bit 1
//                       means +1.
//             EVERY     Pipeline registers, see hg_adder_tree. Here 0 means 1.
// Latency     1; plus a cycle for every two bits of a weight, or from three terms on for each bit, twice
//             that with EVERY = 1, rounded up; plus ceil(log2(ceil(SIMD / 4))) / EVERY of a tree, rounded
//             up. All registers advance on en.
// Contract    Exact two's complement sums of X_W + W_W + 1 + ceil(log2(SIMD)) bits. Row r, column s of w is
//             at bit (r * SIMD + s) * W_W. Rows share the sums of two adjacent codes, see hg_pair_row.
//             Every third delay register is marked to be kept, see hg_delay.
`default_nettype none
module hg_dot_pairs #(
    parameter integer SIMD     = 4,
    parameter integer ROWS     = 1,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer EVERY    = 2
) (
    input  wire                                 clk,
    input  wire                                 en,
    input  wire [SIMD*X_W-1:0]                  x,
    input  wire [ROWS*SIMD*W_W-1:0]             w,
    output wire [ROWS*(X_W+W_W+$clog2(SIMD)+1)-1:0] sums
);
    localparam integer COUNT = (SIMD + 1) / 2;
    localparam integer PER   = (EVERY < 2) ? 1 : 2;
    localparam integer TURNS = (W_W * ((COUNT > 1) ? 2 : 1) + PER - 1) / PER;
    localparam integer T_W   = X_W + 1;
    localparam integer ALL_W = COUNT * 3 * T_W;
    localparam integer SUM_W = X_W + W_W + 1 + $clog2(SIMD);

    // Pairs of the last TURNS words. An odd last code is paired with 0.
    wire [(2*COUNT+1)*X_W-1:0] padded = {{(2*COUNT+1-SIMD)*X_W{1'b0}}, x};
    wire [ALL_W-1:0]           next;
    wire [TURNS*ALL_W-1:0]     pairs;
    wire unused = &{1'b0, padded[2*COUNT*X_W +: X_W]};
    genvar k, t, r;
    generate
        for (k = 0; k < COUNT; k = k + 1) begin : pair
            wire [X_W-1:0] a = padded[2*k*X_W +: X_W];
            wire [X_W-1:0] b = padded[(2*k+1)*X_W +: X_W];
            wire [T_W-1:0] a_wide = {(X_SIGNED != 0) && a[X_W-1], a};
            wire [T_W-1:0] b_wide = {(X_SIGNED != 0) && b[X_W-1], b};
            assign next[3*k*T_W +: T_W] = a_wide + b_wide;
            if (W_W == 1) begin : signs
                assign next[(3*k+1)*T_W +: 2*T_W] = {{T_W{1'b0}}, a_wide - b_wide};
            end else begin : bits
                assign next[(3*k+1)*T_W +: 2*T_W] = {b_wide, a_wide};
            end
        end
        for (t = 0; t < TURNS; t = t + 1) begin : turn
            reg [ALL_W-1:0] pairs_reg;
            if (t == 0) begin : first
                always @(posedge clk) if (en) pairs_reg <= next;
            end else if (t % 3 != 2) begin : later
                always @(posedge clk) if (en) pairs_reg <= turn[t-1].pairs_reg;
            end else begin : own
                (* keep *) always @(posedge clk) if (en) pairs_reg <= turn[t-1].pairs_reg;
            end
            assign pairs[t*ALL_W +: ALL_W] = pairs_reg;
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            hg_pair_row #(
                .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .EVERY(EVERY), .TURNS(TURNS)
            ) own (
                .clk(clk), .en(en), .pairs(pairs), .w(w[r*SIMD*W_W +: SIMD*W_W]), .sum(sums[r*SUM_W +: SUM_W])
            );
        end
    endgenerate
endmodule
`default_nettype wire
