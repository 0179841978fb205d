// hg_dynmvu: folded products of a matrix and vectors that both come in streams.
//
// Purpose     m[p] = sum over FOLDS beats and SIMD lanes s of x[s] * w[p][s], where
//             x = a * 2^A_SHIFT + A_OFFSET and w = b * 2^B_SHIFT + B_OFFSET: PE sums by SIMD products a cycle
// Parameters  SIMD, PE      products of a sum, and sums, worked on in a cycle
//             FOLDS         beats of a sum
//             ROWS_FIRST    lane of b for sum p, product s: 1: p * SIMD + s; 0: s * PE + p
//             A_W, A_SIGNED codes of a: bits, 1: two's complement, 0: unsigned
//             A_SHIFT       code by which power of two, before
//             A_OFFSET      this is added
//             X_W, X_SIGNED what comes of a; the caller proves that it fits
//             B_W, B_SIGNED, B_SHIFT, B_OFFSET  the same of b
//             W_W           what comes of b, two's complement; the caller proves that it fits
//             ACC_W         bits of a sum, two's complement; the caller proves that it fits
//             EVERY         pipeline registers in the adder trees, see hg_adder_tree
//             DSP           see hg_mac
// Latency     that of hg_mac from the last beats of a sum; one beat a cycle. Both beats are taken in the
//             same cycle; all registers advance in cycles in which the output is free or taken, else they
//             stand still. a_ready depends on b_valid and b_ready on a_valid.
// Contract    exact modulo 2^ACC_W. The beats that come at once belong together: SIMD codes of a for all
//             sums, and PE * SIMD of b. Sums come in the order of their beats, m[0] in the low bits.
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
    wire near = m_ready || free;  // en, for what is in front
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
