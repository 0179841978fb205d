// hg_mac_chains: hg_mac for products in chains of DSP blocks.
//
// Purpose     Rows of dot products in hg_dot_chain, summed over the words of a reduction.
// Parameters  SIMD, PE, X_W, X_SIGNED, ACC_W, EVERY, CONSTANT  See hg_mac.
//             W_W          Bits of a weight, two's complement, at least 2.
//             ROWS, GUARD  Rows that share a block, and their guard bits, see hg_chain.
// Latency     2 enabled cycles more than hg_dot_chain, from a reduction's last word.
// Contract    As hg_mac.
`default_nettype none
module hg_mac_chains #(
    parameter integer SIMD     = 4,
    parameter integer PE       = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 4,
    parameter integer ACC_W    = 12,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer ROWS     = 2,
    parameter integer GUARD    = 2
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    en,
    input  wire                    en_totals,
    input  wire [SIMD*X_W-1:0]        x,
    input  wire                    x_valid,
    input  wire                    x_last,
    input  wire [PE*SIMD*W_W-1:0]     w,
    output wire [PE*ACC_W-1:0]     m_data,
    output wire                    m_valid,
    output wire                    m_free
);
    // The longest chain, see hg_dot_chain, and the tree over the chains.
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer REACH  = (ROWS == 1) ? 8 : (X_SIGNED != 0) ? (8 << GUARD) - 1 : 4 << GUARD;
    localparam integer MOST   = (REACH > 8) ? 8 : REACH;
    localparam integer CHAINS = (SIMD + MOST - 1) / MOST;
    localparam integer LONG   = (SIMD + CHAINS - 1) / CHAINS;
    localparam integer TREE   = ($clog2((SIMD + LONG - 1) / LONG) + STEP - 1) / STEP;
    localparam integer STAGES = ((ROWS == 1) ? 2 : 4) + LONG + TREE;
    localparam integer SUM_W  = X_W + W_W + 1 + $clog2(SIMD);

    reg  [SIMD*X_W-1:0] x_reg;  // paths from memories and ready chains end here
    wire [PE*SUM_W-1:0] sums;
    always @(posedge clk) if (en) x_reg <= x;
    hg_dot_chain #(
        .SIMD(SIMD), .ROWS(PE), .EACH(ROWS), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W),
        .GUARD(GUARD), .CONSTANT(CONSTANT), .EVERY(EVERY)
    ) dot (.clk(clk), .en(en), .x(x_reg), .w(w), .sums(sums));

    hg_totals #(.PE(PE), .SUM_W(SUM_W), .ACC_W(ACC_W), .STAGES(STAGES)) totals (
        .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
        .x_valid(x_valid), .x_last(x_last), .sums(sums),
        .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
    );
endmodule
`default_nettype wire
