// hg_rows_norm: Layer or root-mean-square normalization of rows of integers, with weight and bias per
// position.
//
// Purpose     Deeploy's iLayerNorm and iRMSNorm.
// Parameters  LANES           Elements of a beat.
//             BEATS           Beats of a row, which has LANES * BEATS elements.
//             IN_W            Bits of an element.
//             IN_SIGNED       1: elements are two's complement; 0: unsigned.
//             CENTERED        1: the mean is subtracted; 0: it is not.
//             SUM_W, SQ_W, MEAN_W, ROOT_W  See hg_rows_root. SUM_W > IN_W + 1, SQ_W > 2 * IN_W.
//             WEIGHT_W, BIAS_W  Bits of weights and biases, signed.
//             ACC_W           Bits of the dividends, signed; more than any of their products has.
//             SHIFT           Bits dropped at the end.
//             BITS            Bits of a quotient, signed.
//             OUT_W           Bits of a result, signed, at most BITS.
//             WRAPS           1: results keep their low bits; 0: they saturate.
//             FILE            BEATS words. The weight of lane g is at bit g * (BIAS_W + WEIGHT_W), the bias
//                             above it.
// Latency     6 + BITS cycles after a beat is read, see hg_rows_buffer with LAG = 3 + latency of
//             hg_rows_root. One beat per cycle.
// Contract    With mean and root of hg_rows_root, t = (s - mean) * weight. Then m = (t / root, truncated, +
//             bias) >> SHIFT, rounded down, in the order of s. The caller proves that ACC_W and BITS
//             suffice.
`default_nettype none
module hg_rows_norm #(
    parameter integer LANES     = 2,
    parameter integer BEATS     = 4,
    parameter integer IN_W      = 8,
    parameter integer IN_SIGNED = 1,
    parameter integer CENTERED  = 1,
    parameter integer SUM_W     = 14,
    parameter integer SQ_W      = 20,
    parameter integer MEAN_W    = 8,
    parameter integer ROOT_W    = 8,
    parameter integer WEIGHT_W  = 9,
    parameter integer BIAS_W    = 9,
    parameter integer ACC_W     = 24,
    parameter integer SHIFT     = 4,
    parameter integer BITS      = 14,
    parameter integer OUT_W     = 8,
    parameter integer WRAPS     = 0,
    parameter         FILE      = ""
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*IN_W-1:0]  s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer COUNT = LANES * BEATS;
    localparam integer LAG   = 3 + ROOT_W + ((CENTERED != 0) ? MEAN_W + 2 : 0);
    localparam integer BW    = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer X_W   = IN_W + 1;
    localparam integer PLACE = BIAS_W + WEIGHT_W;
    localparam integer D_W   = ((IN_W > MEAN_W) ? IN_W : MEAN_W) + 2;
    localparam integer T_W   = D_W + WEIGHT_W, B_W = BIAS_W + ROOT_W + 1;
    localparam integer NUM_W = BITS + ROOT_W;
    localparam integer A_W   = ((ACC_W > NUM_W) ? ACC_W : NUM_W) + 1;
    localparam [BW-1:0] LAST_BEAT = BEATS[BW-1:0] - 1'b1;

    wire                     take, first, last, issue, valid, unused_last;
    wire [LANES*IN_W-1:0]    data;
    wire [MEAN_W:0]          mean, row_mean;
    wire [ROOT_W-1:0]        root, row_root;
    reg  [5+BITS:1]          valid_reg;

    // Sums of a beat, then of the row so far.
    reg                       take1_reg, first1_reg, take2_reg, first2_reg;
    wire [LANES*X_W-1:0]      xs;
    wire [LANES*2*X_W-1:0]    squares;
    reg  [SUM_W-1:0]          beat, beat_reg, sum_reg;
    reg  [SQ_W-1:0]           beat_sq, beat_sq_reg, sq_reg;
    integer                   k;
    always @* begin
        beat = {SUM_W{1'b0}};
        beat_sq = {SQ_W{1'b0}};
        for (k = 0; k < LANES; k = k + 1) begin
            beat = beat + {{SUM_W-X_W{xs[k*X_W+X_W-1]}}, xs[k*X_W +: X_W]};
            beat_sq = beat_sq + {{SQ_W-2*IN_W{1'b0}}, squares[k*2*X_W +: 2*IN_W]};
        end
    end
    always @(posedge clk) begin
        first1_reg  <= first;
        first2_reg  <= first1_reg;
        take1_reg   <= take && !rst;
        take2_reg   <= take1_reg && !rst;
        beat_reg    <= beat;
        beat_sq_reg <= beat_sq;
        if (take2_reg) begin
            sum_reg <= first2_reg ? beat_reg : sum_reg + beat_reg;
            sq_reg  <= first2_reg ? beat_sq_reg : sq_reg + beat_sq_reg;
        end
    end
    hg_rows_root #(
        .COUNT(COUNT), .CENTERED(CENTERED), .SUM_W(SUM_W), .SQ_W(SQ_W), .MEAN_W(MEAN_W), .ROOT_W(ROOT_W)
    ) deviation (.clk(clk), .sum(sum_reg), .squares(sq_reg), .mean(mean), .root(root));

    wire en = m_ready || !m_valid;
    hg_rows_buffer #(.WIDTH(LANES*IN_W), .BLOCK(BEATS), .STAT_W(MEAN_W+1+ROOT_W), .LAG(LAG)) rows (
        .clk(clk), .rst(rst), .s_data(s_data), .s_valid(s_valid), .s_ready(s_ready), .take(take),
        .first(first), .last(last), .stat({mean, root}), .en(en), .issue(issue), .m_data(data),
        .m_stat({row_mean, row_root}), .m_valid(valid));

    // The root accompanies the beat to the division.
    (* rom_style = "auto" *) reg [LANES*PLACE-1:0] places [0:BEATS-1];
    initial if (FILE != "") $readmemh(FILE, places);
    reg [BW-1:0]          place_reg;
    reg [LANES*PLACE-1:0] word_reg, word1_reg;
    reg [ROOT_W-1:0]      root1_reg, root2_reg, root3_reg, root4_reg;
    assign m_valid = valid_reg[5+BITS];
    always @(posedge clk) begin
        if (issue) place_reg <= (place_reg == LAST_BEAT) ? {BW{1'b0}} : place_reg + 1'b1;
        if (en) begin
            word_reg  <= places[place_reg];
            word1_reg <= word_reg;
            root1_reg <= row_root;
            root2_reg <= root1_reg;
            root3_reg <= root2_reg;
            root4_reg <= root3_reg;
            valid_reg <= {valid_reg[4+BITS:1], valid};
        end
        if (rst) begin
            place_reg <= {BW{1'b0}};
            valid_reg <= {5+BITS{1'b0}};
        end
    end
    wire [LANES*NUM_W-1:0] numbers;
    wire [LANES*BITS-1:0]  quotients;
    hg_rows_divide #(.LANES(LANES), .BITS(BITS), .DEN_W(ROOT_W)) divide (
        .clk(clk), .en(en), .num(numbers), .den(root4_reg), .quotient(quotients));
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire signed [WEIGHT_W-1:0] weight = word1_reg[g*PLACE +: WEIGHT_W];
            wire signed [BIAS_W-1:0]   bias   = word1_reg[g*PLACE+WEIGHT_W +: BIAS_W];
            reg  signed [X_W-1:0]      x_reg;
            reg  signed [D_W-1:0]      x1_reg;
            reg  signed [ACC_W-1:0]    t_reg, b_reg, a_reg;
            reg  [NUM_W-1:0]           n_reg;
            wire signed [ROOT_W:0]     root1 = $signed({1'b0, root1_reg});
            wire signed [T_W-1:0]      t = x1_reg * weight;
            wire signed [B_W-1:0]      b = bias * root1;
            // Truncation rounds a negative number up, toward 0: add root - 1.
            wire [ROOT_W-1:0]          up   = t_reg[ACC_W-1] ? root2_reg - 1'b1 : {ROOT_W{1'b0}};
            wire signed [ACC_W-1:0]    all  = t_reg + $signed({{ACC_W-ROOT_W{1'b0}}, up}) + b_reg;
            wire [A_W-1:0]             wide = {{A_W-ACC_W{a_reg[ACC_W-1]}}, a_reg};
            wire [BITS-1:0] q = {!quotients[g*BITS+BITS-1], quotients[g*BITS +: BITS-1]};
            wire fits = (&q[BITS-1:OUT_W-1]) || !(|q[BITS-1:OUT_W-1]) || (WRAPS != 0);
            reg  [OUT_W-1:0] m_reg;
            always @(posedge clk)
                x_reg <= {(IN_SIGNED != 0) && s_data[g*IN_W+IN_W-1], s_data[g*IN_W +: IN_W]};
            assign xs[g*X_W +: X_W] = x_reg;
            assign squares[g*2*X_W +: 2*X_W] = x_reg * x_reg;
            always @(posedge clk) if (en) begin
                x1_reg <= {{D_W-IN_W{(IN_SIGNED != 0) && data[g*IN_W+IN_W-1]}}, data[g*IN_W +: IN_W]}
                        - {{D_W-MEAN_W-1{row_mean[MEAN_W]}}, row_mean};
                t_reg  <= {{ACC_W-T_W{t[T_W-1]}}, t};
                b_reg  <= {{ACC_W-B_W{b[B_W-1]}}, b};
                a_reg  <= all >>> SHIFT;
                n_reg  <= wide[NUM_W-1:0] + ({{BITS{1'b0}}, root3_reg} << (BITS - 1));
                m_reg  <= fits ? q[OUT_W-1:0] : {q[BITS-1], {OUT_W-1{!q[BITS-1]}}};
            end
            assign numbers[g*NUM_W +: NUM_W] = n_reg;
            assign m_data[g*OUT_W +: OUT_W]  = m_reg;
            wire unused_lane = &{1'b0, wide, squares[g*2*X_W+2*IN_W +: 2]};
        end
    endgenerate
    assign unused_last = last;
endmodule
`default_nettype wire
