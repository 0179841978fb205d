// hg_mac_products: hg_mac for products in LUTs or in DSP blocks that do not add.
//
// Purpose     Rows of dot products, summed over the words of a reduction. Products in LUTs are in
//             hg_dot_pairs, or in hg_dot_plain if the weights are constant. Rows that share DSP blocks are
//             in hg_dot_packed, others in hg_dot_plain.
// Parameters  SIMD, PE, X_W, X_SIGNED, ACC_W, EVERY, CONSTANT  See hg_mac.
//             W_W          Bits of a weight, see hg_dot_pairs.
//             ROWS, GUARD  Rows that share a DSP block, and their guard bits, see hg_dot_packed. ROWS = 0:
//                          products in LUTs.
// Latency     2 enabled cycles more than the longer one of hg_dot_pairs and hg_dot_plain, from a
//             reduction's last word. The faster one is delayed.
// Contract    As hg_mac.
`default_nettype none
module hg_mac_products #(
    parameter integer SIMD     = 4,
    parameter integer PE       = 2,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer ACC_W    = 12,
    parameter integer EVERY    = 2,
    parameter integer CONSTANT = 0,
    parameter integer ROWS     = 0,
    parameter integer GUARD    = 0
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    en,
    input  wire                    en_totals,
    input  wire [SIMD*X_W-1:0]        x,
    input  wire                    x_valid,
    input  wire                    x_last,
    input  wire [PE*SIMD*W_W-1:0]     w,
    output wire [PE*ACC_W-1:0]     m_data,
    output wire                    m_valid,
    output wire                    m_free
);
    // Enabled cycles of hg_dot_plain, and of hg_dot_pairs, from x.
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    localparam integer PER    = (STEP == 1) ? 1 : 2;
    localparam integer TREE   = ($clog2((SIMD + 3) / 4) + STEP - 1) / STEP;
    localparam integer MERGE  = ($clog2((W_W + 1) / 2) + STEP - 1) / STEP;
    localparam integer PLAIN  = (((SIMD > 4) ? 4 : SIMD) + PER - 1) / PER + TREE + MERGE;
    localparam integer PAIRS  = 1 + (W_W * ((SIMD > 2) ? 2 : 1) + PER - 1) / PER + TREE;
    localparam integer LONGER = (PLAIN > PAIRS) ? PLAIN : PAIRS;
    localparam integer PAIRED = (CONSTANT == 0 && ROWS == 0) ? 1 : 0;
    localparam integer WAIT   = LONGER - ((PAIRED != 0) ? PAIRS : PLAIN);
    localparam integer STAGES = 1 + LONGER;
    localparam integer SUM_W  = X_W + W_W + 1 + $clog2(SIMD);
    // Rows that share blocks. A single one that is left has its own blocks.
    localparam integer PACKED = (ROWS < 2) ? 0 : (PE % ROWS == 1) ? PE - 1 : PE;

    // Codes and weights in registers: paths from memories and ready chains end here.
    reg  [SIMD*X_W-1:0]    x_reg;
    wire [PE*SIMD*W_W-1:0] w_now;
    wire [PE*SUM_W-1:0]    made, sums;
    wire unused = &{1'b0, w_now};
    always @(posedge clk) if (en) x_reg <= x;
    hg_delay #(.WIDTH(PE*SUM_W), .CYCLES(WAIT)) late (.clk(clk), .en(en), .d(made), .q(sums));
    genvar p;
    generate
        if (CONSTANT != 0) begin : fixed
            assign w_now = w;
        end else begin : read
            reg [PE*SIMD*W_W-1:0] w_reg;
            always @(posedge clk) if (en) w_reg <= w;
            assign w_now = w_reg;
        end
        if (PAIRED != 0) begin : paired
            hg_dot_pairs #(
                .SIMD(SIMD), .ROWS(PE), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .EVERY(EVERY)
            ) dot (.clk(clk), .en(en), .x(x_reg), .w(w_now), .sums(made));
        end else begin : blocks
            for (p = 0; p < PACKED; p = p + ROWS) begin : pack
                localparam integer OWN = (PE - p < ROWS) ? PE - p : ROWS;
                hg_dot_packed #(
                    .SIMD(SIMD), .ROWS(OWN), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .GUARD(GUARD),
                    .EVERY(EVERY)
                ) dot (
                    .clk(clk), .en(en), .x(x_reg), .w(w[p*SIMD*W_W +: OWN*SIMD*W_W]),
                    .sums(made[p*SUM_W +: OWN*SUM_W])
                );
            end
            for (p = PACKED; p < PE; p = p + 1) begin : row
                hg_dot_plain #(
                    .SIMD(SIMD), .X_W(X_W), .X_SIGNED(X_SIGNED), .W_W(W_W), .EVERY(EVERY),
                    .DSP((ROWS != 0) ? 1 : 0)
                ) dot (
                    .clk(clk), .en(en), .x(x_reg), .w(w_now[p*SIMD*W_W +: SIMD*W_W]),
                    .sum(made[p*SUM_W +: SUM_W])
                );
            end
        end
        // Generated after the products: Yosys then needs one LUT for a bit of an accumulator, otherwise two.
        if (1) begin : accumulators
            hg_totals #(.PE(PE), .SUM_W(SUM_W), .ACC_W(ACC_W), .STAGES(STAGES)) totals (
                .clk(clk), .rst(rst), .en(en), .en_totals(en_totals),
                .x_valid(x_valid), .x_last(x_last), .sums(sums),
                .m_data(m_data), .m_valid(m_valid), .m_free(m_free)
            );
        end
    endgenerate
endmodule
`default_nettype wire
