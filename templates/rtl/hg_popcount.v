// hg_popcount: number of positions in which x and w agree (XNOR, then popcount).
//
// Purpose     the multiplying part of one processing element of hg_mvu for binary layers.
// Parameters  SIMD   bits of x and of w
//             EVERY  pipeline registers, see hg_adder_tree
// Latency     1 + ceil(log2(ceil(SIMD / 6))) / EVERY cycles, all advancing on en
// Contract    exact; counts of six positions (six-input tables) are added by a tree.
`default_nettype none
module hg_popcount #(
    parameter integer SIMD  = 8,
    parameter integer EVERY = 2
) (
    input  wire                                  clk,
    input  wire                                  en,
    input  wire [SIMD-1:0]                       x,
    input  wire [SIMD-1:0]                       w,
    output wire [3+$clog2((SIMD+5)/6)-1:0]       count
);
    localparam integer GROUPS = (SIMD + 5) / 6;

    function [2:0] count6(input [5:0] v);
        count6 = {2'b00, v[0]} + {2'b00, v[1]} + {2'b00, v[2]}
               + {2'b00, v[3]} + {2'b00, v[4]} + {2'b00, v[5]};
    endfunction

    wire [3*GROUPS-1:0] parts;

    genvar g;
    generate
        for (g = 0; g < GROUPS; g = g + 1) begin : group
            localparam integer COUNT = (SIMD - 6*g < 6) ? SIMD - 6*g : 6;
            reg [2:0] part_reg;
            wire [5:0] same;
            assign same[COUNT-1:0] = ~(x[6*g +: COUNT] ^ w[6*g +: COUNT]);
            if (COUNT < 6) begin : rest
                assign same[5:COUNT] = {6-COUNT{1'b0}};
            end
            always @(posedge clk) if (en) part_reg <= count6(same);
            assign parts[3*g +: 3] = part_reg;
        end
    endgenerate

    hg_adder_tree #(
        .N(GROUPS), .IN_W(3), .SIGNED(0), .EVERY(EVERY)
    ) tree (
        .clk(clk), .en(en), .terms(parts), .sum(count)
    );
endmodule
`default_nettype wire
