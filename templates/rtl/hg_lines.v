// hg_lines: Function of lines between knots, symmetric about zero.
//
// Purpose     v = (x * M + half) >> SHIFT. |v| is the number of a knot, at most the last one, and FRAC_W
//             bits of a fraction. h = ((value << LEFT) + fraction * rise) >> RIGHT, with the value and the
//             rise of the knot. code = h, or MIRROR - h where v < 0.
// Parameters  LANES       Elements of a beat.
//             IN_W        Bits of x.
//             IN_SIGNED   1: x is two's complement; 0: unsigned.
//             OUT_W       Bits of the code.
//             M_W, M      Bits of the multiplier (two's complement), and the multiplier, which is positive.
//             SHIFT       Right shift of the product, at most IN_W + M_W; half is 2^(SHIFT - 1), or 0.
//             ADDR_W      Bits of the number of a knot.
//             FRAC_W      Bits of the fraction.
//             VALUE_W     Bits of a value (unsigned).
//             RISE_W      Bits of a rise (unsigned).
//             LEFT        Left shift of a value.
//             RIGHT       Right shift of the sum.
//             MIRROR      Constant of negative v.
//             STYLE       0: a DSP block for fraction * rise; 1: rows of adders (see hg_multiply).
//             M_STAGES    Registers of the product x * M.
//             STAGES      Registers of the product fraction * rise.
//             FILE        $readmemh file of 2^ADDR_W words: from the low bits, value and rise.
// Latency     M_STAGES + STAGES + 5 cycles, one more if SHIFT > 0. One beat per cycle.
// Contract    Exact integers. The memory has a registered read and an output register, as in block RAM.
`default_nettype none
module hg_lines #(
    parameter integer     LANES     = 2,
    parameter integer     IN_W      = 12,
    parameter integer     IN_SIGNED = 1,
    parameter integer     OUT_W     = 9,
    parameter integer     M_W       = 4,
    parameter [M_W-1:0]   M         = 5,
    parameter integer     SHIFT     = 2,
    parameter integer     ADDR_W    = 4,
    parameter integer     FRAC_W    = 5,
    parameter integer     VALUE_W   = 8,
    parameter integer     RISE_W    = 5,
    parameter integer     LEFT      = 5,
    parameter integer     RIGHT     = 5,
    parameter [OUT_W-1:0] MIRROR    = 0,
    parameter integer     STYLE     = 1,
    parameter integer     M_STAGES  = 1,
    parameter integer     STAGES    = 2,
    parameter             FILE      = ""
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
    localparam integer DEPTH   = M_STAGES + STAGES + ((SHIFT > 0) ? 6 : 5);
    localparam integer X_W     = IN_W + ((IN_SIGNED != 0) ? 0 : 1);
    localparam integer P_W     = X_W + M_W;
    localparam integer V0_W    = P_W - SHIFT + 1;
    localparam integer PLACE_W = ADDR_W + FRAC_W;
    localparam integer V_W     = (V0_W > PLACE_W) ? V0_W : PLACE_W + 1;
    localparam integer R_W     = RISE_W + FRAC_W + 2;                     // the product, with two sign bits
    localparam integer S0_W    = (VALUE_W + LEFT > R_W) ? VALUE_W + LEFT : R_W;
    localparam integer S_W     = ((S0_W > RIGHT) ? S0_W : RIGHT) + 1;     // the sum
    localparam integer H_W     = (S_W - RIGHT > OUT_W) ? S_W - RIGHT : OUT_W;
    localparam [V_W+SHIFT-1:0] HALF = ({{V_W+SHIFT-1{1'b0}}, 1'b1} << SHIFT) >> 1;

    wire en;
    hg_stages #(.STAGES(DEPTH)) stages (
        .clk(clk), .rst(rst), .s_valid(s_valid), .s_ready(s_ready),
        .m_valid(m_valid), .m_ready(m_ready), .en(en)
    );

    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : lane
            wire [IN_W-1:0] x  = s_data[g*IN_W +: IN_W];
            wire [IN_W:0]   xs = {(IN_SIGNED != 0) && x[IN_W-1], x};
            wire [P_W-1:0]  scaled;
            hg_multiply #(.X_W(X_W), .M_W(M_W), .STYLE(2), .STAGES(M_STAGES), .M(M)) scale (
                .clk(clk), .en(en), .x(xs[X_W-1:0]), .m(M), .y(scaled)
            );
            wire [V_W+SHIFT-1:0] rounded = {{V_W+SHIFT-P_W{scaled[P_W-1]}}, scaled} + HALF;
            wire [V_W-1:0]       v;
            if (SHIFT > 0) begin : shifted
                reg [V_W-1:0] v_reg;
                always @(posedge clk) if (en) v_reg <= rounded[SHIFT +: V_W];
                assign v = v_reg;
            end else begin : whole
                assign v = rounded;
            end

            // The magnitude: beyond the last knot all bits of its number are set.
            wire [V_W-1:0] magnitude = (v ^ {V_W{v[V_W-1]}}) + {{V_W-1{1'b0}}, v[V_W-1]};
            wire           over = |magnitude[V_W-1:PLACE_W];
            reg  [ADDR_W-1:0]   knot_reg;
            reg  [3*FRAC_W-1:0] fraction_reg;
            reg  [STAGES+3:0]   negative_reg;
            // Read, and the output register of the memory.
            (* rom_style = "auto" *) reg [RISE_W+VALUE_W-1:0] rom [0:(1<<ADDR_W)-1];
            initial if (FILE != "") $readmemh(FILE, rom);
            reg  [RISE_W+VALUE_W-1:0]     word_reg, held_reg;
            // Values wait for the product.
            reg  [STAGES*VALUE_W-1:0]     value_reg;
            wire [(STAGES+1)*VALUE_W-1:0] value_in = {value_reg, held_reg[VALUE_W-1:0]};
            wire [VALUE_W-1:0]            value = value_in[STAGES*VALUE_W +: VALUE_W];
            wire [R_W-1:0]                rise;
            hg_multiply #(.X_W(RISE_W+1), .M_W(FRAC_W+1), .STYLE(STYLE), .STAGES(STAGES)) slope (
                .clk(clk), .en(en), .x({1'b0, held_reg[VALUE_W +: RISE_W]}),
                .m({1'b0, fraction_reg[2*FRAC_W +: FRAC_W]}), .y(rise)
            );
            wire [S_W-1:0]   sum = ({{S_W-VALUE_W{1'b0}}, value} << LEFT) + {{S_W-R_W{1'b0}}, rise};
            wire [H_W-1:0]   height = {{H_W-S_W+RIGHT{1'b0}}, sum[S_W-1:RIGHT]};
            reg  [OUT_W-1:0] height_reg, code_reg;
            always @(posedge clk) if (en) begin
                knot_reg     <= magnitude[FRAC_W +: ADDR_W] | {ADDR_W{over}};
                fraction_reg <= {fraction_reg[2*FRAC_W-1:0], magnitude[FRAC_W-1:0]};
                negative_reg <= {negative_reg[STAGES+2:0], v[V_W-1]};
                word_reg     <= rom[knot_reg];
                held_reg     <= word_reg;
                value_reg    <= value_in[STAGES*VALUE_W-1:0];
                height_reg   <= height[OUT_W-1:0];
                code_reg     <= negative_reg[STAGES+3] ? MIRROR - height_reg : height_reg;
            end
            assign m_data[g*OUT_W +: OUT_W] = code_reg;
            wire unused_lane = &{1'b0, xs, height, sum};
        end
    endgenerate
endmodule
`default_nettype wire
