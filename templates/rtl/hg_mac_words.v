// hg_mac_words: Rows of dot products with weights of a few words, each summed over a reduction.
//
// Purpose     Arithmetic of hg_mvu_words: hg_dot_words, summed over the words of a reduction.
// Parameters  SIMD, PE, ACC_W  See hg_mac.
//             X_W, X_SIGNED, FIRST, T_W, S_W, EVERY, CUT, FILE  See hg_dot_words.
//             ADDR_W           Bits of the number of a word.
// Latency     2 enabled cycles more than hg_dot_words, from a reduction's last word.
// Contract    As hg_mac, with the number of a word instead of its weights.
`default_nettype none
module hg_mac_words #(
    parameter integer SIMD     = 4,
    parameter integer PE       = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer ADDR_W   = 2,
    parameter integer FIRST    = 4,
    parameter integer T_W      = 6,
    parameter integer S_W      = 8,
    parameter integer ACC_W    = 12,
    parameter integer EVERY    = 2,
    parameter integer CUT      = 0,
    parameter         FILE     = ""
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    en,
    input  wire                    en_totals,
    input  wire [SIMD*X_W-1:0]        x,
    input  wire                    x_valid,
    input  wire                    x_last,
    input  wire [ADDR_W-1:0]       word,
    output wire [PE*ACC_W-1:0]     m_data,
    output wire                    m_valid,
    output wire                    m_free
);
    // Enabled cycles of four DA tables, of the tree over them, and of the sum over the bits of the codes.
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer SPAN   = 4 * FIRST - 3;
    localparam integer FOUR   = (SIMD < 2 * FIRST) ? 1 : (CUT != 0 || STEP > 1) ? 2 : 3;
    localparam integer TREE   = ($clog2((SIMD + SPAN - 1) / SPAN) + STEP - 1) / STEP;
    localparam integer MERGE  = ($clog2(X_W) + STEP - 1) / STEP;
    localparam integer STAGES = 1 + CUT + FOUR + TREE + MERGE;
    localparam integer SUM_W  = X_W + S_W;

    // Paths from memories and ready chains end here.
    reg  [SIMD*X_W-1:0] x_reg;
    reg  [ADDR_W-1:0]   word_reg;
    wire [PE*SUM_W-1:0] sums;
    always @(posedge clk) if (en) {x_reg, word_reg} <= {x, word};
    hg_dot_words #(
        .ROWS(PE), .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .ADDR_W(ADDR_W), .FIRST(FIRST),
        .T_W(T_W), .S_W(S_W), .EVERY(EVERY), .CUT(CUT), .FILE(FILE)
    ) dot (.clk(clk), .en(en), .x(x_reg), .word(word_reg), .sums(sums));

    hg_totals #(.PE(PE), .SUM_W(SUM_W), .ACC_W(ACC_W), .STAGES(STAGES)) totals (
        .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
        .x_valid(x_valid), .x_last(x_last), .sums(sums),
        .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
    );
endmodule
`default_nettype wire
