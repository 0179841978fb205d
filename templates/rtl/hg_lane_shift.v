// hg_lane_shift: Rescaling by powers of two, with a shift, rounding and bounds for each lane.
//
// Purpose     code = clamp(round((x * 2^LEFT + B) / 2^SHIFT), LOW, HIGH), all of them constants of the lane.
// Parameters  LANES     Elements of a beat.
//             IN_W      Bits of x.
//             IN_SIGNED 1: x is two's complement; 0: unsigned.
//             OUT_W     Bits of the code.
//             SUM_W     Bits of the widest sum, and at least IN_W.
//             WIDTHS    A byte per lane, the first in the low byte: bits of the sum x * 2^LEFT + B.
//             LEFTS     A byte per lane: left shift of x.
//             SHIFTS    A byte per lane: right shift of the sum, less than the bits of the sum.
//             MODES     A byte per lane: 0: half to even; 1: ceil; 2: floor; 3: away from zero; 4: toward
//                       zero; 5: half away from zero; 6: half toward zero.
//             FLAGS     A byte per lane. Bit 0: sums are unsigned. Bit 1: some codes are less than LOW.
//                       Bit 2: some codes exceed HIGH. Bit 3: the code is LOW for every x.
//             OFFSETS   SUM_W + 1 bits per lane: B (two's complement).
//             LOWS, HIGHS  OUT_W + 1 bits per lane: bounds (two's complement).
//             ADD       1: a register between the sum and the rounding.
// Latency     1 + ADD cycles, one beat per cycle.
// Contract    Exact integers. A lane has no other x than those whose sums fit its bits, and whose codes keep
//             the bounds that FLAGS does not name.
`default_nettype none
module hg_lane_shift #(
    parameter integer LANES     = 2,
    parameter integer IN_W      = 12,
    parameter integer IN_SIGNED = 1,
    parameter integer OUT_W     = 4,
    parameter integer SUM_W     = 13,
    parameter [8*LANES-1:0] WIDTHS = 16'h0d0d,
    parameter [8*LANES-1:0] LEFTS  = 16'h0000,
    parameter [8*LANES-1:0] SHIFTS = 16'h0302,
    parameter [8*LANES-1:0] MODES  = 16'h0002,
    parameter [8*LANES-1:0] FLAGS  = 16'h0606,
    parameter [LANES*(SUM_W+1)-1:0] OFFSETS = 28'h0000005,
    parameter [LANES*(OUT_W+1)-1:0] LOWS    = 10'h318,
    parameter [LANES*(OUT_W+1)-1:0] HIGHS   = 10'h0e7,
    parameter integer ADD       = 1
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
    localparam integer STAGES = 1 + ((ADD != 0) ? 1 : 0);

    reg  [STAGES-1:0] valid_reg;
    wire [STAGES:0]   valid = {valid_reg, s_valid};
    wire              unused = valid[STAGES];
    wire              en = m_ready || !valid_reg[STAGES-1];

    assign s_ready = en;
    assign m_valid = valid_reg[STAGES-1];
    always @(posedge clk) begin
        if (en) valid_reg <= valid[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end

    // Number of zeros below the lowest 1 of the low `most` bits.
    function integer zeros(input [SUM_W:0] value, input integer most);
        integer i;
        begin
            zeros = most;
            for (i = SUM_W; i >= 0; i = i - 1) if (value[i] && i < most) zeros = i;
        end
    endfunction

    // Rounding: half and rest describe the fraction below the quotient.
    function up(input [7:0] mode, input neg, input odd, input half, input rest);
        case (mode)
            8'd0: up = half && (rest || odd);
            8'd1: up = half || rest;
            8'd3: up = !neg && (half || rest);
            8'd4: up = neg && (half || rest);
            8'd5: up = half && (rest || !neg);
            8'd6: up = half && (rest || neg);
            default: up = 1'b0;
        endcase
    endfunction

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            localparam integer W     = {24'd0, WIDTHS[8*g +: 8]};
            localparam integer LEFT  = {24'd0, LEFTS[8*g +: 8]};
            localparam integer SHIFT = {24'd0, SHIFTS[8*g +: 8]};
            localparam [7:0]   MODE  = MODES[8*g +: 8];
            localparam [7:0]   FLAG  = FLAGS[8*g +: 8];
            localparam [SUM_W:0] B   = OFFSETS[g*(SUM_W+1) +: SUM_W+1];
            localparam [OUT_W:0] LOW  = LOWS[g*(OUT_W+1) +: OUT_W+1];
            localparam [OUT_W:0] HIGH = HIGHS[g*(OUT_W+1) +: OUT_W+1];
            localparam integer TZ    = zeros(B, W);
            // Bits of the rounded quotient with its sign, and of all comparisons.
            localparam integer Q_W   = W - SHIFT + 2;
            localparam integer C_W   = ((Q_W > OUT_W + 1) ? Q_W : OUT_W + 1) + 1;

            if (FLAG[3]) begin : constant
                wire unused_x = &{1'b0, s_data[g*IN_W +: IN_W]};
                assign m_data[g*OUT_W +: OUT_W] = LOW[OUT_W-1:0];
            end else begin : varies
                localparam integer X_W = ((IN_W + LEFT > W) ? IN_W + LEFT : W) + 1;
                wire [IN_W-1:0] x = s_data[g*IN_W +: IN_W];
                wire [X_W-1:0]  wide = {{X_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x} << LEFT;
                wire [W-1:0]    added, sum;
                // The sum needs no carry below the lowest 1 of B.
                if (TZ == W) begin : plain
                    assign added = wide[W-1:0];
                end else if (TZ == 0) begin : whole
                    assign added = wide[W-1:0] + B[W-1:0];
                end else begin : part
                    assign added = {wide[W-1:TZ] + B[W-1:TZ], wide[TZ-1:0]};
                end
                wire unused_wide = &{1'b0, wide[X_W-1:W]};
                if (ADD == 0) begin : at_once
                    assign sum = added;
                end else begin : stored
                    reg [W-1:0] sum_reg;
                    always @(posedge clk) if (en) sum_reg <= added;
                    assign sum = sum_reg;
                end

                wire neg = !FLAG[0] && sum[W-1];
                wire half, rest;
                if (SHIFT == 0) begin : exact
                    assign half = 1'b0;
                    assign rest = 1'b0;
                end else if (SHIFT == 1) begin : one
                    assign half = sum[0];
                    assign rest = 1'b0;
                end else begin : more
                    assign half = sum[SHIFT-1];
                    assign rest = |sum[SHIFT-2:0];
                end
                wire inc = up(MODE, neg, sum[SHIFT], half, rest);
                wire signed [C_W-1:0] floor = {{C_W-W+SHIFT{neg}}, sum[W-1:SHIFT]};
                wire signed [C_W-1:0] quotient;
                if (MODE == 8'd2 || SHIFT == 0) begin : cut
                    assign quotient = floor;
                    wire unused_inc = inc;
                end else begin : rounds
                    assign quotient = floor + {{C_W-1{1'b0}}, inc};
                end
                wire signed [C_W-1:0] least = {{C_W-OUT_W-1{LOW[OUT_W]}}, LOW};
                wire signed [C_W-1:0] most  = {{C_W-OUT_W-1{HIGH[OUT_W]}}, HIGH};
                wire low  = FLAG[1] && quotient < least;
                wire high = FLAG[2] && quotient > most;
                reg [OUT_W-1:0] code_reg;
                always @(posedge clk) if (en) begin
                    code_reg <= high ? HIGH[OUT_W-1:0] : quotient[OUT_W-1:0];
                    if (low) code_reg <= LOW[OUT_W-1:0];
                end
                assign m_data[g*OUT_W +: OUT_W] = code_reg;
            end
        end
    endgenerate
endmodule
`default_nettype wire
