// hg_mvu: folded matrix-vector unit, PE rows by SIMD columns a cycle.
//
// Purpose     acc[r] = sum over c of w[r][c] * x[c] for every vector x of the stream.
// Parameters  SIMD, PE      columns and rows worked on in a cycle
//             COL_FOLDS     beats of a vector (columns / SIMD)
//             ROW_FOLDS     output beats of a vector (rows / PE)
//             X_W, X_SIGNED codes, see hg_dot
//             W_W           bits of a weight
//             MODE          0: two's complement weights; 1: bipolar weights, one bit each;
//                           2: bipolar weights and binary codes, acc = agreements (popcount)
//             ACC_W         bits of an accumulator (two's complement; unsigned in MODE 2); the
//                           caller proves that every final sum fits
//             FILE          $readmemh file of ROW_FOLDS * COL_FOLDS words, in the order of use;
//                           lane p, column s at bit (p * SIMD + s) * W_W
//             EVERY         pipeline registers in the adder trees, see hg_adder_tree
// Latency     2 (hg_replay) + latency of hg_dot or hg_popcount + 1, counted from the last beat of
//             a vector; one beat a cycle without gaps
// Contract    exact modulo 2^ACC_W. Output beats: rows in order, first row in the low bits.
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
    parameter         FILE      = "weights.mem",
    parameter integer EVERY     = 2
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [SIMD*X_W-1:0]   s_data,
    input  wire                  s_valid,
    output wire                  s_ready,
    output wire [PE*ACC_W-1:0]   m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer WORDS = ROW_FOLDS * COL_FOLDS;
    localparam integer AW = (WORDS <= 1) ? 1 : $clog2(WORDS);
    localparam [AW-1:0] LAST_WORD = WORDS[AW-1:0] - 1'b1;
    localparam integer TERMS  = (MODE == 2) ? (SIMD + 5) / 6 : (SIMD + 3) / 4;
    localparam integer LEVELS = $clog2(TERMS);
    localparam integer STAGES = 1 + ((EVERY == 0) ? 0 : LEVELS / ((EVERY == 0) ? 1 : EVERY));
    localparam integer SUM_W  = ((MODE == 2) ? 3 : X_W + W_W + 3) + LEVELS;

    wire                en = m_ready || !m_valid_reg;
    wire [SIMD*X_W-1:0] x;
    wire                x_valid, x_last;
    reg                 m_valid_reg;

    hg_replay #(
        .WIDTH(SIMD*X_W), .LENGTH(COL_FOLDS), .REPEAT(ROW_FOLDS)
    ) replay (
        .clk(clk), .rst(rst),
        .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready),
        .m_data(x), .m_last(x_last), .m_valid(x_valid), .m_ready(en)
    );

    // The weight word of the beat that comes next is read ahead.
    (* rom_style = "auto" *) reg [PE*SIMD*W_W-1:0] rom [0:WORDS-1];
    initial $readmemh(FILE, rom);
    reg  [PE*SIMD*W_W-1:0] w_reg;
    reg  [AW-1:0]          word_reg;
    wire                   take = x_valid && en;
    wire [AW-1:0]          word_inc  = (word_reg == LAST_WORD) ? {AW{1'b0}} : word_reg + 1'b1;
    wire [AW-1:0]          word_next = rst ? {AW{1'b0}} : take ? word_inc : word_reg;
    always @(posedge clk) begin
        word_reg <= word_next;
        w_reg    <= rom[word_next];
    end

    // What the sum that leaves the pipeline belongs to.
    reg [STAGES-1:0] valid_reg, last_reg;
    wire [STAGES:0]  valid_in = {valid_reg, x_valid};
    wire [STAGES:0]  last_in  = {last_reg, x_last};
    reg              first_reg;
    always @(posedge clk) begin
        if (en) begin
            valid_reg   <= valid_in[STAGES-1:0];
            last_reg    <= last_in[STAGES-1:0];
            m_valid_reg <= valid_reg[STAGES-1] && last_reg[STAGES-1];
            if (valid_reg[STAGES-1]) first_reg <= last_reg[STAGES-1];
        end
        if (rst) begin
            valid_reg   <= {STAGES{1'b0}};
            m_valid_reg <= 1'b0;
            first_reg   <= 1'b1;
        end
    end

    assign m_valid = m_valid_reg;
    wire unused = &{1'b0, valid_in[STAGES], last_in[STAGES]};

    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : pe
            wire [SUM_W-1:0] sum;
            if (MODE == 2) begin : binary
                hg_popcount #(.SIMD(SIMD), .EVERY(EVERY)) popcount (
                    .clk(clk), .en(en), .x(x), .w(w_reg[p*SIMD +: SIMD]), .count(sum)
                );
            end else begin : integers
                hg_dot #(
                    .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W),
                    .W_BIPOLAR((MODE == 1) ? 1 : 0), .EVERY(EVERY)
                ) dot (
                    .clk(clk), .en(en), .x(x), .w(w_reg[p*SIMD*W_W +: SIMD*W_W]), .sum(sum)
                );
            end
            wire [SUM_W+ACC_W-1:0] extended = {{ACC_W{(MODE != 2) && sum[SUM_W-1]}}, sum};
            reg  [ACC_W-1:0]       acc_reg;
            always @(posedge clk)
                if (en && valid_reg[STAGES-1])
                    acc_reg <= (first_reg ? {ACC_W{1'b0}} : acc_reg) + extended[ACC_W-1:0];
            assign m_data[p*ACC_W +: ACC_W] = acc_reg;
            wire unused_pe = &{1'b0, extended};
        end
    endgenerate
endmodule
`default_nettype wire
