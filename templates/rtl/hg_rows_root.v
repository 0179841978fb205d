// hg_rows_root: Mean and standard deviation of integers from their sums.
//
// Purpose     Divisor of a row in hg_rows_norm.
// Parameters  COUNT     Elements of a row, N.
//             CENTERED  0: the mean is 0.
//             SUM_W     Bits of the sum, signed; also of twice the sum, and of N times the mean.
//             SQ_W      Bits of the sum of squares plus N, and one more.
//             MEAN_W    Bits of the mean without its sign.
//             ROOT_W    Bits of the root.
// Latency     ROOT_W cycles, MEAN_W + 2 more with CENTERED. One row per cycle, never stalled.
// Contract    mean = sum / N, truncated. V = sum of squares - mean * (2 * sum - N * mean), which is the sum
//             of (x - mean)^2. root = the largest r with N * (r * r - 1) <= V, which is the root of V / N +
//             1, rounded down twice. Exact.
`default_nettype none
module hg_rows_root #(
    parameter integer COUNT    = 8,
    parameter integer CENTERED = 1,
    parameter integer SUM_W    = 14,
    parameter integer SQ_W     = 20,
    parameter integer MEAN_W   = 8,
    parameter integer ROOT_W   = 8
) (
    input  wire              clk,
    input  wire [SUM_W-1:0]  sum,
    input  wire [SQ_W-1:0]   squares,
    output wire [MEAN_W:0]   mean,
    output wire [ROOT_W-1:0] root
);
    localparam integer N_W = $clog2(COUNT + 1);
    localparam integer D_W = MEAN_W + N_W;
    localparam integer T_W = ((D_W > SUM_W) ? D_W : SUM_W) + 1;
    localparam integer C_W = ((SQ_W > SUM_W) ? SQ_W : SUM_W) + 1;
    localparam [C_W+31:0] N = {{C_W{1'b0}}, COUNT[31:0]};  // sums can have more bits than an integer

    // Before each step: the remainder of V + N, and N * the root so far.
    wire [(ROOT_W+1)*SQ_W-1:0]       left, scaled;
    wire [(ROOT_W+1)*ROOT_W-1:0]     roots;
    wire [(ROOT_W+1)*(MEAN_W+1)-1:0] means;
    wire [SQ_W-1:0]                  sum_of_squares;
    assign left[SQ_W-1:0]   = sum_of_squares + N[SQ_W-1:0];
    assign scaled[SQ_W-1:0] = {SQ_W{1'b0}};
    assign roots[ROOT_W-1:0] = {ROOT_W{1'b0}};
    assign root = roots[ROOT_W*ROOT_W +: ROOT_W];
    assign mean = means[ROOT_W*(MEAN_W+1) +: MEAN_W+1];
    genvar s;
    generate
        if (CENTERED != 0) begin : centered
            reg  [MEAN_W*(SUM_W+SQ_W)-1:0] wait_reg;
            wire [T_W-1:0] wide = sum[SUM_W-1] ? -{{T_W-SUM_W{1'b1}}, sum} : {{T_W-SUM_W{1'b0}}, sum};
            wire [MEAN_W-1:0] size;
            hg_rows_divide #(.LANES(1), .BITS(MEAN_W), .DEN_W(N_W)) divide (
                .clk(clk), .en(1'b1), .num(wide[D_W-1:0]), .den(COUNT[N_W-1:0]), .quotient(size));
            wire [SUM_W-1:0] sum1;
            wire [SQ_W-1:0]  squares1;
            assign {sum1, squares1} = wait_reg[(MEAN_W-1)*(SUM_W+SQ_W) +: SUM_W+SQ_W];
            if (MEAN_W > 1) begin : longer
                always @(posedge clk) wait_reg <= {wait_reg[0 +: (MEAN_W-1)*(SUM_W+SQ_W)], sum, squares};
            end else begin : shorter
                always @(posedge clk) wait_reg <= {sum, squares};
            end
            wire [MEAN_W:0]        mean1 = sum1[SUM_W-1] ? -{1'b0, size} : {1'b0, size};
            reg signed [MEAN_W:0]  mean1_reg;
            reg        [MEAN_W:0]  mean2_reg;
            reg signed [SUM_W:0]   twice_reg;
            reg        [SQ_W-1:0]  squares1_reg, squares2_reg;
            wire signed [SQ_W+SUM_W+MEAN_W+1:0] product = mean1_reg * twice_reg;
            always @(posedge clk) begin
                mean1_reg    <= mean1;
                twice_reg    <= {sum1, 1'b0} - {{SUM_W-MEAN_W{mean1[MEAN_W]}}, mean1} * N[SUM_W:0];
                squares1_reg <= squares1;
                mean2_reg    <= mean1_reg;
                squares2_reg <= squares1_reg - product[SQ_W-1:0];
            end
            assign sum_of_squares   = squares2_reg;
            assign means[MEAN_W:0] = mean2_reg;
            wire unused_centered = &{1'b0, wide, product};
        end else begin : plain
            assign sum_of_squares  = squares;
            assign means[MEAN_W:0] = {MEAN_W+1{1'b0}};
            wire unused_plain = &{1'b0, sum};
        end
        for (s = 0; s < ROOT_W; s = s + 1) begin : step
            localparam integer AT = ROOT_W - 1 - s;
            wire [SQ_W-1:0] r = left[s*SQ_W +: SQ_W];
            wire [SQ_W-1:0] p = scaled[s*SQ_W +: SQ_W];
            // N * ((root + 2^AT)^2 - root^2)
            wire [SQ_W-1:0] more = (p << (AT + 1)) + (N[SQ_W-1:0] << (2 * AT));
            wire            fits = r >= more;
            reg  [SQ_W-1:0]   r_reg, p_reg;
            reg  [ROOT_W-1:0] q_reg;
            reg  [MEAN_W:0]   m_reg;
            always @(posedge clk) begin
                r_reg <= fits ? r - more : r;
                p_reg <= fits ? p + (N[SQ_W-1:0] << AT) : p;
                q_reg <= roots[s*ROOT_W +: ROOT_W];
                q_reg[AT] <= fits;
                m_reg <= means[s*(MEAN_W+1) +: MEAN_W+1];
            end
            assign left[(s+1)*SQ_W +: SQ_W]           = r_reg;
            assign scaled[(s+1)*SQ_W +: SQ_W]         = p_reg;
            assign roots[(s+1)*ROOT_W +: ROOT_W]      = q_reg;
            assign means[(s+1)*(MEAN_W+1) +: MEAN_W+1] = m_reg;
        end
    endgenerate
    wire unused = &{1'b0, left[ROOT_W*SQ_W +: SQ_W], scaled[ROOT_W*SQ_W +: SQ_W]};
endmodule
`default_nettype wire
