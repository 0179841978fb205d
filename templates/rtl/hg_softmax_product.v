// hg_softmax_product: Powers of e of distances, each a product of two lookup table words, rounded to
// float32.
//
// Purpose     Powers of e in a Softmax with more distances than a lookup table holds. One word is for the
//             high part of a distance, the other for its low part.
// Parameters  LANES     Elements of a beat.
//             D_W       Bits of a distance.
//             LOW       Bits of its low part, less than D_W.
//             HIGHS     Words for high parts. A distance is less than HIGHS << LOW.
//             M_W       Bits of a mantissa, at least 16.
//             W         Bits of a fixed-point number, FRACTION + 1.
//             FRACTION  Its fraction bits, 23 to 149.
//             FILE      File name stem. FILE_high.mem holds HIGHS words {shift, mantissa} of 8 and M_W
//                       bits, meaning mantissa * 2^(1 - M_W - shift). The top bit of a mantissa is set, or
//                       all of it is 0. FILE_low.mem holds 2^LOW words of M_W + 1 bits, more than 1/2 to 1
//                       of 2^M_W.
// Latency     11 cycles to value, 12 to fixed, all advancing on en.
// Contract    Output value is float32 without its sign, nearest to the exact product, ties to even. Output
//             fixed is the same number. It is exact if it is 0 or 2^-FRACTION is no more than the place of
//             its last bit. Shifts are at most 151.
`default_nettype none
module hg_softmax_product #(
    parameter integer LANES    = 1,
    parameter integer D_W      = 18,
    parameter integer LOW      = 9,
    parameter integer HIGHS    = 512,
    parameter integer M_W      = 44,
    parameter integer W        = 52,
    parameter integer FRACTION = 51,
    parameter         FILE     = ""
) (
    input  wire                 clk,
    input  wire                 en,
    input  wire [LANES*D_W-1:0] distance,
    output wire [LANES*31-1:0]  value,
    output wire [LANES*W-1:0]   fixed
);
    localparam integer H_W    = D_W - LOW;
    localparam integer STAGES = 6;
    localparam integer P_W    = 2 * M_W;
    localparam [7:0]   LEAST  = 8'd150 - FRACTION[7:0];

    wire [LANES*H_W-1:0]     high_part;
    wire [LANES*LOW-1:0]     low_part;
    wire [LANES*(M_W+8)-1:0] high;
    wire [LANES*(M_W+1)-1:0] low;
    hg_softmax_table #(
        .LANES(LANES),
        .D_W  (H_W),
        .WORDS(HIGHS),
        .W    (M_W + 8),
        .FILE (FILE),
        .TAIL ("_high.mem")
    ) u_high (
        .clk     (clk),
        .en      (en),
        .distance(high_part),
        .word    (high)
    );
    hg_softmax_table #(
        .LANES(LANES),
        .D_W  (LOW),
        .WORDS(1 << LOW),
        .W    (M_W + 1),
        .FILE (FILE),
        .TAIL ("_low.mem")
    ) u_low (
        .clk     (clk),
        .en      (en),
        .distance(low_part),
        .word    (low)
    );

    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            assign high_part[i*H_W +: H_W] = distance[i*D_W + LOW +: H_W];
            assign low_part[i*LOW +: LOW]  = distance[i*D_W +: LOW];

            // The product, and its shift in parallel. The top bit of the product, or the one below it, is
            // set.
            wire [P_W+2:0]        product;
            reg  [8*STAGES-1:0]   shift_reg;
            wire [8*STAGES+7:0]   shift_in = {shift_reg, high[i*(M_W+8) + M_W +: 8]};
            always @(posedge clk) if (en) shift_reg <= shift_in[8*STAGES-1:0];
            hg_multiply #(
                .X_W   (M_W + 1),
                .M_W   (M_W + 2),
                .STYLE (1),
                .STAGES(STAGES)
            ) u_multiply (
                .clk(clk),
                .en (en),
                .x  ({1'b0, high[i*(M_W+8) +: M_W]}),
                .m  ({1'b0, low[i*(M_W+1) +: M_W+1]}),
                .y  (product)
            );
            wire [12:0] e_top = 13'd127 - {5'd0, shift_reg[8*STAGES-1 -: 8]};
            wire [31:0] rounded;
            hg_f32_pack #(
                .PIPE(1),
                .N   (32),
                .PRE (25)
            ) u_round (
                .clk  (clk),
                .en   (en),
                .sign (1'b0),
                .inf  (1'b0),
                .nan  (1'b0),
                .e_top(e_top),
                .sig  ({product[P_W-1 -: 31], |product[P_W-32:0]}),
                .y    (rounded)
            );
            assign value[31*i +: 31] = rounded[30:0];

            // Convert to fixed point: shift the mantissa left by its exponent.
            wire       normal = rounded[30:23] != 8'd0;
            wire [7:0] left   = {rounded[30:24], rounded[23] || !normal} - LEAST;
            reg  [W:0]   fixed_reg;
            always @(posedge clk)
                if (en) fixed_reg <= {{W-23{1'b0}}, normal, rounded[22:0]} << left;
            assign fixed[i*W +: W] = fixed_reg[W-1:0];
            wire unused = &{1'b0, product[P_W+2:P_W], rounded[31], fixed_reg[W], shift_in[8*STAGES+7 -: 8]};
        end
    endgenerate
endmodule
`default_nettype wire
