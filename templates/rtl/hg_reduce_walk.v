// hg_reduce_walk: where the current pixel stands in the windows along one axis of an image.
//
// Purpose     rows, and columns, of hg_reduce.
// Parameters  SIZE    pixels along the axis, at least COUNT * KERNEL
//             KERNEL  pixels of a window; windows do not overlap and leave no gaps
//             COUNT   windows; what lies behind them is in none
// Latency     0: the outputs hold for the current pixel, `step` goes to the next one at the clock edge
// Contract    first, last: of a window, if `keep`; end_of: last pixel of the axis, the first follows.
`default_nettype none
module hg_reduce_walk #(
    parameter integer SIZE   = 7,
    parameter integer KERNEL = 2,
    parameter integer COUNT  = 3
) (
    input  wire clk,
    input  wire rst,
    input  wire step,
    output wire keep,
    output wire first,
    output wire last,
    output wire end_of
);
    localparam integer W  = $clog2(SIZE + 1);
    localparam integer KW = $clog2(KERNEL + 1);
    localparam integer KEPT = COUNT * KERNEL;
    localparam [W-1:0]  END_OF   = SIZE[W-1:0] - 1'b1;
    localparam [W-1:0]  LAST_IN  = KEPT[W-1:0] - 1'b1;
    localparam [KW-1:0] LAST_TAP = KERNEL[KW-1:0] - 1'b1;

    reg [W-1:0] at_reg;
    assign keep   = at_reg <= LAST_IN;
    assign end_of = at_reg == END_OF;
    always @(posedge clk) begin
        if (step) at_reg <= end_of ? {W{1'b0}} : at_reg + 1'b1;
        if (rst)  at_reg <= {W{1'b0}};
    end

    generate
        if (COUNT == 1) begin : one
            assign first = at_reg == {W{1'b0}};
            assign last  = at_reg == LAST_IN;
            wire [KW-1:0] unused = LAST_TAP;
        end else begin : several
            reg [KW-1:0] tap_reg;
            assign first = tap_reg == {KW{1'b0}};
            assign last  = tap_reg == LAST_TAP;
            always @(posedge clk) begin
                if (step) tap_reg <= (end_of || last) ? {KW{1'b0}} : tap_reg + 1'b1;
                if (rst)  tap_reg <= {KW{1'b0}};
            end
        end
    endgenerate
endmodule
`default_nettype wire
