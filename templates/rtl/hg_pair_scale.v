// hg_pair_scale: Scaled sum or product of two operands packed in one element.
//
// Purpose     code = clamp(round((a * MA + b * MB + R) / 2^SHIFT), LOW, HIGH), or with PRODUCT
//             code = clamp(round(((a - ZA) * (b - ZB) * MA + R) / 2^SHIFT), LOW, HIGH).
// Parameters  LANES      Elements of a beat.
//             SIGNED     1: operands are two's complement; 0: unsigned.
//             PRODUCT    1: product; 0: sum.
//             ZA, ZB     Zero points of the operands for the product (two's complement of 9 bits).
//             M_W        Bits of the multipliers MA, MB (two's complement).
//             R_W, R     Bits of the offset, and the offset (two's complement).
//             SHIFT      Right shift, at least 1.
//             EVEN       1: round half to even; 0: round down.
//             OUT_W      Bits of the code.
//             LOW, HIGH  Clamp bounds (two's complement of OUT_W + 1 bits).
// Latency     5 cycles, one beat per cycle.
// Contract    Exact integers. Operand a is the low byte of an element, b the high byte.
`default_nettype none
module hg_pair_scale #(
    parameter integer   LANES   = 2,
    parameter integer   SIGNED  = 1,
    parameter integer   PRODUCT = 0,
    parameter [8:0]     ZA      = 9'd3,
    parameter [8:0]     ZB      = 9'd5,
    parameter integer   M_W     = 8,
    parameter [M_W-1:0] MA      = 3,
    parameter [M_W-1:0] MB      = 1,
    parameter integer   R_W     = 8,
    parameter [R_W-1:0] R       = 1,
    parameter integer   SHIFT   = 7,
    parameter integer   EVEN    = 1,
    parameter integer   OUT_W   = 8,
    parameter [OUT_W:0] LOW     = -128,
    parameter [OUT_W:0] HIGH    = 127
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire [LANES*16-1:0]    s_data,
    input  wire                   s_valid,
    output wire                   s_ready,
    output wire [LANES*OUT_W-1:0] m_data,
    output wire                   m_valid,
    input  wire                   m_ready
);
    localparam integer P0_W = M_W + 20;
    localparam integer P1_W = (P0_W > R_W) ? P0_W : R_W;
    localparam integer P2_W = (P1_W > SHIFT + OUT_W) ? P1_W : SHIFT + OUT_W;
    localparam integer S_W  = P2_W + 2;
    localparam integer Q_W  = S_W - SHIFT + 1;

    reg [4:0] valid_reg;
    wire      en = m_ready || !valid_reg[4];
    assign s_ready = en;
    assign m_valid = valid_reg[4];
    always @(posedge clk) begin
        if (en) valid_reg <= {valid_reg[3:0], s_valid};
        if (rst) valid_reg <= 5'd0;
    end

    localparam signed [S_W-1:0]   R_S  = {{S_W-R_W{R[R_W-1]}}, R};
    localparam signed [M_W-1:0]   MA_S = MA;
    localparam signed [M_W-1:0]   MB_S = MB;
    localparam signed [Q_W+OUT_W:0] LOW_S  = {{Q_W{LOW[OUT_W]}}, LOW};
    localparam signed [Q_W+OUT_W:0] HIGH_S = {{Q_W{HIGH[OUT_W]}}, HIGH};

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [7:0] a = s_data[16*g +: 8];
            wire [7:0] b = s_data[16*g + 8 +: 8];
            wire signed [9:0] as = {{2{(SIGNED != 0) && a[7]}}, a};
            wire signed [9:0] bs = {{2{(SIGNED != 0) && b[7]}}, b};
            reg  signed [9:0]       a_reg, b_reg;
            (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
            reg  signed [S_W-1:0]   first_reg, second_reg, sum_reg;
            reg  signed [Q_W-1:0]   round_reg;
            reg  [OUT_W-1:0]        code_reg;
            wire signed [Q_W-1:0]   floor = {sum_reg[S_W-1], sum_reg[S_W-1:SHIFT]};
            wire                    half = sum_reg[SHIFT-1];
            wire                    rest;
            if (SHIFT == 1) begin : one
                assign rest = 1'b0;
            end else begin : more
                assign rest = |sum_reg[SHIFT-2:0];
            end
            wire inc = (EVEN != 0) && half && (rest || floor[0]);
            wire signed [Q_W+OUT_W:0] wide = {{OUT_W+1{round_reg[Q_W-1]}}, round_reg};

            if (PRODUCT != 0) begin : product
                always @(posedge clk) if (en) begin
                    a_reg      <= as - $signed({ZA[8], ZA});
                    b_reg      <= bs - $signed({ZB[8], ZB});
                    first_reg  <= a_reg * b_reg;
                    second_reg <= {S_W{1'b0}};
                    sum_reg    <= first_reg * MA_S + R_S;
                end
            end else begin : sum
                always @(posedge clk) if (en) begin
                    a_reg      <= as;
                    b_reg      <= bs;
                    first_reg  <= a_reg * MA_S;
                    second_reg <= b_reg * MB_S + R_S;
                    sum_reg    <= first_reg + second_reg;
                end
            end
            always @(posedge clk) if (en) begin
                round_reg <= floor + $signed({{Q_W-1{1'b0}}, inc});
                code_reg  <= (wide < LOW_S)  ? LOW_S[OUT_W-1:0]
                           : (wide > HIGH_S) ? HIGH_S[OUT_W-1:0] : wide[OUT_W-1:0];
            end
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused_lane = &{1'b0, second_reg, wide};
        end
    endgenerate
    wire unused = &{1'b0, MB_S, ZA, ZB};
endmodule
`default_nettype wire
