// hg_norm_scale: Elements of each row minus the row's mean, times one factor, rounded to float32.
//
// Purpose     Last step of a normalization: round((N * q - sum) * significand * 2^(BIAS - 126 - steps)) for
//             each of the N = LANES * BEATS integers q of a row.
// Parameters  LANES          Codes of a beat.
//             BEATS          Beats of a row.
//             X_W, X_SIGNED  Bits of a code; 1: two's complement, 0: unsigned.
//             SHIFT, OFFSET  q = code * 2^SHIFT + OFFSET.
//             Q_W            Bits of q (two's complement).
//             S_W            Bits of the sum (two's complement).
//             E_W            Bits of steps.
//             A_W            Bits of the magnitude of N * q - sum.
//             BIAS           See above.
// Latency     8 enabled cycles (m_ready || !m_valid). One beat per cycle.
// Contract    b = {steps, significand, sum}: one beat per row, consumed with the last beat of a. Output m
//             holds float32 bits, rounded to nearest even. The caller proves that every result other than 0
//             is a normal number. Signal a_ready depends on b_valid, and b_ready on a_valid.
`default_nettype none
module hg_norm_scale #(
    parameter integer          LANES    = 2,
    parameter integer          BEATS    = 3,
    parameter integer          X_W      = 4,
    parameter integer          X_SIGNED = 1,
    parameter integer          SHIFT    = 0,
    parameter integer          Q_W      = 4,
    parameter signed [Q_W-1:0] OFFSET   = 0,
    parameter integer          S_W      = 7,
    parameter integer          E_W      = 6,
    parameter integer          A_W      = 7,
    parameter integer          BIAS     = 127
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*X_W-1:0]  a_data,
    input  wire                  a_valid,
    output wire                  a_ready,
    input  wire [E_W+24+S_W-1:0] b_data,
    input  wire                  b_valid,
    output wire                  b_ready,
    output wire [LANES*32-1:0]   m_data,
    output wire                  m_valid,
    input  wire                  m_ready
);
    localparam integer BW     = (BEATS <= 1) ? 1 : $clog2(BEATS);
    localparam integer D_W    = A_W + 1;
    localparam integer L_W    = $clog2(A_W + 1);
    localparam integer LENGTH = LANES * BEATS;
    localparam integer BASE   = BIAS + A_W + 23;
    localparam [BW-1:0] LAST  = BEATS[BW-1:0] - 1'b1;

    reg [7:0]    valid_reg;
    reg [BW-1:0] beat_reg;
    wire         en = m_ready || !valid_reg[7];
    wire         take = a_valid && b_valid;
    assign a_ready = en && b_valid;
    assign b_ready = en && a_valid && beat_reg == LAST;
    assign m_valid = valid_reg[7];
    always @(posedge clk) begin
        if (en) begin
            valid_reg <= {valid_reg[6:0], take};
            if (take) beat_reg <= (beat_reg == LAST) ? {BW{1'b0}} : beat_reg + 1'b1;
        end
        if (rst) begin
            valid_reg <= 8'd0;
            beat_reg  <= {BW{1'b0}};
        end
    end

    // Row constants, delayed alongside the row's elements.
    reg [S_W-1:0] sum_reg;
    reg [23:0]    factor1_reg, factor2_reg, factor3_reg, factor4_reg;
    reg [E_W-1:0] steps1_reg, steps2_reg, steps3_reg, steps4_reg, steps5_reg, steps6_reg;
    wire [D_W+S_W-1:0] sum_wide = {{D_W{sum_reg[S_W-1]}}, sum_reg};
    always @(posedge clk) if (en) begin
        sum_reg     <= b_data[S_W-1:0];
        factor1_reg <= b_data[S_W +: 24];
        factor2_reg <= factor1_reg;
        factor3_reg <= factor2_reg;
        factor4_reg <= factor3_reg;
        steps1_reg  <= b_data[S_W+24 +: E_W];
        steps2_reg  <= steps1_reg;
        steps3_reg  <= steps2_reg;
        steps4_reg  <= steps3_reg;
        steps5_reg  <= steps4_reg;
        steps6_reg  <= steps5_reg;
    end

    // Leading zeros.
    function [L_W-1:0] zeros(input [A_W-1:0] x);
        integer i;
        begin
            zeros = A_W[L_W-1:0];
            for (i = 0; i < A_W; i = i + 1)
                if (x[i]) zeros = A_W[L_W-1:0] - i[L_W-1:0] - 1'b1;
        end
    endfunction

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [X_W-1:0]           x = a_data[g*X_W +: X_W];
            wire [X_W+Q_W+SHIFT-1:0] wide = {{Q_W{(X_SIGNED != 0) && x[X_W-1]}}, x, {SHIFT{1'b0}}};
            wire signed [Q_W-1:0]    q = wide[Q_W-1:0] + OFFSET;
            wire signed [Q_W+D_W+31:0] times = q * $signed(LENGTH[31:0]);
            reg  [D_W-1:0]           times_reg, element_reg;
            reg  [A_W-1:0]           size_reg, high_reg;
            reg  [L_W-1:0]           zeros4_reg, zeros5_reg, zeros6_reg;
            reg                      sign3_reg, sign4_reg, sign5_reg, sign6_reg, sign7_reg;
            reg                      some4_reg, some5_reg, some6_reg, some7_reg;
            reg  [A_W+23:0]          product5_reg, product6_reg;
            wire                     top = product6_reg[A_W+23];
            wire [A_W+23:0]          placed = top ? product6_reg : product6_reg << 1;
            wire                     sticky;
            wire                     up = placed[A_W-1] && (placed[A_W] || sticky);
            reg  [24:0]              rounded7_reg;
            reg  [9:0]               exponent7_reg;
            wire [9:0]               exponent = exponent7_reg + {9'd0, rounded7_reg[24]};
            reg  [31:0]              float_reg;
            if (A_W > 1) begin : rest
                assign sticky = placed[A_W-2:0] != {A_W-1{1'b0}};
            end else begin : no_rest
                assign sticky = 1'b0;
            end
            always @(posedge clk) if (en) begin
                times_reg     <= times[D_W-1:0];
                element_reg   <= times_reg - sum_wide[D_W-1:0];
                sign3_reg     <= element_reg[D_W-1];
                size_reg      <= element_reg[D_W-1] ? -element_reg[A_W-1:0] : element_reg[A_W-1:0];
                sign4_reg     <= sign3_reg;
                some4_reg     <= size_reg != {A_W{1'b0}};
                zeros4_reg    <= zeros(size_reg);
                high_reg      <= size_reg << zeros(size_reg);
                sign5_reg     <= sign4_reg;
                some5_reg     <= some4_reg;
                zeros5_reg    <= zeros4_reg;
                product5_reg  <= high_reg * factor4_reg;
                sign6_reg     <= sign5_reg;
                some6_reg     <= some5_reg;
                zeros6_reg    <= zeros5_reg;
                product6_reg  <= product5_reg;
                sign7_reg     <= sign6_reg;
                some7_reg     <= some6_reg;
                rounded7_reg  <= {1'b0, placed[A_W+23:A_W]} + {24'd0, up};
                exponent7_reg <= BASE[9:0] + {9'd0, top} - {{10-L_W{1'b0}}, zeros6_reg}
                               - {{10-E_W{1'b0}}, steps6_reg};
                float_reg     <= some7_reg ? {sign7_reg, exponent[7:0], rounded7_reg[22:0]} : 32'd0;
            end
            assign m_data[g*32 +: 32] = float_reg;
            wire unused_lane = &{1'b0, wide, times, exponent[9:8], rounded7_reg[23]};
        end
    endgenerate
    wire unused = &{1'b0, sum_wide};
endmodule
`default_nettype wire
