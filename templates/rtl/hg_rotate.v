// hg_rotate: Rotates N items.
//
// Purpose     Output i is input (i + turn) mod N: rows and columns of hg_unfold.
// Parameters  N      Items.
//             WIDTH  Bits of an item.
// Latency     Combinational: ceil(log2(N)) levels of 2:1 multiplexers, two of them per six-input LUT.
// Contract    turn < N. Item 0 is in the low bits.
`default_nettype none
module hg_rotate #(
    parameter integer N     = 3,
    parameter integer WIDTH = 4
) (
    input  wire [((N <= 1) ? 1 : $clog2(N))-1:0] turn,
    input  wire [N*WIDTH-1:0]                    x,
    output wire [N*WIDTH-1:0]                    y
);
    localparam integer LEVELS = $clog2(N);

    // Level l rotates by 2^(l - 1) or not at all.
    genvar l, i;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            wire [N*WIDTH-1:0] value;
            if (l == 0) begin : inputs
                assign value = x;
            end else begin : turned
                for (i = 0; i < N; i = i + 1) begin : item
                    localparam integer FROM = (i + (1 << (l - 1))) % N;
                    assign value[i*WIDTH +: WIDTH] = turn[l-1] ? level[l-1].value[FROM*WIDTH +: WIDTH]
                                                               : level[l-1].value[i*WIDTH +: WIDTH];
                end
            end
        end
    endgenerate
    assign y = level[LEVELS].value;
    wire unused = &{1'b0, turn};
endmodule
`default_nettype wire
