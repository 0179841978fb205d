// hg_shift: Rescaling by a power of two, rounded and clamped.
//
// Purpose     code = clamp(round((x * 2^LEFT + B) / 2^SHIFT), LOW, HIGH), with B per channel.
// Parameters  LANES      Elements of a beat.
//             FOLDS      Sets of channel parameters; beat i uses set i mod FOLDS.
//             IN_W       Bits of x.
//             IN_SIGNED  1: x is two's complement; 0: unsigned.
//             LEFT       Left shift of x.
//             B_W        Bits of the offset B (two's complement).
//             SHIFT      Right shift.
//             MODE       0: half to even; 1: ceil; 2: floor; 3: away from zero; 4: toward zero; 5: half
//                        away from zero; 6: half toward zero.
//             OUT_W      Bits of the code.
//             LOW, HIGH  Clamp bounds (two's complement of OUT_W + 1 bits).
//             FILE       $readmemh file of FOLDS words of LANES * B_W bits.
//             ADD        0: all B are 0, and there is no file.
//             SPLIT      1: a register between rounding and clamping.
//             FLIP       Bits of s_data that arrive inverted.
// Latency     1 + ADD + SPLIT cycles, one beat per cycle.
// Contract    Exact integers.
`default_nettype none
module hg_shift #(
    parameter integer     LANES     = 2,
    parameter integer     FOLDS     = 2,
    parameter integer     IN_W      = 12,
    parameter integer     IN_SIGNED = 1,
    parameter integer     LEFT      = 0,
    parameter integer     B_W       = 8,
    parameter integer     SHIFT     = 3,
    parameter integer     MODE      = 0,
    parameter integer     OUT_W     = 4,
    parameter [OUT_W:0]   LOW       = -8,
    parameter [OUT_W:0]   HIGH      = 7,
    parameter             FILE      = "",
    parameter integer     ADD       = 1,
    parameter integer     SPLIT     = 1,
    parameter [LANES*IN_W-1:0] FLIP = 0
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
    localparam integer STAGES = 1 + ((ADD != 0) ? 1 : 0) + ((SPLIT != 0) ? 1 : 0);
    localparam integer A_W  = IN_W + 1 + LEFT;
    localparam integer S0_W = (ADD == 0) ? A_W : ((A_W > B_W) ? A_W : B_W) + 1;
    localparam integer S1_W = (S0_W > SHIFT) ? S0_W : SHIFT + 1;
    localparam integer S_W  = (S1_W > OUT_W) ? S1_W : OUT_W + 1;
    localparam integer Q_W  = S_W - SHIFT + 1;   // room for the carry of rounding up

    reg  [STAGES-1:0]    valid_reg;
    wire [STAGES:0]      valid = {valid_reg, s_valid};
    wire                 unused = valid[STAGES];
    wire                 en = m_ready || !valid_reg[STAGES-1];
    wire [LANES*B_W-1:0] offsets;

    assign s_ready = en;
    assign m_valid = valid_reg[STAGES-1];
    always @(posedge clk) begin
        if (en) valid_reg <= valid[STAGES-1:0];
        if (rst) valid_reg <= {STAGES{1'b0}};
    end

    generate
        if (ADD == 0) begin : none
            assign offsets = {LANES*B_W{1'b0}};
        end else begin : stored
            localparam integer FW = (FOLDS <= 1) ? 1 : $clog2(FOLDS);
            wire [FW-1:0] unused_fold, fold_next;
            (* rom_style = "auto" *) reg [LANES*B_W-1:0] rom [0:FOLDS-1];
            reg [LANES*B_W-1:0] offset_reg;
            initial if (FILE != "") $readmemh(FILE, rom);
            hg_index #(.N(FOLDS)) turn (
                .clk(clk), .rst(rst), .step(s_valid && en), .index(unused_fold), .next(fold_next)
            );
            always @(posedge clk) if ((s_valid && en) || rst) offset_reg <= rom[fold_next];
            assign offsets = offset_reg;
        end
    endgenerate

    // Rounding: quotient is the floor; half and rest describe the fraction.
    function up(input neg, input odd, input half, input rest);
        case (MODE)
            0: up = half && (rest || odd);
            1: up = half || rest;
            3: up = !neg && (half || rest);
            4: up = neg && (half || rest);
            5: up = half && (rest || !neg);
            6: up = half && (rest || neg);
            default: up = 1'b0;
        endcase
    endfunction

    // a + inc > b, two's complement. With a constant: a chain of AND and OR from the lowest bit up.
    localparam integer C_W = Q_W + OUT_W + 1;
    localparam [C_W-1:0] LOW_S  = {{Q_W{LOW[OUT_W]}}, LOW};
    localparam [C_W-1:0] HIGH_S = {{Q_W{HIGH[OUT_W]}}, HIGH};
    localparam [C_W-1:0] UNDER  = LOW_S - 1'b1;
    function beyond(input [C_W-1:0] a, input [C_W-1:0] b, input inc);
        integer i;
        begin
            beyond = inc;
            for (i = 0; i < C_W - 1; i = i + 1) beyond = b[i] ? (a[i] && beyond) : (a[i] || beyond);
            beyond = b[C_W-1] ? (!a[C_W-1] || beyond) : (!a[C_W-1] && beyond);
        end
    endfunction

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [IN_W-1:0] x = s_data[g*IN_W +: IN_W] ^ FLIP[g*IN_W +: IN_W];
            wire [B_W-1:0]  b = offsets[g*B_W +: B_W];
            wire signed [S_W-1:0] xs = {{S_W-IN_W{(IN_SIGNED != 0) && x[IN_W-1]}}, x};
            wire signed [S_W-1:0] bs = {{S_W-B_W{b[B_W-1]}}, b};
            wire signed [S_W-1:0] sum;
            reg  [OUT_W-1:0]      code_reg;
            if (ADD == 0) begin : plain
                assign sum = xs <<< LEFT;
                wire unused_b = &{1'b0, bs};
            end else begin : offset
                reg signed [S_W-1:0] sum_reg;
                always @(posedge clk) if (en) sum_reg <= (xs <<< LEFT) + bs;
                assign sum = sum_reg;
            end

            wire half, rest;
            wire signed [Q_W-1:0] floor = {sum[S_W-1], sum[S_W-1:SHIFT]};
            if (SHIFT == 0) begin : whole
                assign half = 1'b0;
                assign rest = 1'b0;
            end else if (SHIFT == 1) begin : one
                assign half = sum[0];
                assign rest = 1'b0;
            end else begin : more
                assign half = sum[SHIFT-1];
                assign rest = |sum[SHIFT-2:0];
            end
            wire inc = up(sum[S_W-1], floor[0], half, rest);

            // Rounding and clamping work in parallel. The LUTs before the carry chain handle values below
            // LOW before rounding. A set or reset of the register handles values above HIGH.
            wire [C_W-1:0]   wide = {{OUT_W+1{floor[Q_W-1]}}, floor};
            wire             low = !beyond(wide, UNDER, 1'b0), high = beyond(wide, HIGH_S, inc);
            wire [OUT_W-1:0] base = low ? LOW_S[OUT_W-1:0] : wide[OUT_W-1:0];
            wire [OUT_W:0]   step = {{OUT_W{1'b0}}, inc && !low};
            wire [OUT_W-1:0] code = base + step[OUT_W-1:0];
            wire             unused_step = step[OUT_W];
            wire [OUT_W:0]   rounded;
            if (SPLIT == 0) begin : at_once
                assign rounded = {high, code};
            end else begin : split
                reg [OUT_W:0] round_reg;
                always @(posedge clk) if (en) round_reg <= {high, code};
                assign rounded = round_reg;
            end
            always @(posedge clk) if (en) code_reg <= rounded[OUT_W] ? HIGH_S[OUT_W-1:0] : rounded[OUT_W-1:0];
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
        end
    endgenerate
endmodule
`default_nettype wire
