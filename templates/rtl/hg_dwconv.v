// hg_dwconv: Depthwise convolution unit: each of PE elements has its own weight.
//
// Purpose     For every input window (see hg_window), group g < GROUPS and r < REPEAT, emits a beat of PE
//             sums over the kernel, element by element.
// Parameters  PE              Elements of a word, processed per cycle.
//             HEIGHT, WIDTH, KH, KW, SH, SW, DH, DW, PT, PL, OUT_H, OUT_W, GROUPS, REPEAT, DEPTH, PAD: See
//                             hg_window. A word is PE codes of X_W bits, a pixel GROUPS words.
//             X_W, X_SIGNED   Codes, see hg_dot_pairs.
//             W_W, MODE, ACC_W, EVERY  See hg_mac. The caller proves that every final sum fits.
//             FILE            $readmemh file of GROUPS * REPEAT * KH * KW words, in the order of use. Lane
//                             p is at bit p * W_W.
//             STYLE           Memory type, see hg_weights.
//             DSP             See hg_mac.
//             LOAD_UNIT       Number of the unit on the load bus, which writes its weights; -1: none.
// Latency     2 + latency of hg_mac, in enabled cycles (m_ready || !m_valid). It counts from the issue of
//             the last word of a sum (hg_window) to its beat. One word per cycle.
// Contract    Exact modulo 2^ACC_W. Beats of a window: g outer, r inner. The first element is in the low
//             bits.
`default_nettype none
module hg_dwconv #(
    parameter integer PE        = 2,
    parameter integer HEIGHT    = 4,
    parameter integer WIDTH     = 5,
    parameter integer KH        = 3,
    parameter integer KW        = 3,
    parameter integer SH        = 1,
    parameter integer SW        = 1,
    parameter integer DH        = 1,
    parameter integer DW        = 1,
    parameter integer PT        = 1,
    parameter integer PL        = 1,
    parameter integer OUT_H     = 4,
    parameter integer OUT_W     = 5,
    parameter integer GROUPS    = 2,
    parameter integer REPEAT    = 2,
    parameter integer DEPTH     = 26,
    parameter integer X_W       = 4,
    parameter [X_W-1:0] PAD     = 0,
    parameter integer X_SIGNED  = 0,
    parameter integer W_W       = 3,
    parameter integer MODE      = 0,
    parameter integer ACC_W     = 12,
    parameter         FILE      = "",
    parameter integer STYLE     = 0,
    parameter integer DSP       = 0,
    parameter integer EVERY     = 2,
    parameter integer LOAD_UNIT = -1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [PE*X_W-1:0]   s_data,
    input  wire                s_valid,
    output wire                s_ready,
    output wire [PE*ACC_W-1:0] m_data,
    output wire                m_valid,
    input  wire                m_ready,
    input  wire [49:0]         load
);
    localparam integer WORDS = GROUPS * REPEAT * KH * KW;
    localparam integer AW = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam integer CONSTANT = (WORDS == 1 && LOAD_UNIT < 0) ? 1 : 0;

    wire              en = m_ready || !m_valid;
    wire [PE-1:0]     valid, free;
    wire              near = m_ready || free[0];  // en, for the stages upstream of the products
    wire [PE*X_W-1:0] x;
    wire [PE*W_W-1:0] w;
    wire              next_valid, x_valid, x_last;

    hg_window #(
        .UNIT(X_W), .LANES(PE), .HEIGHT(HEIGHT), .WIDTH(WIDTH), .KH(KH), .KW(KW), .SH(SH), .SW(SW),
        .DH(DH), .DW(DW), .PT(PT), .PL(PL), .OUT_H(OUT_H), .OUT_W(OUT_W), .GROUPS(GROUPS),
        .FOLDS(1), .REPEAT(REPEAT), .DEPTH(DEPTH), .PAD(PAD),
        .LATE((EVERY == 1) ? 1 : 0)
    ) window (
        .clk(clk), .rst(rst), .en(near), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
        .next_valid(next_valid), .x(x), .x_valid(x_valid), .x_last(x_last)
    );

    wire [AW-1:0] turn, unused_next;
    wire          step = near && next_valid;
    hg_index #(.N(WORDS)) turns (
        .clk(clk), .rst(rst), .step(step), .index(turn), .next(unused_next)
    );

    // The weights of a word are read at the edge at which the word enters x.
    hg_weight_words #(
        .FILE(FILE), .WORDS(WORDS), .WIDTH(PE*W_W), .STYLE(STYLE), .LOAD_UNIT(LOAD_UNIT)
    ) weights (
        .clk(clk), .rst(rst), .load(load), .en(near), .step(step), .addr(turn), .data(w)
    );

    assign m_valid = valid[0];
    wire unused = &{1'b0, valid, free};
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : element
            if (MODE == 2) begin : counts
                hg_mac_counts #(.SIMD(1), .PE(1), .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT)) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(x[p*X_W +: 1]), .x_valid(x_valid), .x_last(x_last), .w(w[p*W_W +: 1]),
                    .m_data(m_data[p*ACC_W +: ACC_W]), .m_valid(valid[p]), .m_free(free[p])
                );
            end else begin : products
                hg_mac #(
                    .SIMD(1), .PE(1), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .MODE(MODE),
                    .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT), .DSP(DSP)
                ) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(x[p*X_W +: X_W]), .x_valid(x_valid), .x_last(x_last), .w(w[p*W_W +: W_W]),
                    .m_data(m_data[p*ACC_W +: ACC_W]), .m_valid(valid[p]), .m_free(free[p])
                );
            end
        end
    endgenerate
endmodule
`default_nettype wire
