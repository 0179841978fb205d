// hg_correct_reach: Comparison of hg_correct_lane.
//
// Purpose     reached = y >= level, unsigned.
// Parameters  WIDTH  Bits of both operands.
//             PART   Bits per link of the carry chain. A link of several bits costs two LUTs if the level
//                    is a lookup table. More than two bits pay off where PART plus the address bits of that
//                    table are six inputs.
// Latency     0.
// Contract    None.
`default_nettype none
module hg_correct_reach #(
    parameter integer WIDTH = 8,
    parameter integer PART  = 1
) (
    input  wire [WIDTH-1:0] y,
    input  wire [WIDTH-1:0] level,
    output wire             reached
);
    localparam integer PARTS = (WIDTH + PART - 1) / PART;

    // a > b, or a >= b if `same`.
    function beyond(input [PART-1:0] a, input [PART-1:0] b, input same);
        integer i;
        begin
            beyond = same;
            for (i = 0; i < PART; i = i + 1) beyond = (a[i] && !b[i]) || (beyond && (a[i] || !b[i]));
        end
    endfunction

    genvar g;
    generate
        if (PART == 1) begin : bits
            wire [WIDTH:0] difference = {1'b1, y} - {1'b0, level};
            assign reached = difference[WIDTH];
            wire unused = &{1'b0, difference};
        end else begin : parts
            wire [PARTS*PART:0] a = {{PARTS*PART+1-WIDTH{1'b0}}, y};
            wire [PARTS*PART:0] b = {{PARTS*PART+1-WIDTH{1'b0}}, level};
            wire [PARTS-1:0] over, least;
            for (g = 0; g < PARTS; g = g + 1) begin : part
                assign over[g]  = beyond(a[g*PART +: PART], b[g*PART +: PART], 1'b0);
                assign least[g] = beyond(a[g*PART +: PART], b[g*PART +: PART], 1'b1);
            end
            wire [PARTS+1:0] chain = {1'b0, over, 1'b1} + {1'b0, least, 1'b1};
            assign reached = chain[PARTS+1];
            wire unused = &{1'b0, chain, a, b};
        end
    endgenerate
endmodule
`default_nettype wire
