// hg_dwmvu: Grouped and depthwise convolution of whole windows: PE sums at once.
//
// Purpose     Follows hg_unfold. A beat holds TAPS taps of PE / ROWS groups of COLUMNS elements. Every beat
//             gives ROWS sums per group over its elements of all taps. Beat i uses word i mod FOLDS of the
//             weights.
// Parameters  PE             Sums of a beat, a multiple of ROWS.
//             TAPS           Taps of a window.
//             FOLDS          Words of weights.
//             X_W, X_SIGNED  Codes, see hg_dot_pairs.
//             W_W, MODE      See hg_mac.
//             ACC_W          Bits of a sum. The caller proves that every sum fits.
//             FILE           $readmemh file of FOLDS words. For sum p, the weight of tap t, column c is at
//                            bit ((p * TAPS + t) * COLUMNS + c) * W_W.
//             STYLE          Memory type, see hg_weights.
//             DSP            See hg_mac.
//             EVERY          Pipeline registers in the adder trees, see hg_adder_tree.
//             LOAD_UNIT      Number of the unit on the load bus, which writes its weights; -1: none.
//             ROWS, COLUMNS  Sums and elements of a group; 1 of each for depthwise.
// Latency     1 + latency of hg_mac in enabled cycles (m_ready || !m_valid); one beat per cycle.
// Contract    Exact modulo 2^ACC_W. Tap t, group g, column c of s_data is at bit ((t * PE / ROWS + g) *
//             COLUMNS + c) * X_W. Row r of group g of m_data is at bit (g * ROWS + r) * ACC_W.
`default_nettype none
module hg_dwmvu #(
    parameter integer PE        = 2,
    parameter integer TAPS      = 9,
    parameter integer FOLDS     = 2,
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
    parameter integer ROWS      = 1,
    parameter integer COLUMNS   = 1
) (
    input  wire                                clk,
    input  wire                                rst,
    input  wire [TAPS*PE/ROWS*COLUMNS*X_W-1:0] s_data,
    input  wire                                s_valid,
    output wire                                s_ready,
    output wire [PE*ACC_W-1:0]                 m_data,
    output wire                                m_valid,
    input  wire                                m_ready,
    input  wire [49:0]                         load
);
    localparam integer GROUPS = PE / ROWS, PIECE = COLUMNS * X_W, SIMD = TAPS * COLUMNS;
    localparam integer AW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
    localparam integer CONSTANT = (FOLDS == 1 && LOAD_UNIT < 0) ? 1 : 0;

    wire en = m_ready || !m_valid;
    wire [PE-1:0] valid, free;
    wire near = m_ready || free[0];  // en, for the stages upstream
    assign s_ready = near;

    // The weights of a beat are read at the edge at which it is accepted.
    reg [TAPS*GROUPS*PIECE-1:0] x_reg;
    reg                         x_valid_reg;
    always @(posedge clk) begin
        if (en) begin
            x_reg       <= s_data;
            x_valid_reg <= s_valid;
        end
        if (rst) x_valid_reg <= 1'b0;
    end

    wire [AW-1:0]          turn, unused_next;
    wire [PE*SIMD*W_W-1:0] w;
    wire                   step = near && s_valid;
    hg_index #(.N(FOLDS)) turns (
        .clk(clk), .rst(rst), .step(step), .index(turn), .next(unused_next)
    );

    hg_weight_words #(
        .FILE(FILE), .WORDS(FOLDS), .WIDTH(PE*SIMD*W_W), .STYLE(STYLE), .LOAD_UNIT(LOAD_UNIT)
    ) weights (
        .clk(clk), .rst(rst), .load(load), .en(en), .step(step), .addr(turn), .data(w)
    );

    assign m_valid = valid[0];
    wire unused = &{1'b0, valid, free};
    genvar p, t;
    generate
        for (p = 0; p < PE; p = p + 1) begin : sum
            wire [SIMD*X_W-1:0] x;
            for (t = 0; t < TAPS; t = t + 1) begin : tap
                assign x[t*PIECE +: PIECE] = x_reg[(t*GROUPS+p/ROWS)*PIECE +: PIECE];
            end
            wire [SIMD*W_W-1:0] own = w[p*SIMD*W_W +: SIMD*W_W];
            if (MODE == 2) begin : counts
                hg_mac_counts #(
                    .SIMD(SIMD), .PE(1), .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT), .ALONE(1)
                ) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(x[SIMD-1:0]), .x_valid(x_valid_reg), .x_last(1'b1), .w(own[SIMD-1:0]),
                    .m_data(m_data[p*ACC_W +: ACC_W]), .m_valid(valid[p]), .m_free(free[p])
                );
            end else begin : products
                hg_mac #(
                    .SIMD(SIMD), .PE(1), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .MODE(MODE),
                    .ACC_W(ACC_W), .EVERY(EVERY), .CONSTANT(CONSTANT), .DSP(DSP)
                ) mac (
                    .clk(clk), .rst(rst), .en(en), .en_totals(near),
                    .x(x), .x_valid(x_valid_reg), .x_last(1'b1), .w(own),
                    .m_data(m_data[p*ACC_W +: ACC_W]), .m_valid(valid[p]), .m_free(free[p])
                );
            end
        end
    endgenerate
endmodule
`default_nettype wire
