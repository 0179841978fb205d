// hg_digits: Sum of digits of radix 4 or 2, weighted by place.
//
// Purpose     End of a dot product that sums the digits of the weights, or the bits of the codes,
//             separately.
// Parameters  N       Digits. A digit may be of any size.
//             PLACE   Bits from one digit to the next, 1 or 2.
//             MINUS   1: the last digit is subtracted; N is then at least 2.
//             IN_W    Bits of a digit.
//             SIGNED  1: digits are two's complement; 0: unsigned.
//             OUT_W   Bits of the sum.
//             EVERY   Adder levels per pipeline register, at least 1. One register is at the end.
// Latency     ceil(log2(N)) / EVERY, rounded up, all advancing on en.
// Contract    The sum of digit k times 2^(k * PLACE), modulo 2^OUT_W.
`default_nettype none
module hg_digits #(
    parameter integer N      = 2,
    parameter integer PLACE  = 2,
    parameter integer MINUS  = 0,
    parameter integer IN_W   = 4,
    parameter integer SIGNED = 0,
    parameter integer OUT_W  = 9,
    parameter integer EVERY  = 2
) (
    input  wire               clk,
    input  wire               en,
    input  wire [N*IN_W-1:0]  digits,
    output wire [OUT_W-1:0]   sum
);
    localparam integer LEVELS = $clog2(N);

    // Level l holds numbers of 2^l digits. Bounds: 1 + 4 < 2^3, 1 + 4 + 16 + 64 < 2^7, 1 + 2 < 2^2.
    genvar l, i;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            localparam integer COUNT = (N + (1 << l) - 1) >> l;
            localparam integer W     = IN_W + ((l == 0) ? 0 : (PLACE << l) - PLACE + 1);
            wire [COUNT*W-1:0] value;
            if (l == 0) begin : leaves
                assign value = digits;
            end else begin : sums
                localparam integer FROM  = (N + (1 << (l - 1)) - 1) >> (l - 1);
                localparam integer V     = IN_W + ((l == 1) ? 0 : (PLACE << (l - 1)) - PLACE + 1);
                localparam integer SHIFT = PLACE << (l - 1);
                localparam integer PIPED = ((l % EVERY) == 0 || l == LEVELS) ? 1 : 0;
                for (i = 0; i < COUNT; i = i + 1) begin : add
                    wire [V-1:0] low = level[l-1].value[2*i*V +: V];
                    if (2*i + 1 == FROM) begin : single
                        // Avoid a shift register between levels: its output is too slow to feed an
                        // addition.
                        wire [V-1:0] late;
                        hg_delay #(.WIDTH(V), .CYCLES(PIPED)) pipe (.clk(clk), .en(en), .d(low), .q(late));
                        assign value[i*W +: W] = {{W-V{(SIGNED != 0) && late[V-1]}}, late};
                    end else begin : both
                        // The last digit stays separate until it is added to another number.
                        localparam integer AWAY = (MINUS != 0 && ((2*i + 1) << (l - 1)) == N - 1) ? 1 : 0;
                        wire [V-1:0] high      = level[l-1].value[(2*i+1)*V +: V];
                        wire [W-1:0] low_wide  = {{W-V{(SIGNED != 0) && low[V-1]}}, low};
                        wire [W-1:0] high_wide = {{W-V{(SIGNED != 0) && high[V-1]}}, high};
                        wire [W-SHIFT-1:0] upper;
                        if (AWAY != 0) begin : away
                            assign upper = low_wide[W-1:SHIFT] - high_wide[W-SHIFT-1:0];
                        end else begin : plus
                            assign upper = low_wide[W-1:SHIFT] + high_wide[W-SHIFT-1:0];
                        end
                        wire unused_high = &{1'b0, high_wide};
                        if (PIPED != 0) begin : pipe
                            reg [W-1:0] all_reg;
                            always @(posedge clk) if (en) all_reg <= {upper, low_wide[SHIFT-1:0]};
                            assign value[i*W +: W] = all_reg;
                        end else begin : wired
                            assign value[i*W +: W] = {upper, low_wide[SHIFT-1:0]};
                        end
                    end
                end
            end
        end
    endgenerate

    localparam integer W_ALL = IN_W + ((LEVELS == 0) ? 0 : (PLACE << LEVELS) - PLACE + 1);
    wire [W_ALL-1:0]       all  = level[LEVELS].value[W_ALL-1:0];
    wire [OUT_W+W_ALL-1:0] wide = {{OUT_W{(SIGNED != 0) && all[W_ALL-1]}}, all};
    assign sum = wide[OUT_W-1:0];
    wire unused = &{1'b0, clk, en, wide};
endmodule
`default_nettype wire
