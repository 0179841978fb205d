// hg_norm_moments: Moment and sum of each row of integers.
//
// Purpose     Computes the divisor of a row, before its root. For N = LANES * BEATS integers q it gives the
//             sum S and the moment. CENTERED = 1: moment = N * sum(q^2) - S^2. CENTERED = 0: moment = N *
//             sum(q^2), and S is 0.
// Parameters  LANES          Codes of a beat.
//             BEATS          Beats of a row.
//             X_W, X_SIGNED  Bits of a code; 1: two's complement, 0: unsigned.
//             SHIFT, OFFSET  q = code * 2^SHIFT + OFFSET.
//             Q_W            Bits of q (two's complement).
//             CENTERED       See above.
//             S_W            Bits of the sum (two's complement).
//             M_W            Bits of the moment (unsigned).
//             EVERY          Levels of the adder trees between registers.
// Latency     5 + ceil(log2(LANES)) / EVERY (rounded down) enabled cycles (m_ready || !m_valid) after the
//             last beat of a row. One beat per cycle.
// Contract    m = {moment, sum}, exact modulo 2^M_W and 2^S_W. The caller proves that both fit.
`default_nettype none
module hg_norm_moments #(
    parameter integer          LANES    = 2,
    parameter integer          BEATS    = 3,
    parameter integer          X_W      = 4,
    parameter integer          X_SIGNED = 1,
    parameter integer          SHIFT    = 0,
    parameter integer          Q_W      = 4,
    parameter signed [Q_W-1:0] OFFSET   = 0,
    parameter integer          CENTERED = 1,
    parameter integer          S_W      = 7,
    parameter integer          M_W      = 12,
    parameter integer          EVERY    = 2
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [LANES*X_W-1:0] s_data,
    input  wire                 s_valid,
    output wire                 s_ready,
    output wire [M_W+S_W-1:0]   m_data,
    output wire                 m_valid,
    input  wire                 m_ready
);
    localparam integer BW     = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer TREE   = (EVERY == 0) ? 0 : $clog2(LANES) / EVERY;
    localparam integer SUM_W  = Q_W + $clog2(LANES);
    localparam integer SQ_W   = 2 * Q_W + $clog2(LANES);
    localparam integer LENGTH = LANES * BEATS;
    localparam [BW-1:0] LAST  = BEATS[BW-1:0] - 1'b1;

    reg  valid_out_reg;
    wire en = m_ready || !valid_out_reg;
    assign s_ready = en;
    assign m_valid = valid_out_reg;

    // Control flags of the beats in the integer, square and tree stages.
    reg [BW-1:0] beat_reg;
    reg [TREE+1:0] valid_reg, first_reg, last_reg;
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= {valid_reg[TREE:0], s_valid};
            first_reg <= {first_reg[TREE:0], beat_reg == {BW{1'b0}}};
            last_reg  <= {last_reg[TREE:0], beat_reg == LAST};
            if (s_valid) beat_reg <= (beat_reg == LAST) ? {BW{1'b0}} : beat_reg + 1'b1;
        end
        if (rst) begin
            valid_reg <= {TREE+2{1'b0}};
            beat_reg  <= {BW{1'b0}};
        end
    end

    wire [LANES*Q_W-1:0]   integers;
    wire [2*LANES*Q_W-1:0] squares;
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [X_W-1:0]               x = s_data[g*X_W +: X_W];
            wire [X_W+Q_W+SHIFT-1:0]     wide = {{Q_W{(X_SIGNED != 0) && x[X_W-1]}}, x, {SHIFT{1'b0}}};
            reg  signed [Q_W-1:0]        q_reg, again_reg;
            wire [2*Q_W-1:0]             square;
            reg  [2*Q_W-1:0]             square_reg;
            hg_norm_square #(.Q_W(Q_W)) of_q (.q(q_reg), .square(square));
            always @(posedge clk) if (en) begin
                q_reg      <= wide[Q_W-1:0] + OFFSET;
                again_reg  <= q_reg;
                square_reg <= square;
            end
            assign integers[g*Q_W +: Q_W] = again_reg;
            assign squares[2*g*Q_W +: 2*Q_W] = square_reg;
            wire unused_lane = &{1'b0, wide};
        end
    endgenerate

    wire [SUM_W-1:0] beat_sum;
    wire [SQ_W-1:0]  beat_squares;
    hg_adder_tree #(.N(LANES), .IN_W(Q_W), .SIGNED(1), .EVERY(EVERY)) sum_tree (
        .clk(clk), .en(en), .terms(integers), .sum(beat_sum)
    );
    hg_adder_tree #(.N(LANES), .IN_W(2*Q_W), .SIGNED(0), .EVERY(EVERY)) square_tree (
        .clk(clk), .en(en), .terms(squares), .sum(beat_squares)
    );

    // Sums of the row, their products, and the moment.
    wire [SUM_W+S_W-1:0] sum_wide    = {{S_W{beat_sum[SUM_W-1]}}, beat_sum};
    wire [SQ_W+M_W-1:0]  square_wide = {{M_W{1'b0}}, beat_squares};
    reg                  row_reg, product_reg;
    reg signed [S_W-1:0] sum_reg, sum_of_product_reg, sum_out_reg;
    reg [M_W-1:0]        squares_reg, scaled_reg, moment_reg;
    wire signed [2*S_W+M_W-1:0] sum_square = sum_reg * sum_reg;
    wire [M_W+31:0]      scaled = squares_reg * LENGTH[31:0];
    wire [M_W-1:0]       taken_off;
    assign m_data = {moment_reg, sum_out_reg};
    always @(posedge clk) begin
        if (en) begin
            if (valid_reg[TREE+1]) begin
                sum_reg     <= (first_reg[TREE+1] ? {S_W{1'b0}} : sum_reg) + sum_wide[S_W-1:0];
                squares_reg <= (first_reg[TREE+1] ? {M_W{1'b0}} : squares_reg) + square_wide[M_W-1:0];
            end
            row_reg            <= valid_reg[TREE+1] && last_reg[TREE+1];
            scaled_reg         <= scaled[M_W-1:0];
            sum_of_product_reg <= sum_reg;
            product_reg        <= row_reg;
            moment_reg         <= scaled_reg - taken_off;
            sum_out_reg        <= (CENTERED != 0) ? sum_of_product_reg : {S_W{1'b0}};
            valid_out_reg      <= product_reg;
        end
        if (rst) begin
            row_reg       <= 1'b0;
            product_reg   <= 1'b0;
            valid_out_reg <= 1'b0;
        end
    end
    generate
        if (CENTERED != 0) begin : centered
            reg [M_W-1:0] square_of_sum_reg;
            always @(posedge clk) if (en) square_of_sum_reg <= sum_square[M_W-1:0];
            assign taken_off = square_of_sum_reg;
        end else begin : as_it_is
            assign taken_off = {M_W{1'b0}};
        end
    endgenerate
    wire unused = &{1'b0, sum_wide, square_wide, sum_square, scaled};
endmodule
`default_nettype wire
