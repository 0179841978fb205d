// hg_mac: Rows of dot products, each summed over the words of a reduction.
//
// Purpose     Arithmetic of hg_mvu, hg_conv and hg_dwconv.
// Parameters  SIMD, PE        Columns and rows processed per cycle.
//             SHARED          1: all rows use the same SIMD codes; 0: each row has its own.
//             X_W, X_SIGNED   Codes, see hg_dot_pairs.
//             W_W             Bits of a weight.
//             MODE, ACC_W, EVERY  See hg_mvu.
//             CONSTANT, ALONE  CONSTANT = 1: w never changes. ALONE = 1: each word is a complete reduction.
//             DSP             0: products in LUTs. Otherwise: products in DSP blocks with DSP bits in one
//                             factor; from 25 bits on in hg_dot_chain. Rows whose products fit side by side
//                             share a block.
//             FIRST, T_W, S_W, CUT, FILE  FIRST > 0: DA tables instead of products, see hg_dot_words. Then
//                             w is the number of a word, of WORD_W bits; CONSTANT and DSP are 0, and MODE
//                             is not 2.
// Latency     1 + the latency of the dot product or hg_popcount + 1 enabled cycles, from a reduction's last
//             word.
// Contract    Exact modulo 2^ACC_W. All registers advance on `en`. The user must stall it while m_valid is
//             not accepted. Output m_free is a duplicate register of !m_valid for low-fan-out enables
//             upstream. Input `en_totals` equals en. Lane p, column s of w is at bit (p * SIMD + s) * W_W.
//             Without SHARED, lane p, column s of x is at bit (p * SIMD + s) * X_W.
`default_nettype none
module hg_mac #(
    parameter integer SIMD     = 4,
    parameter integer PE       = 2,
    parameter integer SHARED   = 1,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer MODE     = 0,
    parameter integer ACC_W    = 12,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer ALONE    = 0,
    parameter integer DSP      = 0,
    parameter integer FIRST    = 0,
    parameter integer T_W      = 1,
    parameter integer S_W      = 1,
    parameter integer CUT      = 0,
    parameter         FILE     = "",
    parameter integer WORD_W   = 1
) (
    input  wire                                        clk,
    input  wire                                        rst,
    input  wire                                        en,
    input  wire                                        en_totals,
    input  wire [((SHARED != 0) ? 1 : PE)*SIMD*X_W-1:0] x,
    input  wire                                        x_valid,
    input  wire                                        x_last,
    input  wire [((FIRST != 0) ? WORD_W : PE*SIMD*W_W)-1:0] w,
    output wire [PE*ACC_W-1:0]                         m_data,
    output wire                                        m_valid,
    output wire                                        m_free
);
    // Weights as the dot products expect them: a one-bit weight of 0 or -1 would mean something else there.
    localparam integer V_W    = (MODE == 0 && W_W == 1) ? 2 : W_W;
    localparam integer TERMS  = (SIMD + ((MODE == 2) ? ALONE : 0) + 3) / 4;
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer TREE   = ($clog2(TERMS) + STEP - 1) / STEP, COUNT = 2 + ((EVERY == 0) ? 0 : TREE);
    localparam integer MERGE  = ($clog2((V_W + 1) / 2) + STEP - 1) / STEP;
    localparam integer PER    = (STEP == 1) ? 1 : 2, CYCLES = (((SIMD > 4) ? 4 : SIMD) + PER - 1) / PER;
    localparam integer SPAN   = (FIRST == 0) ? 1 : 4 * FIRST - 3;
    localparam integer CHAINS = ($clog2((SIMD + SPAN - 1) / SPAN) + STEP - 1) / STEP;
    localparam integer FOUR   = (SIMD < 2 * FIRST) ? 2 : (CUT != 0 || STEP > 1) ? 3 : 4;
    localparam integer SUMS   = FOUR + CUT + CHAINS + ($clog2(X_W) + STEP - 1) / STEP;
    localparam integer TURNS  = (V_W * ((SIMD > 2) ? 2 : 1) + PER - 1) / PER;
    localparam integer BLOCKS = 1 + CYCLES + TREE + MERGE, TWOS = 2 + TURNS + TREE;
    // Rows that share a DSP block, and the products that it may sum before they are separated.
    localparam integer FIELD = X_W + V_W, FIT = (DSP > V_W + 1) ? 1 + (DSP - V_W - 1) / FIELD : 1;
    localparam integer MOST  = (MODE != 0 || SHARED == 0) ? 1 : (FIT > 3) ? 3 : FIT;
    localparam integer SHARE = (PE + MOST - 1) / MOST, ROWS = (PE + SHARE - 1) / SHARE, REST = PE % ROWS;
    localparam integer SPARE = (ROWS > 1) ? (DSP - V_W - 1) / (ROWS - 1) - FIELD : 0;
    localparam integer GUARD = (SPARE > 2) ? 2 : SPARE;
    // Chains of DSP blocks, as hg_dot_chain builds them.
    localparam integer CHAINED = (MODE == 0 && FIRST == 0 && DSP >= 25) ? 1 : 0;
    localparam integer REACH = (ROWS == 1) ? 8 : (X_SIGNED != 0) ? (8 << GUARD) - 1 : 4 << GUARD;
    localparam integer LONG  = (REACH > 8) ? 8 : REACH, LINES = (SIMD + LONG - 1) / LONG;
    localparam integer EACH  = (SIMD + LINES - 1) / LINES, HEAP = $clog2((SIMD + EACH - 1) / EACH);
    localparam integer ALONG = ((ROWS == 1) ? 2 : 4) + EACH + (HEAP + STEP - 1) / STEP;
    // The two product implementations have the same latency: the faster one is delayed.
    localparam integer PAIRED = (MODE != 2 && FIRST == 0 && CONSTANT == 0 && DSP == 0) ? 1 : 0;
    localparam integer LONGER = (BLOCKS > TWOS) ? BLOCKS : TWOS, FORM = (PAIRED != 0) ? TWOS : BLOCKS;
    localparam integer STAGES = (FIRST != 0) ? SUMS : (MODE == 2) ? COUNT : (CHAINED != 0) ? ALONG : LONGER;
    localparam integer WAIT   = (FIRST + CHAINED != 0 || MODE == 2) ? 0 : LONGER - FORM;
    localparam integer SUM_W  = (MODE == 2) ? 3 + $clog2(TERMS) : X_W + V_W + 1 + $clog2(SIMD);

    // Control flags of the sum that leaves the pipeline.
    reg [STAGES-1:0] valid_reg, last_reg;
    wire [STAGES:0]  valid_in = {valid_reg, x_valid}, last_in = {last_reg, x_last};
    reg              first_reg, m_valid_reg, m_free_reg;
    wire             done = valid_reg[STAGES-1] && last_reg[STAGES-1];
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= valid_in[STAGES-1:0];
            last_reg  <= last_in[STAGES-1:0];
            {m_valid_reg, m_free_reg} <= {done, !done};
        end
        if (en_totals && valid_reg[STAGES-1]) first_reg <= last_reg[STAGES-1];
        if (rst) begin
            valid_reg <= {STAGES{1'b0}};
            {m_valid_reg, m_free_reg, first_reg} <= 3'b011;
        end
    end
    assign {m_valid, m_free} = {m_valid_reg, m_free_reg};
    localparam integer PACKS = (ROWS == 1 || CHAINED != 0) ? 0 : PE / ROWS + ((REST > 1) ? 1 : 0);
    localparam integer SETS  = (PAIRED + CHAINED + FIRST == 0 && MODE != 2) ? 0 : (SHARED != 0) ? 1 : PE;
    localparam integer PLAIN = (SETS != 0) ? PE : (ROWS == 1) ? 0 : (REST == 1) ? PE - 1 : PE;

    // Codes and weights in registers: paths from memories and ready chains end here.
    localparam integer X_ALL = ((SHARED != 0) ? 1 : PE) * SIMD, ROW_V = SIMD * V_W;
    localparam integer V_ALL = (FIRST != 0) ? WORD_W : PE * ROW_V;
    reg  [X_ALL*X_W-1:0]   x_reg;  // one vector: simulators re-evaluate all of it for each part assigned
    wire [V_ALL-1:0]       v, w_now;
    wire [PE*SUM_W-1:0]    made, sums;
    // Rows that share blocks or count agreements have codes and weights of their own.
    wire unused = &{1'b0, valid_in[STAGES], last_in[STAGES], w_now, x_reg};
    always @(posedge clk) if (en) x_reg <= x;
    hg_delay #(.WIDTH(PE*SUM_W), .CYCLES(WAIT)) late (.clk(clk), .en(en), .d(made), .q(sums));
    genvar i, p;
    generate
        if (V_W == W_W || FIRST != 0) begin : same
            assign v = w;
        end else begin : signed_bit
            for (i = 0; i < PE * SIMD; i = i + 1) begin : weight
                assign v[i*V_W +: V_W] = {V_W{w[i]}};
            end
        end
        if (CONSTANT != 0) begin : fixed
            assign w_now = v;
        end else begin : read
            reg [V_ALL-1:0] v_reg;
            always @(posedge clk) if (en) v_reg <= v;
            assign w_now = v_reg;
        end
        for (p = 0; p < PACKS; p = p + 1) begin : pack
            localparam integer OWN = (PE - p*ROWS < ROWS) ? PE - p*ROWS : ROWS;
            hg_dot_packed #(
                .SIMD(SIMD), .ROWS(OWN), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W), .GUARD(GUARD),
                .EVERY(EVERY)
            ) dot (
                .clk(clk), .en(en), .x(x_reg[SIMD*X_W-1:0]), .w(v[p*ROWS*SIMD*V_W +: OWN*SIMD*V_W]),
                .sums(made[p*ROWS*SUM_W +: OWN*SUM_W])
            );
        end
        for (p = 0; p < SETS; p = p + 1) begin : set
            localparam integer OWN = (SHARED != 0) ? PE : 1;
            wire [SIMD*X_W-1:0]  x_set = x_reg[p*SIMD*X_W +: SIMD*X_W];
            wire [OWN*SUM_W-1:0] own;
            assign made[p*SUM_W +: OWN*SUM_W] = own;
            if (FIRST != 0) begin : words
                hg_dot_words #(
                    .ROWS(OWN), .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .ADDR_W(WORD_W), .FIRST(FIRST),
                    .T_W(T_W), .S_W(S_W), .OUT_W(SUM_W), .EVERY(EVERY), .CUT(CUT), .FILE(FILE), .ROW(p)
                ) dot (.clk(clk), .en(en), .x(x_set), .word(w_now), .sums(own));
            end else if (MODE == 2) begin : binary
                wire [SIMD-1:0] early = x[p*SIMD +: SIMD];
                hg_agreements #(
                    .SIMD(SIMD), .ROWS(OWN), .EVERY(EVERY), .CONSTANT(CONSTANT), .ALONE(ALONE)
                ) dot (.clk(clk), .en(en), .x(early), .w(w_now[p*SIMD +: OWN*SIMD]), .counts(own));
            end else if (CHAINED != 0) begin : chained
                hg_dot_chain #(
                    .SIMD(SIMD), .ROWS(OWN), .EACH(ROWS), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W),
                    .GUARD(GUARD), .CONSTANT(CONSTANT), .EVERY(EVERY)
                ) dot (.clk(clk), .en(en), .x(x_set), .w(v[p*ROW_V +: OWN*ROW_V]), .sums(own));
            end else begin : paired
                hg_dot_pairs #(
                    .SIMD(SIMD), .ROWS(OWN), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W), .EVERY(EVERY)
                ) dot (.clk(clk), .en(en), .x(x_set), .w(w_now[p*ROW_V +: OWN*ROW_V]), .sums(own));
            end
        end
        for (p = PLAIN; p < PE; p = p + 1) begin : pe
            wire [SIMD*X_W-1:0] x_row = x_reg[((SHARED != 0) ? 0 : p)*SIMD*X_W +: SIMD*X_W];
            hg_dot_plain #(
                .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(V_W), .EVERY(EVERY), .DSP(DSP)
            ) dot (.clk(clk), .en(en), .x(x_row), .w(w_now[p*ROW_V +: ROW_V]), .sum(made[p*SUM_W +: SUM_W]));
        end
        for (p = 0; p < PE; p = p + 1) begin : row
            // In MODE 2 the lowest bit is a position, added as the carry of the sum
            localparam integer LOW = (MODE == 2) ? 1 : 0;
            wire [SUM_W-1:0]       sum = sums[p*SUM_W +: SUM_W];
            wire [SUM_W+ACC_W-1:0] extended = {{ACC_W+LOW{(MODE != 2) && sum[SUM_W-1]}}, sum[SUM_W-1:LOW]};
            wire [ACC_W:0]         one = {{ACC_W{1'b0}}, (MODE == 2) && sum[0]};
            reg  [ACC_W-1:0]       acc_reg;
            always @(posedge clk) if (en_totals && valid_reg[STAGES-1])
                acc_reg <= (first_reg ? {ACC_W{1'b0}} : acc_reg) + extended[ACC_W-1:0] + one[ACC_W-1:0];
            assign m_data[p*ACC_W +: ACC_W] = acc_reg;
            wire unused_row = &{1'b0, extended, one};
        end
    endgenerate
endmodule
`default_nettype wire
