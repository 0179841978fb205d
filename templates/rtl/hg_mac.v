// hg_mac: rows of dot products, each summed over the words of a reduction.
//
// Purpose     the arithmetic of hg_mvu, hg_conv and hg_dwconv.
// Parameters  SIMD, PE      columns and rows worked on in a cycle
//             SHARED        1: all rows take the same SIMD codes; 0: each row has its own
//             X_W, X_SIGNED codes, see hg_dot
//             W_W           bits of a weight
//             MODE          0: two's complement weights; 1: bipolar weights, one bit each;
//                           2: bipolar weights and binary codes, acc = agreements (popcount)
//             ACC_W         bits of an accumulator (two's complement; unsigned in MODE 2)
//             EVERY         pipeline registers in the adder trees, see hg_adder_tree
// Latency     that of hg_dot or hg_popcount + 1 enabled cycles, from the last word of a reduction
// Contract    exact modulo 2^ACC_W. Everything moves on `en`; the user stops it while m_valid
//             and nobody takes. Lane p, column s of w at bit (p * SIMD + s) * W_W, of x (not
//             SHARED) at (p * SIMD + s) * X_W.
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
    parameter integer EVERY    = 2
) (
    input  wire                                        clk,
    input  wire                                        rst,
    input  wire                                        en,
    input  wire [((SHARED != 0) ? 1 : PE)*SIMD*X_W-1:0] x,
    input  wire                                        x_valid,
    input  wire                                        x_last,
    input  wire [PE*SIMD*W_W-1:0]                      w,
    output wire [PE*ACC_W-1:0]                         m_data,
    output wire                                        m_valid
);
    localparam integer TERMS  = (MODE == 2) ? (SIMD + 5) / 6 : (SIMD + 3) / 4;
    localparam integer LEVELS = $clog2(TERMS);
    localparam integer STAGES = 1 + ((EVERY == 0) ? 0 : LEVELS / ((EVERY == 0) ? 1 : EVERY));
    localparam integer SUM_W  = ((MODE == 2) ? 3 : X_W + W_W + 3) + LEVELS;

    // What the sum that leaves the pipeline belongs to.
    reg [STAGES-1:0] valid_reg, last_reg;
    wire [STAGES:0]  valid_in = {valid_reg, x_valid};
    wire [STAGES:0]  last_in  = {last_reg, x_last};
    reg              first_reg, m_valid_reg;
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
            wire [SIMD*X_W-1:0] x_row = x[((SHARED != 0) ? 0 : p)*SIMD*X_W +: SIMD*X_W];
            wire [SUM_W-1:0]    sum;
            if (MODE == 2) begin : binary
                hg_popcount #(.SIMD(SIMD), .EVERY(EVERY)) popcount (
                    .clk(clk), .en(en), .x(x_row), .w(w[p*SIMD +: SIMD]), .count(sum)
                );
            end else begin : integers
                hg_dot #(
                    .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W),
                    .W_BIPOLAR((MODE == 1) ? 1 : 0), .EVERY(EVERY)
                ) dot (
                    .clk(clk), .en(en), .x(x_row), .w(w[p*SIMD*W_W +: SIMD*W_W]), .sum(sum)
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
