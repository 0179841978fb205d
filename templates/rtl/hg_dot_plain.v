// hg_dot_plain: Dot product of SIMD codes with SIMD weights, as products that the tools map.
//
// Purpose     A row of hg_mac_products with constant weights, which tools turn into shifts and adders, or
//             with DSP blocks.
// Parameters  SIMD      Terms.
//             X_W       Bits of a code x.
//             X_SIGNED  1: x is two's complement; 0: unsigned.
//             W_W       Bits of a weight w in two's complement. With W_W = 1, bit 0 means -1 and bit 1
//                       means +1.
//             EVERY     Pipeline registers, see hg_adder_tree. Here 0 means 1. With 1, a DSP block has an
//                       output register before any addition.
//             DSP       1: products in DSP blocks; 0: in LUTs. Attributes request this in Vivado, Quartus
//                       and Synplify. Yosys needs the option -nodsp.
// Latency     1 for SIMD up to 2, otherwise 2, or with EVERY = 1 one for each of up to four terms; plus
//             ceil(log2(ceil(SIMD / 4))) / EVERY of a tree, rounded up; plus that of hg_digits for two bits
//             of a weight each, rounded up. All registers advance on en.
// Contract    Exact two's complement sum of X_W + W_W + 1 + ceil(log2(SIMD)) bits.
`default_nettype none
module hg_dot_plain #(
    parameter integer SIMD     = 4,
    parameter integer X_W      = 4,
    parameter integer X_SIGNED = 0,
    parameter integer W_W      = 3,
    parameter integer EVERY    = 2,
    parameter integer DSP      = 0
) (
    input  wire                          clk,
    input  wire                          en,
    input  wire [SIMD*X_W-1:0]           x,
    input  wire [SIMD*W_W-1:0]           w,
    output wire [X_W+W_W+$clog2(SIMD):0] sum
);
    localparam integer DIGITS = (W_W + 1) / 2;
    localparam integer GROUPS = (SIMD + 3) / 4;
    localparam integer P_W    = X_W + W_W + 3;
    localparam integer S_W    = P_W + $clog2(GROUPS);
    localparam integer OUT_W  = X_W + W_W + 1 + $clog2(SIMD);
    localparam integer STEP   = (EVERY == 0) ? 1 : EVERY;
    // Products of constants are summed in pairs where there are cycles for it.
    localparam integer CYCLES = (STEP > 1) ? ((SIMD <= 2) ? 1 : 2) : (SIMD > 4) ? 4 : SIMD;
    localparam integer PAIRS  = (STEP == 1 && SIMD > 2 && DSP == 0) ? 1 : 0;
    localparam integer E_W    = X_W + W_W + 1;  // bits of one product

    // The sum of four products; where there are fewer, x is zero.
    function signed [P_W-1:0] products;
        input [4*X_W-1:0] xs;
        input [4*W_W-1:0] ws;
        reg signed [P_W-1:0] xi, wi;
        integer i;
        begin
            products = {P_W{1'b0}};
            for (i = 0; i < 4; i = i + 1) begin
                xi = {{P_W-X_W{(X_SIGNED != 0) && xs[i*X_W + X_W - 1]}}, xs[i*X_W +: X_W]};
                wi = {{P_W-W_W{ws[i*W_W + W_W - 1]}}, ws[i*W_W +: W_W]};
                if (W_W == 1) products = ws[i*W_W] ? products + xi : products - xi;
                else          products = products + xi * wi;
            end
        end
    endfunction

    wire [GROUPS*P_W-1:0] parts;
    genvar g, i;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            localparam integer COUNT = (SIMD - 4*g < 4) ? SIMD - 4*g : 4;
            wire [4*X_W:0] xs = {{4*X_W-COUNT*X_W+1{1'b0}}, x[4*g*X_W +: COUNT*X_W]};
            wire [4*W_W:0] ws = {{4*W_W-COUNT*W_W+1{1'b0}}, w[4*g*W_W +: COUNT*W_W]};
            // Registers from the codes to `part`.
            localparam integer OWN = 1 + PAIRS + ((STEP == 1 && DSP != 0) ? $clog2(COUNT) : 0);
            wire signed [P_W-1:0] part;
            if (DSP != 0 && STEP == 1) begin : apart
                // A block has an output register before any addition.
                wire [COUNT*E_W-1:0] made;
                for (i = 0; i < COUNT; i = i + 1) begin : block
                    (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                    wire signed [P_W-1:0] now;
                    reg  [E_W-1:0]        now_reg;
                    assign now = products(
                        {{3*X_W{1'b0}}, xs[i*X_W +: X_W]}, {{3*W_W{1'b0}}, ws[i*W_W +: W_W]}
                    );
                    always @(posedge clk) if (en) now_reg <= now[E_W-1:0];
                    assign made[i*E_W +: E_W] = now_reg;
                    wire unused_now = &{1'b0, now};
                end
                localparam integer FOUR = E_W + $clog2(COUNT);
                wire [FOUR-1:0] four;
                hg_adder_tree #(.N(COUNT), .IN_W(E_W), .SIGNED(1), .EVERY(1)) sums (
                    .clk(clk), .en(en), .terms(made), .sum(four)
                );
                assign part = {{P_W-FOUR+1{four[FOUR-1]}}, four[FOUR-2:0]};
            end else if (DSP != 0) begin : blocks
                (* use_dsp = "yes", multstyle = "dsp", syn_multstyle = "block_mult" *)
                wire signed [P_W-1:0] now;
                reg  signed [P_W-1:0] part_reg;
                assign now = products(xs[4*X_W-1:0], ws[4*W_W-1:0]);
                always @(posedge clk) if (en) part_reg <= now;
                assign part = part_reg;
            end else if (PAIRS != 0) begin : pairs
                (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
                wire signed [P_W-1:0] low, high;
                assign low  = products({{2*X_W{1'b0}}, xs[2*X_W-1:0]}, ws[4*W_W-1:0]);
                assign high = products({xs[2*X_W +: 2*X_W], {2*X_W{1'b0}}}, ws[4*W_W-1:0]);
                reg  signed [P_W-1:0] low_reg, high_reg, part_reg;
                always @(posedge clk) if (en) begin
                    low_reg  <= low;
                    high_reg <= high;
                    part_reg <= low_reg + high_reg;
                end
                assign part = part_reg;
            end else begin : tables
                (* use_dsp = "no", multstyle = "logic", syn_multstyle = "logic" *)
                wire signed [P_W-1:0] now;
                reg  signed [P_W-1:0] part_reg;
                assign now = products(xs[4*X_W-1:0], ws[4*W_W-1:0]);
                always @(posedge clk) if (en) part_reg <= now;
                assign part = part_reg;
            end
            wire unused_group = &{1'b0, xs, ws};
            hg_delay #(.WIDTH(P_W), .CYCLES(CYCLES - OWN)) others (
                .clk(clk), .en(en), .d(part), .q(parts[g*P_W +: P_W])
            );
        end
    endgenerate

    wire [S_W-1:0] total;
    hg_adder_tree #(
        .N(GROUPS), .IN_W(P_W), .SIGNED(1), .EVERY(STEP), .CLOSED(1)
    ) tree (
        .clk(clk), .en(en), .terms(parts), .sum(total)
    );
    // Match the register count of the other dot products, which sum digits here.
    wire [(DIGITS+1)*OUT_W-1:0] digits = {{DIGITS*OUT_W{1'b0}}, total[OUT_W-1:0]};
    hg_digits #(
        .N(DIGITS), .IN_W(OUT_W), .SIGNED(1), .OUT_W(OUT_W), .EVERY(STEP)
    ) merge (
        .clk(clk), .en(en), .digits(digits[DIGITS*OUT_W-1:0]), .sum(sum)
    );
    wire unused = &{1'b0, total, digits};
endmodule
`default_nettype wire
