// hg_mvu_words: hg_mvu with weights that take only a few different words, without memory and products.
//
// Purpose     acc[r] = sum over c of w[r][c] * x[c] for every vector x of the stream, from DA tables of
//             sums of weights.
// Parameters  SIMD, PE, COL_FOLDS, ROW_FOLDS, ACC_W  See hg_mvu.
//             X_W, X_SIGNED, FIRST, T_W, S_W, EVERY, CUT  See hg_words_row.
//             FILE  File name stem of the DA tables of each of PE rows, see hg_words_row. A word number
//                   counts ROW_FOLDS * COL_FOLDS beats, in the order of use.
// Latency     2 (hg_replay) + latency of hg_mac_words, counted from the last beat of a vector. One beat per
//             cycle without gaps.
// Contract    As hg_mvu.
`default_nettype none
module hg_mvu_words #(
    parameter integer SIMD      = 4,
    parameter integer PE        = 2,
    parameter integer COL_FOLDS = 2,
    parameter integer ROW_FOLDS = 2,
    parameter integer X_W       = 4,
    parameter integer X_SIGNED  = 0,
    parameter integer FIRST     = 4,
    parameter integer T_W       = 6,
    parameter integer S_W       = 8,
    parameter integer ACC_W     = 12,
    parameter integer EVERY     = 2,
    parameter integer CUT       = 0,
    parameter         FILE      = ""
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [SIMD*X_W-1:0] s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [PE*ACC_W-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready
);
    localparam integer WORDS = ROW_FOLDS * COL_FOLDS;
    localparam integer AW    = (WORDS <= 1) ? 1 : $clog2(WORDS);

    wire                free;
    wire                en = m_ready || !m_valid;
    wire                near = m_ready || free;  // en, for the stages upstream of the sums
    wire [SIMD*X_W-1:0] x;
    wire                x_valid, x_last, unused_able;
    wire [AW-1:0]       index;     // word number of the next beat
    reg  [AW-1:0]       word_reg;  // word number of x
    always @(posedge clk) if (near || !x_valid) word_reg <= index;

    hg_replay #(
        .WIDTH(SIMD*X_W), .LENGTH(COL_FOLDS), .REPEAT(ROW_FOLDS)
    ) replay (
        .clk(clk), .rst(rst),
        .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
        .m_data(x), .m_last(x_last), .m_valid(x_valid), .m_ready(near),
        .able(unused_able), .index(index)
    );
    hg_mac_words #(
        .SIMD(SIMD), .PE(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .ADDR_W(AW), .FIRST(FIRST), .T_W(T_W),
        .S_W(S_W), .ACC_W(ACC_W), .EVERY(EVERY), .CUT(CUT), .FILE(FILE)
    ) mac (
        .clk(clk), .rst(rst), .en(en), .en_totals(near),
        .x(x), .x_valid(x_valid), .x_last(x_last), .word(word_reg),
        .m_data(m_data), .m_valid(m_valid), .m_free(free)
    );
endmodule
`default_nettype wire
