// hg_dot_chain: ROWS dot products of the same SIMD codes, in cascaded DSP blocks.
//
// Purpose     Rows of hg_mac_chains in blocks that have registers and an adder after the product, as on
//             Xilinx devices. Each block adds its product to the sum of the previous block, one cycle later.
// Parameters  SIMD      Columns.
//             ROWS      Number of rows.
//             EACH      Rows that share a block, see hg_chain.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w, two's complement, at least 2.
//             GUARD     See hg_chain.
//             CONSTANT  1: w never changes.
//             EVERY     Pipeline registers, see hg_adder_tree. Here 0 means 1.
// Latency     From x: 1, or 3 with EACH > 1; plus a cycle for each of up to 8 blocks of a chain; plus
//             ceil(log2(chains)) / EVERY of a tree, rounded up. All registers advance on en. Each w arrives
//             one enabled cycle before its x.
// Contract    Exact two's complement sums of X_W + W_W + 1 + ceil(log2(SIMD)) bits. Row r, column s of w is
//             at bit (r * SIMD + s) * W_W. All chains have equal length except the last one, which begins
//             later.
`default_nettype none
module hg_dot_chain #(
    parameter integer SIMD     = 4,
    parameter integer ROWS     = 2,
    parameter integer EACH     = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 4,
    parameter integer GUARD    = 2,
    parameter integer CONSTANT = 0,
    parameter integer EVERY    = 2
) (
    input  wire                                     clk,
    input  wire                                     en,
    input  wire [SIMD*X_W-1:0]                      x,
    input  wire [ROWS*SIMD*W_W-1:0]                 w,
    output wire [ROWS*(X_W+W_W+1+$clog2(SIMD))-1:0] sums
);
    // Products whose sum fits a field and two more bits. All but the most negative signed code need a bit
    // less.
    localparam integer REACH  = (EACH == 1) ? 8 : (X_SIGNED != 0) ? (8 << GUARD) - 1 : 4 << GUARD;
    localparam integer MOST   = (REACH > 8) ? 8 : REACH;
    localparam integer CHAINS = (SIMD + MOST - 1) / MOST;
    localparam integer LONG   = (SIMD + CHAINS - 1) / CHAINS;
    localparam integer COUNT  = (SIMD + LONG - 1) / LONG;
    localparam integer PACKS  = (ROWS + EACH - 1) / EACH;
    localparam integer C_W    = X_W + W_W + 3;
    localparam integer S_W    = C_W + $clog2(COUNT);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;

    wire [ROWS*COUNT*C_W-1:0] parts;
    genvar c, k, p, r;
    generate
        for (c = 0; c < COUNT; c = c + 1) begin : chain
            localparam integer OWN   = (SIMD - c*LONG < LONG) ? SIMD - c*LONG : LONG;
            localparam integer START = LONG - OWN;
            // Codes delayed to match their blocks, except for the registers of the blocks. All rows share
            // them.
            wire [OWN*X_W-1:0] late;
            for (k = 0; k < OWN; k = k + 1) begin : column
                localparam integer PLACE = START + k;
                hg_delay #(.WIDTH(X_W), .CYCLES((PLACE > 0) ? PLACE - 1 : 0)) wait_for (
                    .clk(clk), .en(en), .d(x[(c*LONG+k)*X_W +: X_W]), .q(late[k*X_W +: X_W])
                );
            end
            for (p = 0; p < PACKS; p = p + 1) begin : pack
                localparam integer HAS = (ROWS - p*EACH < EACH) ? ROWS - p*EACH : EACH;
                wire [HAS*OWN*W_W-1:0] ws;
                wire [HAS*C_W-1:0]     own;
                for (r = 0; r < HAS; r = r + 1) begin : row
                    assign ws[r*OWN*W_W +: OWN*W_W] = w[((p*EACH+r)*SIMD+c*LONG)*W_W +: OWN*W_W];
                    assign parts[((p*EACH+r)*COUNT+c)*C_W +: C_W] = own[r*C_W +: C_W];
                end
                hg_chain #(
                    .COUNT(OWN), .START(START), .ROWS(HAS), .SHARED((EACH > 1) ? 1 : 0), .X_W(X_W),
                    .X_SIGNED(X_SIGNED), .W_W(W_W), .GUARD(GUARD), .CONSTANT(CONSTANT)
                ) blocks (
                    .clk(clk), .en(en), .x(late), .w(ws), .sums(own)
                );
            end
        end
        for (r = 0; r < ROWS; r = r + 1) begin : row
            wire [S_W-1:0]       total;
            wire [S_W+OUT_W-1:0] extended = {{OUT_W{total[S_W-1]}}, total};
            hg_adder_tree #(
                .N(COUNT), .IN_W(C_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
            ) tree (
                .clk(clk), .en(en), .terms(parts[r*COUNT*C_W +: COUNT*C_W]), .sum(total)
            );
            assign sums[r*OUT_W +: OUT_W] = extended[OUT_W-1:0];
            wire unused_row = &{1'b0, extended};
        end
    endgenerate
endmodule
`default_nettype wire
