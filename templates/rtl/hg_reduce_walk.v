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
    localparam integer REST = SIZE - COUNT * KERNEL;

    wire end_window, last_window;
    wire kept = step && keep;
    reg  first_reg;
    assign first = first_reg;
    assign last  = end_window;
    always @(posedge clk) begin
        if (kept) first_reg <= end_window;
        if (rst)  first_reg <= 1'b1;
    end
    hg_loop #(.N(KERNEL)) taps (.clk(clk), .rst(rst), .step(kept), .last(end_window));
    hg_loop #(.N(COUNT)) windows (.clk(clk), .rst(rst), .step(kept && end_window), .last(last_window));

    generate
        if (REST == 0) begin : covered
            assign keep   = 1'b1;
            assign end_of = end_window && last_window;
        end else begin : behind
            reg  keep_reg;
            wire end_rest;
            assign keep   = keep_reg;
            assign end_of = !keep_reg && end_rest;
            hg_loop #(.N(REST)) rest (.clk(clk), .rst(rst), .step(step && !keep_reg), .last(end_rest));
            always @(posedge clk) begin
                if (step) keep_reg <= keep_reg ? !(end_window && last_window) : end_rest;
                if (rst)  keep_reg <= 1'b1;
            end
        end
    endgenerate
endmodule
`default_nettype wire
