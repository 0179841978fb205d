// hg_mvu_words: hg_mvu with weights that take only a few different words, without memory and products.
//
// Purpose     acc[r] = sum over c of w[r][c] * x[c] for every vector x of the stream, from DA tables of
//             sums of weights.
// Parameters  SIMD, PE, COL_FOLDS, ROW_FOLDS, ACC_W  See hg_mvu.
//             X_W, X_SIGNED, FIRST, T_W, S_W, EVERY, CUT  See hg_words_row.
//             FILE  Row r of PE rows has the file FILE_<r>.mem (four digits), see hg_words_row. A word number
//                   counts ROW_FOLDS * COL_FOLDS beats, in the order of use.
// Latency     4 (2 of hg_replay) + latency of hg_words_row, counted from the last beat of a vector. One beat
//             per cycle without gaps.
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
    // Enabled cycles of four DA tables, of the tree over them, and of the sum over the bits of the codes.
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer SPAN   = 4 * FIRST - 3;
    localparam integer FOUR   = (SIMD < 2 * FIRST) ? 1 : (CUT != 0 || STEP > 1) ? 2 : 3;
    localparam integer TREE   = ($clog2((SIMD + SPAN - 1) / SPAN) + STEP - 1) / STEP;
    localparam integer MERGE  = ($clog2(X_W) + STEP - 1) / STEP;
    localparam integer STAGES = 1 + CUT + FOUR + TREE + MERGE;
    localparam integer SUM_W  = X_W + S_W;

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

    // Paths from memories and ready chains end here.
    reg  [SIMD*X_W-1:0] x_reg;
    reg  [AW-1:0]       word_of_x_reg;
    always @(posedge clk) if (en) {x_reg, word_of_x_reg} <= {x, word_reg};

    wire [SIMD*X_W-1:0] x_late;
    wire [3*AW-1:0]     words;
    wire [PE*SUM_W-1:0] sums;
    hg_words_delay #(
        .SIMD(SIMD), .X_W(X_W), .ADDR_W(AW), .FIRST(FIRST), .EVERY(EVERY), .CUT(CUT)
    ) turns (
        .clk(clk), .en(en), .x(x_reg), .word(word_of_x_reg), .x_late(x_late), .words(words)
    );
    genvar r;
    generate
        for (r = 0; r < PE; r = r + 1) begin : row
            localparam integer D3 = 48 + (r / 1000) % 10, D2 = 48 + (r / 100) % 10, D1 = 48 + (r / 10) % 10;
            localparam integer D0 = 48 + r % 10;
            hg_words_row #(
                .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .ADDR_W(AW), .FIRST(FIRST), .T_W(T_W),
                .S_W(S_W), .EVERY(EVERY), .CUT(CUT),
                .FILE(FILE == "" ? "" : {FILE, "_", D3[7:0], D2[7:0], D1[7:0], D0[7:0], ".mem"})
            ) dot (
                .clk(clk), .en(en), .x(x_late), .words(words), .sum(sums[r*SUM_W +: SUM_W])
            );
        end
    endgenerate

    hg_totals #(.PE(PE), .SUM_W(SUM_W), .ACC_W(ACC_W), .STAGES(STAGES)) totals (
        .clk(clk), .rst(rst), .en(en), .en_totals(near),
        .x_valid(x_valid), .x_last(x_last), .sums(sums),
        .m_data(m_data), .m_valid(m_valid), .m_free(free)
    );
endmodule
`default_nettype wire
