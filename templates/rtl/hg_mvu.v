// hg_mvu: Folded matrix-vector unit: PE rows by SIMD columns per cycle.
//
// Purpose     acc[r] = sum over c of w[r][c] * x[c] for every vector x of the stream.
// Parameters  SIMD, PE        Columns and rows processed per cycle.
//             COL_FOLDS       Beats of a vector (columns / SIMD).
//             ROW_FOLDS       Output beats of a vector (rows / PE).
//             X_W, X_SIGNED   Codes, see hg_dot_pairs.
//             W_W             Bits of a weight.
//             MODE            0: two's complement weights. 1: bipolar weights, one bit each. 2: bipolar
//                             weights and binary codes; acc = agreements (popcount).
//             ACC_W           Bits of an accumulator (two's complement; unsigned in MODE 2). The caller
//                             proves that every final sum fits.
//             FILE            $readmemh file of ROW_FOLDS * COL_FOLDS words, in the order of use. Lane p,
//                             column s is at bit (p * SIMD + s) * W_W.
//             STYLE           Memory type, see hg_weights.
//             DSP             See hg_mac.
//             LOAD_UNIT       Number of the unit on the load bus, which writes its weights; -1: none.
//             EVERY           Pipeline registers in the adder trees, see hg_adder_tree.
//             WINDOWS         Vectors of an input beat. COL_FOLDS and ROW_FOLDS are 1 if WINDOWS > 1.
//             TAPS            Pieces of a vector. Equal pieces of all WINDOWS vectors are adjacent: element
//                             c of piece t of vector n is at (t * WINDOWS + n) * (SIMD / TAPS) + c.
// Latency     2 (hg_replay) + latency of hg_mac, counted from the last beat of a vector. One beat per cycle
//             without gaps.
// Contract    Exact modulo 2^ACC_W. Output beats: rows in order, first row in the low bits, vector by
//             vector.
`default_nettype none
module hg_mvu #(
    parameter integer SIMD      = 4,
    parameter integer PE        = 2,
    parameter integer COL_FOLDS = 2,
    parameter integer ROW_FOLDS = 2,
    parameter integer X_W       = 4,
    parameter integer X_SIGNED  = 0,
    parameter integer W_W       = 3,
    parameter integer MODE      = 0,
    parameter integer ACC_W     = 12,
    parameter         FILE      = "",
    parameter integer STYLE     = 0,
    parameter integer DSP       = 0,
    parameter integer EVERY     = 2,
    parameter integer LOAD_UNIT = -1,
    parameter integer WINDOWS   = 1,
    parameter integer TAPS      = 1
) (
    input  wire                        clk,
    input  wire                        rst,
    input  wire [WINDOWS*SIMD*X_W-1:0] s_data,
    input  wire                        s_valid,
    output wire                        s_ready,
    output wire [WINDOWS*PE*ACC_W-1:0] m_data,
    output wire                        m_valid,
    input  wire                        m_ready,
    input  wire [49:0]                 load
);
    localparam integer PIECE = SIMD / TAPS * X_W;
    localparam integer WORDS = ROW_FOLDS * COL_FOLDS;
    localparam integer AW = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam integer CONSTANT = (WORDS == 1 && LOAD_UNIT < 0) ? 1 : 0;

    wire [WINDOWS-1:0]          valid, free;
    wire                        en = m_ready || !m_valid;
    wire                        near = m_ready || free[0];  // en, for the stages upstream of the products
    wire [WINDOWS*SIMD*X_W-1:0] x;
    wire                        x_valid, x_last, x_able;
    wire [AW-1:0]               index;     // word number of the next beat
    wire [PE*SIMD*W_W-1:0]      w;

    hg_replay #(
        .WIDTH(WINDOWS*SIMD*X_W), .LENGTH(COL_FOLDS), .REPEAT(ROW_FOLDS)
    ) replay (
        .clk(clk), .rst(rst),
        .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
        .m_data(x), .m_last(x_last), .m_valid(x_valid), .m_ready(near),
        .able(x_able), .index(index)
    );

    // The weights of a beat are read at the edge at which it enters x.
    wire step;
    hg_enable #(.WAYS(2)) turn (
        .able(x_able), .ready({m_ready, free[0]}), .valid(x_valid), .step(step)
    );
    hg_weight_words #(
        .FILE(FILE), .WORDS(WORDS), .WIDTH(PE*SIMD*W_W), .STYLE(STYLE), .LOAD_UNIT(LOAD_UNIT)
    ) weights (
        .clk(clk), .rst(rst), .load(load), .en(near || !x_valid), .step(step), .addr(index), .data(w)
    );

    assign m_valid = valid[0];
    wire unused = &{1'b0, valid, free};
    genvar n, t;
    generate
        for (n = 0; n < WINDOWS; n = n + 1) begin : vector
            wire [SIMD*X_W-1:0] own;
            for (t = 0; t < TAPS; t = t + 1) begin : piece
                assign own[t*PIECE +: PIECE] = x[(t*WINDOWS+n)*PIECE +: PIECE];
            end
            if (MODE == 2) begin : counts
                hg_mac_counts #(
                    .SIMD(SIMD), .PE(PE), .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT),
                    .ALONE((COL_FOLDS == 1) ? 1 : 0)
                ) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(own[SIMD-1:0]), .x_valid(x_valid), .x_last(x_last), .w(w[PE*SIMD-1:0]),
                    .m_data(m_data[n*PE*ACC_W +: PE*ACC_W]), .m_valid(valid[n]), .m_free(free[n])
                );
            end else begin : products
                hg_mac #(
                    .SIMD(SIMD), .PE(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .MODE(MODE),
                    .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT), .DSP(DSP)
                ) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(own), .x_valid(x_valid), .x_last(x_last), .w(w),
                    .m_data(m_data[n*PE*ACC_W +: PE*ACC_W]), .m_valid(valid[n]), .m_free(free[n])
                );
            end
        end
    endgenerate
endmodule
`default_nettype wire
