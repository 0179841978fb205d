// hg_mac: Rows of dot products of the same codes, each summed over the words of a reduction.
//
// Purpose     Arithmetic of hg_mvu, hg_conv, hg_dwconv, hg_dwmvu and hg_dynmvu, except for agreements, see
//             hg_mac_counts. It chooses hg_mac_chains or hg_mac_products.
// Parameters  SIMD, PE        Columns and rows processed per cycle.
//             X_W, X_SIGNED   Codes, see hg_dot_pairs.
//             W_W             Bits of a weight.
//             MODE            0: two's complement weights. 1: bipolar weights, one bit each.
//             ACC_W, EVERY    See hg_mvu.
//             CONSTANT        1: w never changes.
//             DSP             0: products in LUTs. Otherwise: products in DSP blocks with DSP bits in one
//                             factor; from 25 bits on the blocks form chains. Rows whose products fit side
//                             by side share a block.
// Latency     As the chosen module, from a reduction's last word.
// Contract    Exact modulo 2^ACC_W. All registers advance on `en`. The user must stall it while m_valid is
//             not accepted. Output m_free is a duplicate register of !m_valid for low-fan-out enables
//             upstream. Input `en_totals` equals en. Lane p, column s of w is at bit (p * SIMD + s) * W_W.
`default_nettype none
module hg_mac #(
    parameter integer SIMD     = 4,
    parameter integer PE       = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer MODE     = 0,
    parameter integer ACC_W    = 12,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer DSP      = 0
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
    // Weights as the dot products expect them: a one-bit weight of 0 or -1 would mean something else there.
    localparam integer V_W   = (MODE == 0 && W_W == 1) ? 2 : W_W;
    // Rows that share a DSP block, and the products that it may sum before they are separated.
    localparam integer FIELD = X_W + V_W;
    localparam integer FIT   = (DSP > V_W + 1) ? 1 + (DSP - V_W - 1) / FIELD : 1;
    localparam integer MOST  = (MODE != 0) ? 1 : (FIT > 3) ? 3 : FIT;
    localparam integer SHARE = (PE + MOST - 1) / MOST;
    localparam integer ROWS  = (PE + SHARE - 1) / SHARE;
    localparam integer SPARE = (ROWS > 1) ? (DSP - V_W - 1) / (ROWS - 1) - FIELD : 0;
    localparam integer GUARD = (SPARE > 2) ? 2 : SPARE;

    wire [PE*SIMD*V_W-1:0] v;
    genvar i;
    generate
        if (V_W == W_W) begin : same
            assign v = w;
        end else begin : signed_bit
            for (i = 0; i < PE * SIMD; i = i + 1) begin : weight
                assign v[i*V_W +: V_W] = {V_W{w[i]}};
            end
        end
        if (MODE == 0 && DSP >= 25) begin : chains
            hg_mac_chains #(
                .SIMD(SIMD), .PE(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W), .ACC_W(ACC_W),
                .EVERY(EVERY), .CONSTANT(CONSTANT), .ROWS(ROWS), .GUARD(GUARD)
            ) mac (
                .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
                .x(x), .x_valid(x_valid), .x_last(x_last), .w(v),
                .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
            );
        end else begin : multiplied
            hg_mac_products #(
                .SIMD(SIMD), .PE(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W), .ACC_W(ACC_W),
                .EVERY(EVERY), .CONSTANT(CONSTANT), .ROWS((DSP == 0) ? 0 : ROWS), .GUARD(GUARD)
            ) mac (
                .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
                .x(x), .x_valid(x_valid), .x_last(x_last), .w(v),
                .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
            );
        end
    endgenerate
endmodule
`default_nettype wire
