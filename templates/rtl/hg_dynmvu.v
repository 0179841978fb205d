// hg_dynmvu: Folded products of a matrix and vectors that both arrive as streams.
//
// Purpose     m[p] = sum over FOLDS beats and SIMD lanes s of x[s] * w[p][s]. Here x = a * 2^A_SHIFT +
//             A_OFFSET and w = b * 2^B_SHIFT + B_OFFSET. Computes PE sums by SIMD products per cycle.
// Parameters  SIMD, PE        Products per sum, and sums, processed per cycle.
//             FOLDS           Beats of a sum.
//             ROWS_FIRST      Lane of b for sum p, product s. 1: p * SIMD + s; 0: s * PE + p.
//             A_W, A_SIGNED   Bits of a code of a; 1: two's complement, 0: unsigned.
//             A_SHIFT         Power of two by which a code is multiplied, before
//             A_OFFSET        this constant is added.
//             X_W, X_SIGNED   Type of the resulting x. The caller proves that it fits.
//             B_W, B_SIGNED, B_SHIFT, B_OFFSET  The same for b.
//             W_W             Bits of the resulting w, two's complement. The caller proves that it fits.
//             ACC_W           Bits of a sum, two's complement. The caller proves that it fits.
//             EVERY           Pipeline registers in the adder trees, see hg_adder_tree.
//             DSP             See hg_mac.
// Latency     The latency of hg_mac from the last beats of a sum; one beat per cycle. Both beats are
//             consumed in the same cycle. All registers advance in cycles in which the output is free or
//             accepted; otherwise they stall. Signal a_ready depends on b_valid, and b_ready on a_valid.
// Contract    Exact modulo 2^ACC_W. Beats that arrive together belong together: SIMD codes of a for all
//             sums, and PE * SIMD codes of b. Sums are emitted in the order of their beats, m[0] in the low
//             bits.
`default_nettype none
module hg_dynmvu #(
    parameter integer       SIMD       = 2,
    parameter integer       PE         = 2,
    parameter integer       FOLDS      = 2,
    parameter integer       ROWS_FIRST = 1,
    parameter integer       A_W        = 4,
    parameter integer       A_SIGNED   = 1,
    parameter integer       A_SHIFT    = 0,
    parameter signed [31:0] A_OFFSET   = 0,
    parameter integer       X_W        = 4,
    parameter integer       X_SIGNED   = 1,
    parameter integer       B_W        = 4,
    parameter integer       B_SIGNED   = 1,
    parameter integer       B_SHIFT    = 0,
    parameter signed [31:0] B_OFFSET   = 0,
    parameter integer       W_W        = 4,
    parameter integer       ACC_W      = 12,
    parameter integer       EVERY      = 2,
    parameter integer       DSP        = 0
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [SIMD*A_W-1:0]    a_data,
    input  wire                   a_valid,
    output wire                   a_ready,
    input  wire [PE*SIMD*B_W-1:0] b_data,
    input  wire                   b_valid,
    output wire                   b_ready,
    output wire [PE*ACC_W-1:0]    m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam [FW-1:0] LAST = FOLDS[FW-1:0] - 1'b1;
    localparam signed [63:0] A_ADDED = {{32{A_OFFSET[31]}}, A_OFFSET};
    localparam signed [63:0] B_ADDED = {{32{B_OFFSET[31]}}, B_OFFSET};

    wire en   = m_ready || !m_valid;
    wire free;
    wire near = m_ready || free;  // en, for the stages upstream
    wire both = a_valid && b_valid;

    assign a_ready = near && b_valid;
    assign b_ready = near && a_valid;

    reg  [FW-1:0] fold_reg;
    wire          last = fold_reg == LAST;
    always @(posedge clk) begin
        if (near && both) fold_reg <= last ? {FW{1'b0}} : fold_reg + 1'b1;
        if (rst) fold_reg <= {FW{1'b0}};
    end

    wire [SIMD*X_W-1:0]    x;
    wire [PE*SIMD*W_W-1:0] w;
    genvar s, p;
    generate
        for (s = 0; s < SIMD; s = s + 1) begin : left
            wire [A_W-1:0]     code = a_data[s*A_W +: A_W];
            wire               sign = (A_SIGNED != 0) && code[A_W-1];
            wire [X_W+A_W-1:0] wide = {{X_W{sign}}, code} << A_SHIFT;
            assign x[s*X_W +: X_W] = wide[X_W-1:0] + A_ADDED[X_W-1:0];
            wire unused_left = &{1'b0, wide};
            for (p = 0; p < PE; p = p + 1) begin : right
                localparam integer FROM = (ROWS_FIRST != 0) ? p * SIMD + s : s * PE + p;
                wire [B_W-1:0]     factor = b_data[FROM*B_W +: B_W];
                wire               minus  = (B_SIGNED != 0) && factor[B_W-1];
                wire [W_W+B_W-1:0] far    = {{W_W{minus}}, factor} << B_SHIFT;
                assign w[(p*SIMD+s)*W_W +: W_W] = far[W_W-1:0] + B_ADDED[W_W-1:0];
                wire unused_right = &{1'b0, far};
            end
        end
    endgenerate
    wire unused = &{1'b0, A_ADDED, B_ADDED};

    hg_mac #(
        .SIMD(SIMD), .PE(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .ACC_W(ACC_W),
        .EVERY(EVERY), .DSP(DSP)
    ) mac (
        .clk(clk), .rst(rst), .en(en), .en_totals(near),
        .x(x), .x_valid(both), .x_last(last), .w(w),
        .m_data(m_data), .m_valid(m_valid), .m_free(free)
    );
endmodule
`default_nettype wire
